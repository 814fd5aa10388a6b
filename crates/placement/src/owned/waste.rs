//! What a placement leaves behind that others cannot use.

use crate::owned::board::Board;
use crate::owned::fill::cost;
use crate::{Occupancy, Placement, Share};

/// What the leaves lose for those who come when the job is placed, for each node that it takes: see `fill::cost`; at least 0, and 0
/// for a job that shares its nodes.
pub fn waste(placement: &Placement, occupancy: &Occupancy) -> f64 {
    if placement.share() != Share::Whole {
        return 0.0;
    }
    let fabric = occupancy.fabric();
    let mut nodes = placement.nodes().to_vec();
    nodes.sort_unstable();
    let own = |&&cable: &&u32| {
        let place = fabric.cable_place(cable);
        place.and_then(|(level, group, ..)| (level == 1).then_some(group))
    };
    let mut lanes: Vec<u32> = placement.links().iter().filter_map(|cable| own(&cable)).collect();
    lanes.sort_unstable();
    let lost = nodes.chunk_by(|&one, &other| fabric.group(1, one) == fabric.group(1, other));
    let lost = lost.map(|nodes| {
        let leaf = fabric.group(1, nodes[0]);
        let owned =
            lanes.partition_point(|&of| of <= leaf) - lanes.partition_point(|&of| of < leaf);
        let leaf = Board::leaf(fabric, occupancy, leaf, occupancy.idle_in(1, leaf));
        cost(&leaf, nodes.len() as u32, owned as u32)
    });
    (lost.sum::<f64>() / nodes.len() as f64).max(0.0)
}
