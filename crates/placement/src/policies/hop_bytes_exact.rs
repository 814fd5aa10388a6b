use std::ops::Range;

use topolane_fabric::{GroupIndex, NodeIndex};

use crate::group_costs::{GroupLoad, LeastCosts, hops};
use crate::least_sums::FORBIDDEN;
use crate::{Choice, FreeSlots, Occupancy, Policy, Refusal, Request, SlotCosts, Traits, Wirings};

/// Finds a placement with the least possible hop-bytes for uniform traffic, including running members. Among placements
/// with equal hops it takes the one with fewest pairs of members on different nodes, then the tightest: the fewest free
/// slots left in the groups that it uses. It avoids links that an isolating policy gave to another job. Exact on one
/// site, and on sites that are all one WAN hop apart.
///
/// With `isolated`, no link carries traffic of two placements, whatever the routing: two placements never cross the
/// same group. It finds such a placement whenever one exists. Groups that running members already cross are not
/// checked, because no new placement changes that.
#[derive(Debug, Clone, Copy, Default)]
pub struct HopBytesExact {
    /// Whether to avoid every link that another job may use, not only links that a job owns.
    pub isolated: bool,
}

impl HopBytesExact {
    /// Returns what `ask` finds among all allowed placements.
    fn among<T>(
        self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
        ask: impl Fn(&LeastCosts<'_>) -> Option<T>,
    ) -> Result<T, Refusal> {
        if self.isolated && !may_have_room(request, free, occupancy) {
            return Err(free.would_share_links(request));
        }
        let taken = |load: &GroupLoad| {
            let (level, group) = (load.level, load.group);
            occupancy.isolated_crossing(level, group) > 0
                || self.isolated && occupancy.crossing(level, group) > 0
        };
        let cost = cost(request, free, taken);
        ask(&LeastCosts::new(request, free, &cost)).ok_or_else(|| free.would_share_links(request))
    }
}

// The path of a method fits one lifetime only, so closures are needed.
#[allow(clippy::redundant_closure_for_method_calls)]
impl Policy for HopBytesExact {
    fn name(&self) -> &'static str {
        if self.isolated { "isolated-hop-bytes" } else { "hop-bytes-exact" }
    }

    fn traits(&self) -> Traits {
        if self.isolated {
            Traits::ISOLATES
        } else {
            Traits { wirings: Wirings::TREE, ..Traits::COUNT_ONLY }
        }
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<Choice, Refusal> {
        if let Some(nodes) = on_one_leaf(request, free) {
            return Ok(Choice::nodes(nodes));
        }
        self.among(request, free, occupancy, |least| least.nodes().map(Choice::nodes))
    }

    fn has_place(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<(), Refusal> {
        if self.isolated && is_judged_by_counts(request) && may_have_room(request, free, occupancy)
        {
            return Ok(());
        }
        self.among(request, free, occupancy, |least| (least.least() < FORBIDDEN).then_some(()))
    }

    fn slot_costs(&self) -> Option<&dyn SlotCosts> {
        Some(self)
    }
}

#[allow(clippy::redundant_closure_for_method_calls)]
impl SlotCosts for HopBytesExact {
    fn costs(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<Vec<f64>, Refusal> {
        self.among(request, free, occupancy, |least| least.costs())
    }
}

/// Whether the free slots per group decide if a request can be isolated: no member runs yet, and every slot is on a
/// node of its own.
fn is_judged_by_counts(request: &Request) -> bool {
    request.members.is_empty() && request.beyond == 0 && !request.stacked
}

/// Whether a request may find a placement that shares no crossed group. If counts decide
/// ([judge](is_judged_by_counts)), true is certain: a job that crosses the groups below may take all free slots of
/// those that no other job crosses.
fn may_have_room(request: &Request, free: &FreeSlots<'_>, occupancy: &Occupancy) -> bool {
    if !is_judged_by_counts(request) {
        return true;
    }
    let (wanted, top) = (request.nodes, free.fabric().depth());
    let room = UnsharedSlots { free, occupancy };
    for level in 1..=top {
        if free.groups_with(level, wanted).any(|group| room.inside(level, group, wanted)) {
            return true;
        }
    }
    // The last possibility is a job over several sites.
    room.of_uncrossed(top, 0..free.fabric().sites(), wanted) >= wanted
}

/// Counts slots for a job that shares no link.
struct UnsharedSlots<'a> {
    free: &'a FreeSlots<'a>,
    occupancy: &'a Occupancy,
}

impl UnsharedSlots<'_> {
    /// Whether a job that stays inside a group finds `wanted` slots.
    fn inside(&self, level: usize, group: GroupIndex, wanted: u32) -> bool {
        level == 1 || {
            let children = self.free.fabric().children(level, group);
            self.of_uncrossed(level - 1, children, wanted) >= wanted
        }
    }

    /// Slots for a job that crosses these groups: the free slots of groups that no other job crosses. Counting stops at
    /// `wanted`.
    fn of_uncrossed(&self, level: usize, groups: Range<GroupIndex>, wanted: u32) -> u32 {
        let counts = self.free.counts_of(level);
        let uncrossed = groups.filter(|&group| {
            counts[group as usize] > 0 && self.occupancy.crossing(level, group) == 0
        });
        let count = |group: GroupIndex| counts[group as usize];
        let most = uncrossed.clone().map(count).fold(0, u32::saturating_add);
        if level == 1 || most < wanted {
            return most;
        }
        let inside = |group| {
            let children = self.free.fabric().children(level, group);
            self.of_uncrossed(level - 1, children, 0)
        };
        uncrossed.map(inside).fold(0, u32::saturating_add)
    }
}

/// A shortcut: returns the leaf that can hold the whole job and leaves the fewest free slots in it and in the groups
/// around it. A job on one leaf crosses no group, so its hops are the least. `None` if no leaf can hold it, or if
/// running members matter.
fn on_one_leaf(request: &Request, free: &FreeSlots<'_>) -> Option<Vec<NodeIndex>> {
    if !is_judged_by_counts(request) {
        return None;
    }
    let (fabric, unit) = (free.fabric(), unit(free));
    let left_over = |&leaf: &GroupIndex| {
        let mut group = leaf;
        let mut sum = 0;
        for level in 1..fabric.depth() {
            sum += u64::from((free.counts_of(level)[group as usize] - request.nodes) / unit);
            group = fabric.parent(level, group);
        }
        sum
    };
    let leaf = free.groups_with(1, request.nodes).min_by_key(left_over)?;
    let mut nodes = Vec::with_capacity(request.nodes as usize);
    free.take(1, leaf, request.nodes, &mut nodes);
    Some(nodes)
}

/// The number of slots per unit of leftover, chosen so that the cost (hops, pairs and slots) stays below 2^64.
fn unit(free: &FreeSlots<'_>) -> u32 {
    1 + free.total() / 65_536
}

/// Returns the cost function: hops first, then pairs on different nodes, then free slots left over. Crossing a group
/// that is `taken` by others is forbidden, unless running members cross it already.
fn cost<'a>(
    request: &Request,
    free: &'a FreeSlots<'_>,
    taken: impl Fn(&GroupLoad) -> bool + 'a,
) -> impl Fn(GroupLoad) -> u64 + 'a {
    let fabric = free.fabric();
    let unit = unit(free);
    let leftovers = 65_536 * fabric.depth() as u64;
    let running = request.members.len() as u64 + u64::from(request.beyond);
    let all = u64::from(request.nodes) + running;
    // An upper bound of any sum of hops.
    let most = 2 * all.saturating_mul(all).saturating_mul(fabric.depth() as u64);
    let on_nodes = if request.stacked { all.saturating_mul(all).saturating_add(1) } else { 1 };
    let fits = most.checked_mul(on_nodes).and_then(|sum| sum.checked_mul(2 * leftovers)).is_some();
    let on_nodes = if fits { on_nodes } else { 1 };
    move |load| {
        let parted = load.parted();
        if parted > 0 && !load.crossed_already() && taken(&load) {
            return FORBIDDEN;
        }
        if load.level == 0 {
            return if on_nodes > 1 { parted * leftovers } else { 0 };
        }
        let touched = load.taken > 0 && load.level < fabric.depth();
        let left_over = if touched { (load.slots - load.taken) / unit } else { 0 };
        parted * hops(fabric, &load) * on_nodes * leftovers + u64::from(left_over)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use proptest::prelude::*;
    use topolane_fabric::{Fabric, pgft};

    use super::{cost, on_one_leaf};
    use crate::group_costs::LeastCosts;
    use crate::{Occupancy, Placement, Request, Share};

    proptest! {
        /// The shortcut for one leaf finds the same placement as the search over the whole tree.
        #[test]
        fn one_leaf_is_as_good_as_the_whole_tree(
            busy in prop::collection::vec(prop::bool::weighted(0.6), 4 * 3 * 3),
            wanted in 1u32..5,
        ) {
            let fabric = Arc::new(Fabric::build(&pgft("n", &[4, 3, 3], &[1, 2, 2], &[1; 3])).unwrap());
            let mut occupancy = Occupancy::new(Arc::clone(&fabric));
            let busy: Vec<u32> =
                (0..).zip(&busy).filter_map(|(node, &busy)| busy.then_some(node)).collect();
            occupancy.claim(&Placement::new(&fabric, busy, Share::Whole)).unwrap();
            let request = Request::whole_nodes(0, wanted, 1.0);
            let free = occupancy.free_slots(&request);
            let found = on_one_leaf(&request, &free);
            prop_assume!(found.is_some());
            let crosses = |_: &_| true;
            let cost = cost(&request, &free, crosses);
            prop_assert_eq!(found, LeastCosts::new(&request, &free, &cost).nodes());
        }
    }
}
