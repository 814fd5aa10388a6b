use std::ops::Range;

use topolane_fabric::{GroupIndex, NodeIndex};

use crate::group_costs::{GroupLoad, LeastCosts};
use crate::{Choice, FreeSlots, Occupancy, Policy, Refusal, Request, SlotCosts, Traits};

/// Spreads members as far apart as possible at every level of the tree, including running members: for groups that must
/// survive the loss of a leaf or a pod. The opposite of hop-bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spread;

impl Policy for Spread {
    fn name(&self) -> &'static str {
        "spread"
    }

    fn traits(&self) -> Traits {
        Traits::COUNT_ONLY
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        _: &Occupancy,
    ) -> Result<Choice, Refusal> {
        if request.members.is_empty() && request.beyond == 0 && !request.stacked {
            return Ok(Choice::nodes(Spreading::over(free).take(request.nodes)));
        }
        let nodes = LeastCosts::new(request, free, &together).nodes();
        nodes.map(Choice::nodes).ok_or_else(|| free.would_share_links(request))
    }

    fn slot_costs(&self) -> Option<&dyn SlotCosts> {
        Some(self)
    }
}

impl SlotCosts for Spread {
    fn costs(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        _: &Occupancy,
    ) -> Result<Vec<f64>, Refusal> {
        let costs = LeastCosts::new(request, free, &together).costs();
        costs.ok_or_else(|| free.would_share_links(request))
    }
}

/// A placement that grows by one slot at a time. Each slot goes where it adds the fewest pairs within one group; among
/// equals to the groups of lowest index. Each further slot of a group adds at least as many pairs as the one before, so
/// no other placement of the same number of slots has fewer pairs.
struct Spreading<'a> {
    free: &'a FreeSlots<'a>,
    /// By level: the slots taken in every group. Level 0 is empty.
    taken: Vec<Vec<u32>>,
    /// By level: the pairs that the next slot of every group would add, in it and below; [`FULL`] if it has none.
    next: Vec<Vec<u32>>,
}

const FULL: u32 = u32::MAX;

impl<'a> Spreading<'a> {
    fn over(free: &'a FreeSlots<'a>) -> Self {
        let depth = free.fabric().depth();
        let mut next = vec![Vec::new()];
        // A group's first slot adds one pair with itself at each level up to its own.
        next.extend((1..=depth).map(|level| {
            let adds = |&count: &u32| if count > 0 { level as u32 } else { FULL };
            free.counts_of(level).iter().map(adds).collect()
        }));
        let none = |level| vec![0; if level > 0 { free.counts_of(level).len() } else { 0 }];
        Spreading { free, taken: (0..=depth).map(none).collect(), next }
    }

    /// The nodes of `slots` slots, ascending. At least that number must be free.
    fn take(mut self, slots: u32) -> Vec<NodeIndex> {
        let (fabric, top) = (self.free.fabric(), self.free.fabric().depth());
        for _ in 0..slots {
            let mut group = self.least(top, 0..fabric.sites());
            for level in (1..top).rev() {
                group = self.least(level, fabric.children(level + 1, group));
            }
            for level in 1..=top {
                self.add(level, group);
                group = if level < top { fabric.parent(level, group) } else { group };
            }
        }
        let mut nodes = Vec::with_capacity(slots as usize);
        for (leaf, &taken) in (0..).zip(&self.taken[1]) {
            if taken > 0 {
                self.free.take(1, leaf, taken, &mut nodes);
            }
        }
        nodes
    }

    /// The group whose next slot adds the fewest pairs, the first among equals.
    fn least(&self, level: usize, groups: Range<GroupIndex>) -> GroupIndex {
        let first = groups.start;
        groups.min_by_key(|&group| self.next[level][group as usize]).unwrap_or(first)
    }

    fn add(&mut self, level: usize, group: GroupIndex) {
        let index = group as usize;
        self.taken[level][index] += 1;
        let taken = self.taken[level][index];
        self.next[level][index] = if taken == self.free.counts_of(level)[index] {
            FULL
        } else {
            let below = if level == 1 {
                0
            } else {
                let least = self.least(level - 1, self.free.fabric().children(level, group));
                self.next[level - 1][least as usize]
            };
            // The step from n to n + 1 slots adds (n + 1)^2 - n^2.
            (2 * taken + 1).saturating_add(below)
        };
    }
}

/// Pairs of members inside this group.
fn together(load: GroupLoad) -> u64 {
    load.inside * load.inside
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use proptest::prelude::*;
    use topolane_fabric::{Fabric, pgft};

    use super::{Spreading, together};
    use crate::group_costs::LeastCosts;
    use crate::{Occupancy, Placement, Request, Share};

    proptest! {
        /// Adding slot by slot finds the same placement as the search over all placements.
        #[test]
        fn slot_by_slot_is_as_good_as_all_at_once(
            busy in prop::collection::vec(prop::bool::weighted(0.6), 4 * 3 * 3),
            wanted in any::<prop::sample::Index>(),
        ) {
            let fabric = Arc::new(Fabric::build(&pgft("n", &[4, 3, 3], &[1, 2, 2], &[1; 3])).unwrap());
            let mut occupancy = Occupancy::new(Arc::clone(&fabric));
            let busy: Vec<u32> =
                (0..).zip(&busy).filter_map(|(node, &busy)| busy.then_some(node)).collect();
            occupancy.claim(&Placement::new(&fabric, busy, Share::Whole)).unwrap();
            prop_assume!(occupancy.idle_nodes() > 0);
            let wanted = 1 + wanted.index(occupancy.idle_nodes() as usize) as u32;
            let request = Request::whole_nodes(0, wanted, 1.0);
            let free = occupancy.free_slots(&request);
            let all = LeastCosts::new(&request, &free, &together).nodes();
            prop_assert_eq!(Some(Spreading::over(&free).take(wanted)), all);
        }
    }
}
