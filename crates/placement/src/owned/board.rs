//! What a request sees of the machine when links are owned.

use topolane_fabric::{Fabric, GroupIndex};

use crate::owned::need::Need;
use crate::{FreeSlots, Occupancy, Request};

/// A leaf with free slots.
#[derive(Debug, Clone, Copy)]
pub struct Leaf {
    pub leaf: GroupIndex,
    pub pod: GroupIndex,
    pub idle: u32,
    /// Free lanes.
    pub lanes: u64,
    /// Whether it is as it would be with nobody on the machine.
    pub untouched: bool,
}

/// The free leaves and what the request wants.
pub struct Board<'a> {
    pub fabric: &'a Fabric,
    pub occupancy: &'a Occupancy,
    pub wanted: u32,
    pub need: Need,
    /// In order.
    pub leaves: Vec<Leaf>,
}

impl<'a> Board<'a> {
    pub fn new(
        request: &Request,
        free: &FreeSlots<'a>,
        occupancy: &'a Occupancy,
        bandwidth_share: f64,
    ) -> Self {
        let fabric = free.fabric();
        let leaves = (0..fabric.groups(1)).filter_map(|leaf| {
            let idle = free.count(1, leaf);
            (idle > 0).then(|| Board::leaf(fabric, occupancy, leaf, idle))
        });
        let leaves = leaves.collect();
        let need = Need::new(fabric, request.nodes, bandwidth_share);
        Board { fabric, occupancy, wanted: request.nodes, need, leaves }
    }

    pub fn leaf(fabric: &Fabric, occupancy: &Occupancy, leaf: GroupIndex, idle: u32) -> Leaf {
        let is_top = fabric.depth() == 1;
        let lanes = if is_top { 0 } else { occupancy.free_lanes(1, leaf, 0) };
        let pod = if is_top { leaf } else { fabric.parent(1, leaf) };
        let untouched = idle as usize == fabric.node_range(1, leaf).len()
            && (is_top || lanes == occupancy.empty().free_lanes(1, leaf, 0));
        Leaf { leaf, pod, idle, lanes, untouched }
    }

    /// Whether so many leaves could hold the job if their lanes went together: told by their numbers alone.
    pub fn may_hold(&self, leaves: &[Leaf]) -> bool {
        let idle: u32 = leaves.iter().map(|leaf| leaf.idle).sum();
        if idle < self.wanted {
            return false;
        }
        // One leaf with half of the job may hold more than its lanes say.
        let usable = |leaf: &Leaf| leaf.idle.min(self.need.nodes(leaf.lanes.count_ones()));
        let most = leaves.iter().map(|leaf| leaf.idle).max().unwrap_or(0);
        2 * most >= self.wanted || leaves.iter().map(usable).sum::<u32>() >= self.wanted
    }

    /// The leaves in runs of one pod each.
    pub fn pods(&self) -> impl Iterator<Item = &[Leaf]> {
        self.leaves.chunk_by(|one, other| one.pod == other.pod)
    }

    /// Free lanes towards the core of every plane of a pod.
    pub fn core(&self, pod: GroupIndex) -> Vec<u64> {
        let width = self.fabric.width(self.fabric.site_of_group(2, pod), 2);
        (0..width).map(|plane| self.occupancy.free_lanes(2, pod, plane)).collect()
    }

    /// Parallel cables from a leaf to each second-level switch of its pod.
    pub fn parallel(&self, leaf: GroupIndex) -> u32 {
        self.fabric.cabling(self.fabric.site_of_group(1, leaf), 1).cables
    }
}
