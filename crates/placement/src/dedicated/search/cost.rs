//! The cost of a placement: what it takes from later jobs in addition to its nodes. The search takes the cheapest of
//! the placements that it finds.

use topolane_fabric::GroupIndex;

use crate::dedicated::search::candidates::Candidates;
use crate::dedicated::search::leaf::Weights;
use crate::{LinkPlan, Occupancy, Placement, Share};

/// The cost of a placement, divided by the nodes that it takes. At least 0; exactly 0 for a job that shares its nodes.
pub fn waste(weights: &Weights, placement: &Placement, occupancy: &Occupancy) -> f64 {
    let fabric = occupancy.fabric();
    let mut nodes = placement.nodes().to_vec();
    nodes.sort_unstable();
    // A placement keeps its links in ascending order.
    let links = placement.links();
    // A slot is a cable in every rail; count the first rail only.
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

/// The cost of a plan, as in [`waste`].
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

/// The cost of the nodes and slots taken on each leaf. The leaves must be in order.
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
