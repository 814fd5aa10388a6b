//! Assigns nodes and slots to an equal-parts job once its pods are chosen.

use crate::dedicated::equal_parts::several_pods::{
    EqualPartsPod, EqualPartsShape, EqualPodsSearch,
};
use crate::dedicated::search::plan::DedicatedPlan;
use crate::dedicated::search::slot_sets::lowest;
use crate::dedicated::uplink_slots::bits;

/// The smaller pod of a partition.
pub(super) struct Smaller {
    pub(super) pod: usize,
    pub(super) full: Vec<usize>,
    /// The smaller leaf, if there is one.
    pub(super) last: Option<usize>,
    pub(super) part: u64,
}

impl EqualPodsSearch<'_> {
    /// Returns the partition with the slots that each leaf owns.
    pub(super) fn lay_out(
        &self,
        shape: &EqualPartsShape,
        chosen: &[usize],
        common: &[u64],
        own: u64,
        smallest: Option<&Smaller>,
    ) -> DedicatedPlan {
        let mut plan = DedicatedPlan::default();
        let mut left = self.even.candidates.wanted;
        let mut add = |pod: &EqualPartsPod<'_>, at: usize, most: u32, slots: u64| {
            plan.leaves.push((pod.leaves[at].leaf, most.min(left), slots));
            left -= most.min(left);
        };
        for &pod in chosen {
            let full = self.full_leaves(&self.pods[pod], shape.each, shape.set);
            for at in full.take(shape.leaves as usize) {
                add(&self.pods[pod], at, shape.each, own);
            }
        }
        if let Some(smallest) = smallest {
            let pod = &self.pods[smallest.pod];
            smallest.full.iter().for_each(|&at| add(pod, at, shape.each, own));
            smallest.last.iter().for_each(|&at| add(pod, at, shape.left, smallest.part));
        }
        for plane in 0..common.len() as u32 {
            self.own_core(shape, chosen, (plane, common[plane as usize]), own, smallest, &mut plan);
        }
        plan
    }

    /// Assigns the links to the core in one plane, out of the slots `common` that all pods have free.
    fn own_core(
        &self,
        shape: &EqualPartsShape,
        chosen: &[usize],
        (plane, common): (u32, u64),
        own: u64,
        smallest: Option<&Smaller>,
        plan: &mut DedicatedPlan,
    ) {
        let parallel = self.parallel();
        let in_plane = |slots: u64| {
            let slots = slots.checked_shr(plane * parallel).unwrap_or(0);
            (slots & bits(parallel)).count_ones()
        };
        let links = self.even.core(shape.leaves * in_plane(own));
        let mut part = 0;
        if let Some(smallest) = smallest {
            let slots = shape.fewer * in_plane(own) + in_plane(smallest.part);
            let pod = &self.pods[smallest.pod];
            let free = pod.core.get(plane as usize).copied().unwrap_or(0);
            part = lowest(common & free, self.even.core(slots));
            plan.core.push((pod.pod, plane, part));
        }
        let whole = part | lowest(common & !part, links.saturating_sub(part.count_ones()));
        plan.core.extend(chosen.iter().map(|&pod| (self.pods[pod].pod, plane, whole)));
    }
}
