//! The leaves that a search chooses from, and the links that the request needs.

use topolane_fabric::{Fabric, GroupIndex};

use crate::dedicated::condition::need::Need;
use crate::dedicated::search::leaf::{Leaf, Weights};
use crate::{FreeSlots, Occupancy, Request};

/// The leaves with free slots, and the links that the request needs.
pub struct Candidates<'a> {
    pub fabric: &'a Fabric,
    pub occupancy: &'a Occupancy,
    pub wanted: u32,
    pub need: Need,
    pub weights: Weights,
    /// Whether any placement will do, so that a search stops at the first one.
    pub any: bool,
    /// Whether to skip `fallback_pods`, the last strategy over several pods.
    pub tidy: bool,
    /// The leaves in the order of the fabric.
    pub leaves: Vec<Leaf>,
}

impl<'a> Candidates<'a> {
    pub fn new(
        request: &Request,
        free: &FreeSlots<'a>,
        occupancy: &'a Occupancy,
        weights: Weights,
        bandwidth_share: f64,
    ) -> Self {
        let leaves = 0..free.fabric().groups(1);
        Candidates::among(request, free, occupancy, weights, bandwidth_share, leaves)
    }

    /// Returns candidates on some leaves only, which must be in order.
    pub fn among(
        request: &Request,
        free: &FreeSlots<'a>,
        occupancy: &'a Occupancy,
        weights: Weights,
        bandwidth_share: f64,
        leaves: impl Iterator<Item = GroupIndex>,
    ) -> Self {
        let fabric = free.fabric();
        let counts = free.counts_of(1);
        let mut able = Vec::with_capacity(leaves.size_hint().1.unwrap_or(0));
        able.extend(leaves.filter_map(|leaf| {
            let idle = counts[leaf as usize];
            (idle > 0).then(|| Candidates::leaf(fabric, occupancy, leaf, idle))
        }));
        let need = Need::new(fabric, request.nodes, bandwidth_share);
        Candidates {
            fabric,
            occupancy,
            wanted: request.nodes,
            need,
            weights,
            any: false,
            tidy: false,
            leaves: able,
        }
    }

    /// Returns the candidates for a search that only asks whether a placement exists.
    #[must_use]
    pub fn for_any(self) -> Self {
        Candidates { any: true, ..self }
    }

    pub fn leaf(fabric: &Fabric, occupancy: &Occupancy, leaf: GroupIndex, idle: u32) -> Leaf {
        let is_top = fabric.depth() == 1;
        let slots = if is_top { 0 } else { occupancy.free_uplink_slots(1, leaf, 0) };
        let pod = if is_top { leaf } else { fabric.parent(1, leaf) };
        let untouched = idle as usize == fabric.node_range(1, leaf).len()
            && (is_top || slots == occupancy.empty().free_uplink_slots(1, leaf, 0));
        Leaf { leaf, pod, idle, slots, untouched }
    }

    /// Whether these leaves could hold the job if they all had the same slots free. A quick test: false is certain,
    /// true is not.
    pub fn may_hold(&self, leaves: &[Leaf]) -> bool {
        let idle: u32 = leaves.iter().map(|leaf| leaf.idle).sum();
        if idle < self.wanted {
            return false;
        }
        // A leaf with over half of the job needs slots only for the nodes on other leaves.
        let usable = |leaf: &Leaf| leaf.idle.min(self.need.nodes(leaf.slots.count_ones()));
        let most = leaves.iter().map(|leaf| leaf.idle).max().unwrap_or(0);
        2 * most >= self.wanted || leaves.iter().map(usable).sum::<u32>() >= self.wanted
    }

    /// Returns the leaves of each third-level group. Links above that level are never dedicated.
    pub fn tops(&self) -> impl Iterator<Item = &[Leaf]> {
        let top = |leaf: &Leaf| self.fabric.parent(2, leaf.pod);
        self.leaves.chunk_by(move |one, other| top(one) == top(other))
    }

    /// Returns the leaves of each pod.
    pub fn pods(&self) -> impl Iterator<Item = &[Leaf]> {
        self.leaves.chunk_by(|one, other| one.pod == other.pod)
    }

    /// For each plane, the free uplink slots of a pod to the core.
    pub fn core(&self, pod: GroupIndex) -> Vec<u64> {
        self.core_links(pod).collect()
    }

    /// Same as [`Candidates::core`], as an iterator.
    pub fn core_links(&self, pod: GroupIndex) -> impl Iterator<Item = u64> + '_ {
        let width = self.fabric.rail_width(self.fabric.site_of_group(2, pod), 2);
        (0..width).map(move |plane| self.occupancy.free_uplink_slots(2, pod, plane))
    }

    /// Parallel cables from a leaf to each second-level switch of its pod.
    pub fn parallel(&self, leaf: GroupIndex) -> u32 {
        self.fabric.cabling(self.fabric.site_of_group(1, leaf), 1).cables
    }
}
