//! Forwarding tables that keep the traffic of every job on the links it owns.

mod check;

use std::sync::Arc;

use super::routes::{Layer, Routes, Step, SwitchPlace};
use super::{Fixed, Routing, Rule, Unreachable};
use crate::error::InputError;
use crate::fabric::{CableId, Fabric, GroupIndex, NodeIndex};
use crate::link::{Channel, channel_of};
use crate::nodeset::NodeSet;

/// A running job and the links it owns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobLinks {
    /// What errors call it.
    pub name: String,
    /// Its nodes, in any order.
    pub nodes: Vec<NodeIndex>,
    /// Its cables between switches, in any order; none if it lies in one leaf, or takes its chance
    /// with all others.
    pub links: Vec<CableId>,
}

/// Uplink slots reserved for traffic to and from some nodes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Service {
    /// The nodes: storage, login, management.
    pub nodes: Vec<NodeIndex>,
    /// How many of the highest uplink slots of every switch are reserved for them.
    pub uplinks: u32,
}

impl Service {
    /// The cables in reserved uplink slots, ascending: no job may own one.
    pub fn cables(&self, fabric: &Fabric) -> Vec<CableId> {
        check::reserved(fabric, self.uplinks)
    }
}

/// Routing by destination that keeps jobs apart. At every switch the entry of a destination is
///
/// 1. a link of the destination's job, where those lead from this switch to it;
/// 2. a reserved uplink slot, where the destination is a service node, the switch is the leaf of one or
///    above the leaves, and those slots lead to it;
/// 3. that of d-mod-k on all cables.
///
/// Destinations of a job are dealt over its links as d-mod-k deals nodes over a whole tree, by
/// their places among the job's nodes. An entry leads down if the destination is below the switch
/// and up if not, so no traffic waits in a circle. It depends on the job of its destination and on
/// no other.
#[derive(Debug, Clone)]
pub struct Dedicated {
    all: Fixed,
    /// Of every job with links: those.
    links: Vec<NodeSet>,
    /// Of every node the job with links, and its place among the job's nodes.
    place: Vec<Option<(u32, u32)>>,
    service: Vec<bool>,
    /// Leaves of service nodes.
    service_leaves: Vec<GroupIndex>,
    uplinks: u32,
}

impl Dedicated {
    /// The tables for these jobs.
    ///
    /// # Errors
    /// Naming the job: a node, or a link,
    /// that the machine does not have or that another job has too; a missing cable; a link that
    /// joins no switches, that none of the job's nodes is below, or that is in a reserved slot; leaves
    /// of the job that its links do not join on every rail.
    pub fn new(
        fabric: &Arc<Fabric>,
        jobs: &[JobLinks],
        service: &Service,
    ) -> Result<Dedicated, InputError> {
        check::jobs(fabric, jobs, service)?;
        let nodes = fabric.nodes() as usize;
        let mut routing = Dedicated {
            all: Fixed::new(Arc::clone(fabric), Rule::DestinationModK),
            links: Vec::new(),
            place: vec![None; nodes],
            service: vec![false; nodes],
            service_leaves: service.nodes.iter().map(|&node| fabric.group(1, node)).collect(),
            uplinks: service.uplinks,
        };
        for &node in &service.nodes {
            routing.service[node as usize] = true;
        }
        for job in jobs.iter().filter(|job| !job.links.is_empty()) {
            let number = routing.links.len() as u32;
            routing.links.push(NodeSet::of(fabric.links(), job.links.iter().copied()));
            let mut nodes = job.nodes.clone();
            nodes.sort_unstable();
            nodes.dedup();
            for (place, &node) in (0..).zip(&nodes) {
                routing.place[node as usize] = Some((number, place));
            }
            routing.check_joined(&job.name, &nodes)?;
        }
        Ok(routing)
    }

    /// The step that the table of a switch (or a node, which sends by it) has for a destination, a
    /// node or a switch. `None` if there is none: no route is whole, the two are at different sites,
    /// or the destination is a switch that only a route down and up again would reach.
    pub fn step(&self, at: SwitchPlace, to: SwitchPlace) -> Option<Step> {
        self.step_on(at, to, None)
    }

    /// The same to the adapter that a node has on a rail: a subnet addresses every adapter on its own.
    pub fn step_on(&self, at: SwitchPlace, to: SwitchPlace, rail: Option<u32>) -> Option<Step> {
        let fabric = self.fabric();
        if fabric.site_of_group(at.level, at.group) != fabric.site_of_group(to.level, to.group) {
            return None;
        }
        if to.level > 0 {
            let place = to.group.wrapping_add(to.number);
            return Routes::new(fabric, Layer::All, to, place).step(at);
        }
        let node = to.group;
        self.own_routes(node)
            .and_then(|routes| routes.on_rail(rail).step(at))
            .or_else(|| {
                let reserved = self.uplinks > 0 && (self.service[node as usize] || self.serves(at));
                let routes = || Routes::new(fabric, Layer::Reserved(self.uplinks), to, node);
                reserved.then(routes).and_then(|routes| routes.on_rail(rail).step(at))
            })
            .or_else(|| Routes::new(fabric, Layer::All, to, node).on_rail(rail).step(at))
    }

    /// The job with links, by its number among those, that owns a link.
    pub fn owner(&self, link: CableId) -> Option<usize> {
        self.links.iter().position(|links| links.contains(link))
    }

    /// The job with links, by its number among those, that has a node.
    pub fn job(&self, node: NodeIndex) -> Option<usize> {
        self.place[node as usize].map(|(job, _)| job as usize)
    }

    /// The route from a switch or a node to a node of the same site, or to its adapter on a rail; `None` where none is whole.
    pub(super) fn route(
        &self,
        from: SwitchPlace,
        to: NodeIndex,
        rail: Option<u32>,
    ) -> Option<Vec<Channel>> {
        let to = SwitchPlace::node(to);
        let mut route = Vec::new();
        let mut at = from;
        while at != to {
            let step = self.step_on(at, to, rail)?;
            route.extend(step.link.map(channel_of));
            at = step.to;
        }
        Some(route)
    }

    fn own_routes(&self, to: NodeIndex) -> Option<Routes<'_>> {
        let (job, place) = self.place[to as usize]?;
        let layer = Layer::Dedicated(&self.links[job as usize]);
        Some(Routes::new(self.fabric(), layer, SwitchPlace::node(to), place))
    }

    /// Whether traffic from service nodes passes a switch in reserved uplink slots.
    fn serves(&self, at: SwitchPlace) -> bool {
        at.level != 1 || self.service_leaves.contains(&at.group)
    }

    /// Whether the links of a job join all its leaves, whichever of them a route takes.
    fn check_joined(&self, name: &str, nodes: &[NodeIndex]) -> Result<(), InputError> {
        let fabric = self.fabric();
        let mut leaves: Vec<GroupIndex> = nodes.iter().map(|&node| fabric.group(1, node)).collect();
        leaves.dedup();
        let Some(links) = self.links.last() else { return Ok(()) };
        let rails = leaves.first().map_or(1, |&leaf| fabric.rails(fabric.site_of_group(1, leaf)));
        let pairs = (0..rails).flat_map(|rail| leaves.iter().map(move |&leaf| (rail, leaf)));
        for (number, to) in pairs {
            let switch = |group| SwitchPlace { level: 1, group, number };
            let routes = Routes::new(fabric, Layer::Dedicated(links), switch(to), 0);
            if let Some(&from) = leaves.iter().find(|&&from| !routes.arrives(switch(from))) {
                let leaf = |group| fabric.group_name(1, group);
                return Err(InputError::whole(format!(
                    "job {name}: its links do not lead from {} to {}",
                    leaf(from),
                    leaf(to)
                )));
            }
        }
        Ok(())
    }
}

impl Routing for Dedicated {
    fn name(&self) -> &'static str {
        "dedicated"
    }

    fn fabric(&self) -> &Arc<Fabric> {
        self.all.fabric()
    }

    fn capacity(&self, channel: Channel) -> f64 {
        self.all.capacity(channel)
    }

    /// Between sites, as d-mod-k.
    fn path(
        &self,
        from: NodeIndex,
        to: NodeIndex,
        path: &mut Vec<Channel>,
    ) -> Result<(), Unreachable> {
        if self.fabric().share_domain(from, to) {
            return Ok(());
        }
        if self.fabric().common_level(from, to).is_none() {
            return self.all.path(from, to, path);
        }
        let route =
            self.route(SwitchPlace::node(from), to, None).ok_or(Unreachable { from, to })?;
        path.extend(route);
        Ok(())
    }

    fn distinguishes_rails(&self) -> bool {
        true
    }

    /// Over NVLink the data is on the rail of the destination before it leaves the first node.
    fn rail_path(
        &self,
        (from, to): (NodeIndex, NodeIndex),
        rails: (u32, u32),
        path: &mut Vec<Channel>,
    ) -> Result<(), Unreachable> {
        if self.fabric().share_domain(from, to) {
            return Ok(());
        }
        if self.fabric().common_level(from, to).is_none() {
            return self.all.path(from, to, path);
        }
        let route = self.route(SwitchPlace::node(from), to, Some(rails.1));
        path.extend(route.ok_or(Unreachable { from, to })?);
        Ok(())
    }
}

impl Dedicated {
    /// How many of the routes between a service node and a node of a job with links, both
    /// directions, there are; how many of them pass over a link that a job owns; and over one that
    /// is another job's than the node's.
    pub fn service_routes(&self) -> [u64; 3] {
        let mut counts = [0; 3];
        let nodes = || 0..self.fabric().nodes();
        let mut owner = vec![None; self.fabric().links() as usize];
        for (job, links) in self.links.iter().enumerate() {
            for link in links.iter() {
                owner[link as usize] = Some(job);
            }
        }
        let mut path = Vec::new();
        for service in nodes().filter(|&node| self.service[node as usize]) {
            for node in nodes().filter(|&node| node != service) {
                let Some(job) = self.job(node) else { continue };
                for (from, to) in [(service, node), (node, service)] {
                    path.clear();
                    if self.path(from, to, &mut path).is_err() {
                        continue;
                    }
                    let owners = || path.iter().filter_map(|&c| owner[c as usize / 2]);
                    counts[0] += 1;
                    counts[1] += u64::from(owners().next().is_some());
                    counts[2] += u64::from(owners().any(|other| other != job));
                }
            }
        }
        counts
    }
}
