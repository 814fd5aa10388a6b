//! Evaluates how the jobs of a run use another network over the same nodes, such as the storage network.
//!
//! Policies place jobs by the machine alone. Nothing here slows a job down: it is computed after the run.

use std::sync::Arc;

use topolane_fabric::{Channel, Direction, Fabric, Fixed, InputError, NodeIndex, Routing, Rule};
use topolane_placement::Placement;

use crate::shared_links::{PlacementStay, links_shared, stays};
use crate::simulate::Outcome;
use crate::summary::by_work;

/// The most pairs of a node and a server that are evaluated.
const MOST_PAIRS: usize = 1 << 24;

/// Another network, and the positions of the machine's nodes on it.
#[derive(Debug, Clone, Copy)]
pub struct OtherNetwork<'a> {
    /// The fabric of the network.
    pub fabric: &'a Arc<Fabric>,
    /// For every node of the machine, its number on the network; `None` if it is not on it.
    pub nodes: &'a [Option<NodeIndex>],
    /// The hosts with which every node of a job exchanges equal amounts of data; empty if jobs send between their own
    /// nodes.
    pub servers: &'a [NodeIndex],
}

/// How jobs use another network, in the order of [`Outcome::jobs`].
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkUse {
    /// For each job, the links that it may have shared with another job. With servers, these are links by d-mod-k
    /// between the nodes and the switches where the routes turn, each direction counted separately. Beyond, towards the
    /// servers, all jobs share links.
    pub links_shared: Vec<u32>,
    /// For each job, the bandwidth that the switches leave it when alone, as a share of what the links of its nodes and
    /// of the servers could carry. `None` without servers, and for a job without a node on the network.
    pub bandwidth_alone: Vec<Option<f64>>,
    /// The mean of these shares, weighted by node-seconds; `None` if no job has one.
    pub mean_bandwidth_alone: Option<f64>,
}

impl OtherNetwork<'_> {
    /// Computes how the jobs of a run use the network.
    ///
    /// # Errors
    /// No route connects a node and a server, or there are too many pairs of them.
    pub fn used_by(&self, outcome: &Outcome) -> Result<NetworkUse, InputError> {
        let jobs = outcome.jobs.len();
        if self.servers.is_empty() {
            return Ok(NetworkUse {
                links_shared: self.shared_between_nodes(outcome),
                bandwidth_alone: vec![None; jobs],
                mean_bandwidth_alone: None,
            });
        }
        let routes = ServerRoutes::new(self)?;
        let mut tally = Tally::new(2 * self.fabric.links() as usize);
        let mut links_shared = vec![0; jobs];
        let mut links =
            vec![LinkUsers { until: f64::NEG_INFINITY, unmet: None }; tally.routes.len()];
        for PlacementStay { job, from, until, placement } in stays(outcome) {
            for channel in tally.links_below(&routes, placement) {
                links[channel as usize].come(job, from, until, &mut links_shared);
            }
        }
        let alone = |placement| tally.bandwidth_alone(&routes, placement);
        let bandwidth_alone: Vec<Option<f64>> =
            outcome.jobs.iter().map(|job| &*job.placement).map(alone).collect();
        let with_share = outcome.jobs.iter().zip(&bandwidth_alone);
        let (of, shares): (Vec<_>, Vec<f64>) =
            with_share.filter_map(|(job, share)| Some((job, (*share)?))).unzip();
        let mean_bandwidth_alone = by_work(of, &shares);
        Ok(NetworkUse { links_shared, bandwidth_alone, mean_bandwidth_alone })
    }

    /// The links that jobs may share if they send between their own nodes: as on the machine, with the nodes on this
    /// network.
    fn shared_between_nodes(&self, outcome: &Outcome) -> Vec<u32> {
        let here: Vec<(PlacementStay<'_>, Placement)> = stays(outcome)
            .into_iter()
            .filter_map(|stay| {
                let nodes = stay.placement.nodes().iter();
                let nodes: Vec<_> = nodes.filter_map(|&node| self.nodes[node as usize]).collect();
                let share = stay.placement.share().clone();
                (!nodes.is_empty()).then(|| (stay, Placement::new(self.fabric, nodes, share)))
            })
            .collect();
        let stays =
            here.iter().map(|(stay, placement)| PlacementStay { placement, ..*stay }).collect();
        links_shared(self.fabric, outcome.jobs.len(), stays)
    }
}

/// The routes between one node and all servers that use one direction of a link.
struct ServerLinkUse {
    channel: Channel,
    routes: u32,
    /// Whether the link is between the node and the switch where a route turns.
    below: bool,
}

/// The links on the routes between every node and the servers.
struct ServerRoutes {
    /// By node of the machine; empty for a node that is not on the network.
    of_node: Vec<Box<[ServerLinkUse]>>,
    /// Bandwidth of every channel in bytes per second.
    capacity: Vec<f64>,
    /// For each channel, whether it is the link of a node or of a server.
    is_end: Vec<bool>,
}

impl ServerRoutes {
    fn new(network: &OtherNetwork<'_>) -> Result<Self, InputError> {
        let OtherNetwork { fabric, nodes, servers } = *network;
        let there = nodes.iter().flatten().count();
        if there.saturating_mul(servers.len()) > MOST_PAIRS {
            let count = servers.len();
            let message =
                format!("{there} nodes and {count} servers are more than {MOST_PAIRS} pairs");
            return Err(InputError::whole(message));
        }
        let routing = Fixed::new(Arc::clone(fabric), Rule::DestinationModK);
        let channels = 0..routing.channels();
        let is_end = |channel| {
            routing
                .links(channel)
                .iter()
                .all(|link| fabric.cable_place(link.cable).is_some_and(|(level, ..)| level == 0))
        };
        let of_node = |node: &Option<NodeIndex>| match *node {
            Some(node) => uses(&routing, node, servers),
            None => Ok(Box::default()),
        };
        Ok(ServerRoutes {
            of_node: nodes.iter().map(of_node).collect::<Result<_, _>>()?,
            capacity: channels.clone().map(|channel| routing.capacity(channel)).collect(),
            is_end: channels.map(is_end).collect(),
        })
    }
}

/// The links of the routes from a node to the servers and back.
fn uses(
    routing: &Fixed,
    node: NodeIndex,
    servers: &[NodeIndex],
) -> Result<Box<[ServerLinkUse]>, InputError> {
    let fabric = routing.fabric();
    let climbs = |channel: Channel, way: Direction| {
        let links = routing.links(channel);
        links.iter().all(|link| link.direction == way && fabric.cable_place(link.cable).is_some())
    };
    let mut passed: Vec<(Channel, bool)> = Vec::new();
    let mut path = Vec::new();
    for &server in servers {
        for (from, to) in [(node, server), (server, node)] {
            path.clear();
            routing
                .path(from, to, &mut path)
                .map_err(|error| InputError::whole(error.on(fabric)))?;
            // Count links from the node's end.
            let way = if to == node { Direction::Down } else { Direction::Up };
            if to == node {
                path.reverse();
            }
            let turn = path.iter().take_while(|&&channel| climbs(channel, way)).count();
            passed.extend(path.iter().enumerate().map(|(place, &channel)| (channel, place < turn)));
        }
    }
    passed.sort_unstable();
    let uses = passed.chunk_by(|a, b| a.0 == b.0).map(|same| ServerLinkUse {
        channel: same[0].0,
        routes: same.len() as u32,
        below: same.iter().any(|&(_, below)| below),
    });
    Ok(uses.collect())
}

/// The number of routes of one job over every channel.
struct Tally {
    routes: Vec<u64>,
    touched: Vec<Channel>,
}

impl Tally {
    fn new(channels: usize) -> Self {
        Tally { routes: vec![0; channels], touched: Vec::new() }
    }

    fn count(&mut self, routes: &ServerRoutes, placement: &Placement, below: bool) {
        for channel in self.touched.drain(..) {
            self.routes[channel as usize] = 0;
        }
        let mut nodes = placement.nodes().to_vec();
        nodes.sort_unstable();
        nodes.dedup();
        for each in nodes.iter().flat_map(|&node| &routes.of_node[node as usize]) {
            if below && !each.below {
                continue;
            }
            let count = &mut self.routes[each.channel as usize];
            if *count == 0 {
                self.touched.push(each.channel);
            }
            *count += u64::from(each.routes);
        }
    }

    /// The links between the nodes of a job and the switches where its routes turn.
    fn links_below(&mut self, routes: &ServerRoutes, placement: &Placement) -> Vec<Channel> {
        self.count(routes, placement, true);
        self.touched.clone()
    }

    fn bandwidth_alone(&mut self, routes: &ServerRoutes, placement: &Placement) -> Option<f64> {
        self.count(routes, placement, false);
        let (mut ends, mut all) = (0.0f64, 0.0f64);
        for &channel in &self.touched {
            let time = self.routes[channel as usize] as f64 / routes.capacity[channel as usize];
            all = all.max(time);
            if routes.is_end[channel as usize] {
                ends = ends.max(time);
            }
        }
        (all > 0.0).then(|| ends / all)
    }
}

/// The jobs on one direction of a link so far.
#[derive(Clone)]
struct LinkUsers {
    /// When the last of these jobs leaves it.
    until: f64,
    /// The last job, if it has not shared the link yet.
    unmet: Option<usize>,
}

impl LinkUsers {
    /// Adds a job and counts shared links. Jobs must be added in order of time.
    fn come(&mut self, job: usize, from: f64, until: f64, shared: &mut [u32]) {
        if self.until > from {
            shared[job] += 1;
            if let Some(other) = self.unmet.take() {
                shared[other] += 1;
            }
        } else {
            self.unmet = Some(job);
        }
        self.until = self.until.max(until);
    }
}
