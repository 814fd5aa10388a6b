//! Rank to slot: the mapping that takes the fewest hop-bytes.
//!
//! Hop-bytes are the sum over all messages of hops times bytes. To minimise them is the quadratic
//! assignment problem, so this is a portfolio: rank order, recursive bipartition, multisection,
//! each improved by swaps; the best is returned, checked, and never worse than rank order.

mod arrangement;
mod bisection;
mod descent;
mod effort;
mod graph;
mod groups;
mod partition;
mod perturbation;
mod portfolio;
mod problem;
mod qap;
mod result;
mod slots;
mod starts;
#[cfg(test)]
mod tests;

pub use effort::{EFFORTS, Effort};
pub use qap::{Assignment, assign};
pub use result::{Crossed, Mapping};

use topolane_fabric::{Fabric, InputError, NodeIndex};
use topolane_traffic::Traffic;

/// Which links count as hops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Links {
    /// Those between switches: 0 on one leaf, 2 in one pod, 4 across pods.
    #[default]
    BetweenSwitches,
    /// Those of the nodes too: 0 on one node, 2 on one leaf, 4 in one pod, 6 across pods.
    All,
}

impl Links {
    /// Links from a node to its leaf and from a leaf to another of its nodes.
    pub(crate) const NODE_LINKS: u32 = 2;

    /// Hops between two nodes; `None` where no link joins them.
    pub fn hops(self, fabric: &Fabric, a: NodeIndex, b: NodeIndex) -> Option<u32> {
        let node_links = if self == Links::All && a != b { Links::NODE_LINKS } else { 0 };
        fabric.hops(a, b).map(|hops| hops + node_links)
    }
}

/// How to look for a mapping.
#[derive(Debug, Clone, Copy, Default)]
pub struct Search {
    /// How much work to spend.
    pub effort: Effort,
    /// Seed of all that is drawn.
    pub seed: u64,
    /// Threads to work on; 0 for one per core. The answer does not depend on it.
    pub threads: usize,
    /// Which links count.
    pub links: Links,
}

/// Maps the ranks of `traffic` to slots, slot i being on `nodes[i]`, in rank order. There may be
/// more slots than ranks.
///
/// # Errors
/// More ranks than slots; a node that is not on the machine; nodes that no link joins.
pub fn map(
    fabric: &Fabric,
    nodes: &[NodeIndex],
    traffic: &Traffic,
    search: Search,
) -> Result<Mapping, InputError> {
    if let Some(node) = nodes.iter().find(|&&node| node >= fabric.nodes()) {
        return Err(InputError::whole(format!("node {node} is not on the machine")));
    }
    if traffic.ranks() as usize > nodes.len() {
        return Err(InputError::whole(format!(
            "the traffic is that of {} ranks, but there are {} slots",
            traffic.ranks(),
            nodes.len()
        )));
    }
    let slots = slots::Slots::new(fabric, nodes, search.links)?;
    let graph = graph::Graph::of_traffic(traffic, nodes.len());
    let problem = problem::Problem::new(graph, slots.distances(), &slots.seats);
    let members = portfolio::run(&problem, &slots, search);
    Ok(Mapping::best(fabric, nodes, traffic, search.links, &slots, members))
}

/// The part of every rank, part i having exactly `sizes[i]` of them, with few bytes between parts: recursive bisection, then
/// pair swaps. A program's ranks, or guests, at several sites.
///
/// # Errors
/// Sizes that do not add up to the ranks.
pub fn parts(traffic: &Traffic, sizes: &[u32], seed: u64) -> Result<Vec<u32>, InputError> {
    let total: u64 = sizes.iter().map(|&size| u64::from(size)).sum();
    if total != u64::from(traffic.ranks()) {
        let ranks = traffic.ranks();
        return Err(InputError::whole(format!(
            "the parts have {total} ranks, but there are {ranks}"
        )));
    }
    let graph = graph::Graph::of_traffic(traffic, traffic.ranks() as usize);
    let care = Effort::Eco.budget().care;
    Ok(partition::partition(&graph, sizes, care, seed))
}
