//! What a placement takes from later jobs beyond its nodes. Of several placements the search takes the one of least cost.

use topolane_fabric::GroupIndex;

use crate::dedicated::search::candidates::Candidates;
use crate::dedicated::search::leaf::Weights;
use crate::{LinkPlan, Occupancy, Placement, Share};

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
