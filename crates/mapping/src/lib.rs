//! Maps ranks to slots so that hop-bytes are small.
//!
//! Hop-bytes are the sum over all messages of hops times bytes. Minimising them is a quadratic assignment problem, so
//! several methods are tried: rank order, recursive bipartition and multisection, each improved by swaps. The best
//! result is checked and returned; it is never worse than rank order.

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
    /// Links between switches: 0 on one leaf, 2 in one pod, 4 across pods.
    #[default]
    BetweenSwitches,
    /// Also the links of nodes: 0 on one node, 2 on one leaf, 4 in one pod, 6 across pods.
    All,
}

impl Links {
    /// The number of node links between two nodes: up to the leaf, and down.
    pub(crate) const NODE_LINKS: u32 = 2;

    /// The hops between two nodes; `None` if no link connects them.
    pub fn hops(self, fabric: &Fabric, a: NodeIndex, b: NodeIndex) -> Option<u32> {
        let node_links = if self == Links::All && a != b { Links::NODE_LINKS } else { 0 };
        fabric.hops(a, b).map(|hops| hops + node_links)
    }
}

/// Settings of the search for a mapping.
#[derive(Debug, Clone, Copy, Default)]
pub struct MappingSettings {
    /// The amount of work to spend.
    pub effort: Effort,
    /// The seed of all random draws.
    pub seed: u64,
    /// The number of threads; 0 for one per core. The result does not depend on it.
    pub threads: usize,
    /// The links that count as hops.
    pub links: Links,
}

/// Maps the ranks of `traffic` to slots. Slot i is on `nodes[i]`, in rank order; there may be more slots than ranks.
///
/// # Errors
/// More ranks than slots; a node that is not on the machine; nodes that no link connects.
pub fn map(
    fabric: &Fabric,
    nodes: &[NodeIndex],
    traffic: &Traffic,
    search: MappingSettings,
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
    let slots = slots::PlacedSlots::new(fabric, nodes, search.links)?;
    let graph = graph::Graph::of_traffic(traffic, nodes.len());
    let problem = problem::MappingProblem::new(graph, slots.distances(), &slots.seats);
    let members = portfolio::run(&problem, &slots, search);
    Ok(Mapping::best(fabric, nodes, traffic, search.links, &slots, members))
}

/// Divides ranks into parts of exactly `sizes[i]` ranks with few bytes between parts, by recursive bisection and pair
/// swaps. Returns the part of every rank. It serves programs, or their guests, at several sites.
///
/// # Errors
/// The sizes do not add up to the number of ranks.
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
