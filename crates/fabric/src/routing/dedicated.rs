//! Forwarding tables that keep the traffic of every job on the links it owns.

mod check;

use std::sync::Arc;

use super::routes::{DestinationRoutes, Layer, RouteStep, SwitchPlace};
use super::{Fixed, Routing, Rule, Unreachable};
use crate::error::InputError;
use crate::fabric::Fabric;
use crate::ids::{CableId, GroupIndex, NodeIndex};
use crate::link::{Channel, channel_of};
use crate::nodeset::NodeSet;

/// A running job and the links it owns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobLinks {
    /// The name of the job in errors.
    pub name: String,
    /// The nodes of the job, in any order.
    pub nodes: Vec<NodeIndex>,
    /// The job's cables between switches, in any order. Empty if the job is inside one leaf, or uses links that others
    /// share.
    pub links: Vec<CableId>,
}

/// Uplink slots that are reserved for traffic to and from service nodes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Service {
    /// The service nodes: storage, login, management.
    pub nodes: Vec<NodeIndex>,
    /// The number of highest uplink slots of every switch that are reserved for them.
    pub uplinks: u32,
}

impl Service {
    /// The cables in reserved uplink slots, ascending. No job may own one.
    pub fn cables(&self, fabric: &Fabric) -> Vec<CableId> {
        check::reserved(fabric, self.uplinks)
    }
}

/// Routing by destination that keeps jobs on their own links. At every switch, the entry for a destination is
///
/// 1. a link of the destination's job, if these links lead from this switch to it;
/// 2. a reserved uplink slot, if the destination is a service node, the switch is above the leaves or is the leaf of a
///    service node, and these slots lead to it;
/// 3. the entry of d-mod-k on all cables.
///
/// The destinations of a job are spread over its links as d-mod-k spreads nodes over a whole tree, by their index among
/// the job's nodes. An entry leads down if the destination is below the switch, otherwise up, so there is no deadlock.
/// An entry depends only on the job of its destination.
#[derive(Debug, Clone)]
pub struct DedicatedRouting {
    all: Fixed,
    /// For every job with links, the set of its links.
    links: Vec<NodeSet>,
    /// For every node, the index of its job with links, and the node's index in that job.
    place: Vec<Option<(u32, u32)>>,
    service: Vec<bool>,
    /// The leaves of service nodes.
    service_leaves: Vec<GroupIndex>,
    uplinks: u32,
}

impl DedicatedRouting {
    /// Returns the tables for these jobs.
    ///
    /// # Errors
    /// Naming the job: a node or link that the machine does not have or that another job has too; a missing cable; a
    /// link that does not connect switches, that has none of the job's nodes below it, or that is in a reserved slot;
    /// leaves of the job that its links do not connect on every rail.
    pub fn new(
        fabric: &Arc<Fabric>,
        jobs: &[JobLinks],
        service: &Service,
    ) -> Result<DedicatedRouting, InputError> {
        check::jobs(fabric, jobs, service)?;
        let nodes = fabric.nodes() as usize;
        let mut routing = DedicatedRouting {
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

    /// The step from a switch to a destination, by the switch's table; a node sends by the same rule. `None` if there
    /// is no complete route, if they are at different sites, or if the destination is a switch that can only be reached
    /// down and up again.
    pub fn step(&self, at: SwitchPlace, to: SwitchPlace) -> Option<RouteStep> {
        self.step_on(at, to, None)
    }

    /// Same as [`DedicatedRouting::step`], to the adapter of a node on a rail: a subnet addresses every adapter
    /// separately.
    pub fn step_on(
        &self,
        at: SwitchPlace,
        to: SwitchPlace,
        rail: Option<u32>,
    ) -> Option<RouteStep> {
        let fabric = self.fabric();
        if fabric.site_of_group(at.level, at.group) != fabric.site_of_group(to.level, to.group) {
            return None;
        }
        if to.level > 0 {
            let place = to.group.wrapping_add(to.number);
            return DestinationRoutes::new(fabric, Layer::All, to, place).step(at);
        }
        let node = to.group;
        self.own_routes(node)
            .and_then(|routes| routes.on_rail(rail).step(at))
            .or_else(|| {
                let reserved = self.uplinks > 0 && (self.service[node as usize] || self.serves(at));
                let routes =
                    || DestinationRoutes::new(fabric, Layer::Reserved(self.uplinks), to, node);
                reserved.then(routes).and_then(|routes| routes.on_rail(rail).step(at))
            })
            .or_else(|| DestinationRoutes::new(fabric, Layer::All, to, node).on_rail(rail).step(at))
    }

    /// The index of the job that owns a link, among the jobs with links.
    pub fn owner(&self, link: CableId) -> Option<usize> {
        self.links.iter().position(|links| links.contains(link))
    }

    /// The index of the job that has a node, among the jobs with links.
    pub fn job(&self, node: NodeIndex) -> Option<usize> {
        self.place[node as usize].map(|(job, _)| job as usize)
    }

    /// The route from a switch or node to a node of the same site, or to its adapter on a rail; `None` if there is no
    /// complete route.
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

    fn own_routes(&self, to: NodeIndex) -> Option<DestinationRoutes<'_>> {
        let (job, place) = self.place[to as usize]?;
        let layer = Layer::Dedicated(&self.links[job as usize]);
        Some(DestinationRoutes::new(self.fabric(), layer, SwitchPlace::node(to), place))
    }

    /// Whether traffic of service nodes uses the reserved uplink slots of a switch.
    fn serves(&self, at: SwitchPlace) -> bool {
        at.level != 1 || self.service_leaves.contains(&at.group)
    }

    /// Checks that the links of a job connect all its leaves, whichever of them a route uses.
    fn check_joined(&self, name: &str, nodes: &[NodeIndex]) -> Result<(), InputError> {
        let fabric = self.fabric();
        let mut leaves: Vec<GroupIndex> = nodes.iter().map(|&node| fabric.group(1, node)).collect();
        leaves.dedup();
        let Some(links) = self.links.last() else { return Ok(()) };
        let rails = leaves.first().map_or(1, |&leaf| fabric.rails(fabric.site_of_group(1, leaf)));
        let pairs = (0..rails).flat_map(|rail| leaves.iter().map(move |&leaf| (rail, leaf)));
        for (number, to) in pairs {
            let switch = |group| SwitchPlace { level: 1, group, number };
            let routes = DestinationRoutes::new(fabric, Layer::Dedicated(links), switch(to), 0);
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

impl Routing for DedicatedRouting {
    fn name(&self) -> &'static str {
        "dedicated"
    }

    fn fabric(&self) -> &Arc<Fabric> {
        self.all.fabric()
    }

    fn capacity(&self, channel: Channel) -> f64 {
        self.all.capacity(channel)
    }

    /// Routes between sites are those of d-mod-k.
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

    /// With NVLink, the data is already on the destination's rail when it leaves the first node.
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

impl DedicatedRouting {
    /// Counts the routes between service nodes and nodes of jobs with links, in both directions: all of them; those
    /// over a link that any job owns; those over a link of another job than the node's.
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
