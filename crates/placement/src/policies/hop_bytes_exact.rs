use std::ops::Range;

use topolane_fabric::{GroupIndex, NodeIndex};

use crate::group_costs::{GroupLoad, LeastCosts, hops};
use crate::least_sums::FORBIDDEN;
use crate::{Choice, FreeSlots, Occupancy, Policy, Refusal, Request, SlotCosts, Traits};

/// The least hop-bytes there can be for uniform traffic, members already running included. Of
/// placements with equal hops the one with fewest pairs of members on different nodes, then the
/// tightest: the least slots left over in the groups that it touches. It keeps off links that an
/// isolating policy gave to another job. Exact on one site and on sites that are all one WAN
/// hop apart.
///
/// With `isolated`, no link carries two placements' traffic whatever the routing: no group is
/// crossed by two. It finds such a place wherever there is one. Groups that running members cross
/// already do not count: nothing that is placed now changes that.
#[derive(Debug, Clone, Copy, Default)]
pub struct HopBytesExact {
    /// Whether it keeps off every link that another job may use, not only off those given away.
    pub isolated: bool,
}

impl HopBytesExact {
    /// What `ask` finds among all placements that are allowed.
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

// A method's own path is of one lifetime only.
#[allow(clippy::redundant_closure_for_method_calls)]
impl Policy for HopBytesExact {
    fn name(&self) -> &'static str {
        if self.isolated { "isolated-hop-bytes" } else { "hop-bytes-exact" }
    }

    fn traits(&self) -> Traits {
        if self.isolated { Traits::ISOLATES } else { Traits::COUNT_ONLY }
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

/// Whether the free slots of groups decide if a request can be isolated: no member runs yet, and every slot is on a node of its own.
fn is_judged_by_counts(request: &Request) -> bool {
    request.members.is_empty() && request.beyond == 0 && !request.stacked
}

/// Whether a request may find a place in which no group is crossed by two placements. True is certain where counts
/// [judge](is_judged_by_counts): inside a group, a job that crosses the groups below may take all free slots of those that no
/// other job crosses.
fn may_have_room(request: &Request, free: &FreeSlots<'_>, occupancy: &Occupancy) -> bool {
    if !is_judged_by_counts(request) {
        return true;
    }
    let (wanted, top) = (request.nodes, free.fabric().depth());
    let room = Room { free, occupancy };
    for level in 1..=top {
        if free.groups_with(level, wanted).any(|group| room.inside(level, group, wanted)) {
            return true;
        }
    }
    // Over sites.
    room.of_uncrossed(top, 0..free.fabric().sites(), wanted) >= wanted
}

/// Slots for jobs that share no link.
struct Room<'a> {
    free: &'a FreeSlots<'a>,
    occupancy: &'a Occupancy,
}

impl Room<'_> {
    /// Whether a job that stays inside a group finds `wanted` slots.
    fn inside(&self, level: usize, group: GroupIndex, wanted: u32) -> bool {
        level == 1 || {
            let children = self.free.fabric().children(level, group);
            self.of_uncrossed(level - 1, children, wanted) >= wanted
        }
    }

    /// Slots for a job that crosses the groups, in those that no other job crosses. Less than `wanted` where fewer are free.
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

/// The leaf that has room for the whole job and the fewest slots left over in it and in the groups around it: a job on one leaf
/// crosses nothing, so its hops are the least. `None` where no leaf has room, or where running members count.
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

/// Slots are counted in units that keep the sum of hops, pairs and slots below 2^64.
fn unit(free: &FreeSlots<'_>) -> u32 {
    1 + free.total() / 65_536
}

/// Hops first, then pairs on different nodes, then slots left over; a group that the placement
/// would be the first of its members to cross and that is `taken` by others is forbidden.
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
    // No sum of hops is above this.
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
        /// Where a leaf has room, the leaf chosen at once is the one that weighing up the whole tree finds.
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
