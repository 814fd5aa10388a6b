//! What a placement takes from later jobs beyond its nodes. Of several placements the search takes the one of least cost.

use topolane_fabric::GroupIndex;

use crate::dedicated::search::candidates::{Candidates, Leaf};
use crate::{LinkPlan, Occupancy, Placement, Share};

/// The weights of the cost, in nodes.
#[derive(Debug, Clone, Copy)]
pub struct Weights {
    /// Of breaking into a leaf that no job has touched.
    pub untouched_leaf: f64,
    /// Of each free node that is left on a leaf.
    pub left_over_node: f64,
    /// Of each uplink to the core that the job owns and no flow needs.
    pub core_link: f64,
    /// Of each pod that the job is in.
    pub pod: f64,
}

/// The weights of the policy. docs/explanation/dedicated-links.md ("The weights of the cost") has what others give, measured
/// by `cargo run --release -p topolane-simulator --example cost_weights`.
impl Default for Weights {
    fn default() -> Self {
        Weights { untouched_leaf: 4.0, left_over_node: 0.02, core_link: 0.3, pod: 2.0 }
    }
}

impl Weights {
    /// What it costs to take so many nodes and uplink slots of a leaf: by how much more than the nodes taken it cuts what jobs
    /// over several leaves may have there, the free nodes that have slots.
    pub fn cost(&self, leaf: &Leaf, nodes: u32, slots: u32) -> f64 {
        let free = leaf.slots.count_ones();
        let usable = |idle: u32, free: u32| f64::from(idle.min(free));
        let lost = usable(leaf.idle, free) - usable(leaf.idle - nodes, free.saturating_sub(slots));
        let left = leaf.idle - nodes;
        let broken = if leaf.untouched && left > 0 { self.untouched_leaf } else { 0.0 };
        lost - f64::from(nodes) + broken + self.left_over_node * f64::from(left)
    }
}

/// The cost of a placement on its leaves for each node that it takes; at least 0, and 0 for a job that shares its nodes.
pub fn waste(weights: &Weights, placement: &Placement, occupancy: &Occupancy) -> f64 {
    let fabric = occupancy.fabric();
    let mut nodes = placement.nodes().to_vec();
    nodes.sort_unstable();
    // Ascending, as a placement has its links.
    let links = placement.links();
    // A slot is a cable in every rail: those of the first are counted.
    let slots = |leaf| {
        if links.is_empty() {
            return 0;
        }
        let uplinks = fabric.uplinks(1, leaf);
        let end = fabric.cable(1, leaf, 1, 0, 0).unwrap_or(uplinks.end);
        links.partition_point(|&link| link < end)
            - links.partition_point(|&link| link < uplinks.start)
    };
    let leaves = nodes.chunk_by(|&one, &other| fabric.group(1, one) == fabric.group(1, other));
    let leaves = leaves.map(|nodes| {
        let leaf = fabric.group(1, nodes[0]);
        (leaf, nodes.len() as u32, slots(leaf) as u32)
    });
    waste_on(weights, placement.share(), leaves, occupancy)
}

/// The same of a plan.
pub fn waste_of_plan(
    weights: &Weights,
    share: &Share,
    plan: &LinkPlan,
    occupancy: &Occupancy,
) -> f64 {
    let leaves = plan.leaves().iter();
    let leaves = leaves.map(|&(leaf, nodes, slots)| (leaf, nodes, slots.count_ones()));
    waste_on(weights, share, leaves, occupancy)
}

/// The same of leaves in order, with the nodes and slots that it takes of each.
fn waste_on(
    weights: &Weights,
    share: &Share,
    leaves: impl Iterator<Item = (GroupIndex, u32, u32)>,
    occupancy: &Occupancy,
) -> f64 {
    if !share.is_whole() {
        return 0.0;
    }
    let mut taken = 0;
    let lost = leaves.map(|(leaf, nodes, slots)| {
        taken += nodes;
        let idle = occupancy.idle_in(1, leaf);
        let of_leaf = Candidates::leaf(occupancy.fabric(), occupancy, leaf, idle);
        weights.cost(&of_leaf, nodes, slots)
    });
    let lost = lost.sum::<f64>();
    (lost / f64::from(taken)).max(0.0)
}
