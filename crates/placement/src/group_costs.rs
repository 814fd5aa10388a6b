//! Finds the cheapest placement if each group has a cost that depends on the number of its members, as hop-bytes do for
//! uniform traffic.

use std::ops::Range;

use topolane_fabric::{Fabric, GroupIndex, NodeIndex};

use crate::free_slots::FreeSlots;
use crate::least_sums::{CostLists, FORBIDDEN, sum};
use crate::request::Request;

/// One group in a possible placement, for a cost function to judge.
#[derive(Debug, Clone, Copy)]
pub struct GroupLoad {
    /// The level of the group. Nodes (level 0) are judged only if several slots may lie on one node.
    pub level: usize,
    /// The group.
    pub group: GroupIndex,
    /// Members of the request's group inside this group, including running ones.
    pub inside: u64,
    /// All members of the request's group.
    pub all: u64,
    /// Running members, inside this group or elsewhere.
    pub running: u64,
    /// Slots of this group that the request takes.
    pub taken: u32,
    /// Slots that this group has.
    pub slots: u32,
}

impl GroupLoad {
    /// The number of pairs of members with one inside this group and one outside.
    pub fn parted(&self) -> u64 {
        self.inside * (self.all - self.inside)
    }

    /// Whether running members are both inside and outside, whatever nodes the request gets.
    pub fn crossed_already(&self) -> bool {
        let inside = self.inside - u64::from(self.taken);
        0 < inside && inside < self.running
    }
}

/// The least sum of a cost per group over all placements of a request. Dynamic programming over the tree, O(depth x
/// groups x slots^2) time. Exact for every cost that is a sum over groups.
pub struct LeastCosts<'a> {
    free: &'a FreeSlots<'a>,
    wanted: u32,
    /// The lowest level whose groups are judged.
    floor: usize,
    /// By level: for every group and number of slots taken there, the least cost of the group and all groups below.
    least: Vec<CostLists>,
    /// By level: for every group, the least cost of the group together with its earlier siblings.
    merged: Vec<CostLists>,
    cost: &'a dyn Fn(GroupLoad) -> u64,
    /// By level: the running members of every group; empty if none run.
    members: Vec<Vec<u32>>,
    running: u64,
}

impl<'a> LeastCosts<'a> {
    /// Computes the costs of all placements of a request. `cost` returns a number, or [`FORBIDDEN`].
    pub fn new(
        request: &Request,
        free: &'a FreeSlots<'a>,
        cost: &'a dyn Fn(GroupLoad) -> u64,
    ) -> Self {
        let fabric = free.fabric();
        let mut members: Vec<Vec<u32>> = Vec::new();
        if !request.members.is_empty() {
            members =
                (0..=fabric.depth()).map(|level| vec![0; fabric.groups(level) as usize]).collect();
        }
        for (level, inside) in members.iter_mut().enumerate() {
            for &member in &request.members {
                inside[fabric.group(level, member) as usize] += 1;
            }
        }
        let mut loads = LeastCosts {
            free,
            wanted: request.nodes,
            floor: usize::from(!request.stacked),
            least: Vec::with_capacity(fabric.depth() + 1),
            merged: Vec::with_capacity(fabric.depth() + 1),
            cost,
            members,
            running: request.members.len() as u64 + u64::from(request.beyond),
        };
        for level in 0..=fabric.depth() {
            let least = loads.of_level(level);
            loads.merged.push(loads.merged_in(level, &least));
            loads.least.push(least);
        }
        loads
    }

    /// The least cost of any placement; [`FORBIDDEN`] if no placement is allowed.
    pub fn least(&self) -> u64 {
        let fabric = self.free.fabric();
        let all = self.merged[fabric.depth()].before(0, fabric.sites() as usize);
        all.get(self.wanted as usize).copied().unwrap_or(FORBIDDEN)
    }

    /// The nodes of a cheapest placement, once per slot, ascending. Among equals, the one with most slots in the groups
    /// of lowest index. `None` if no placement is allowed.
    pub fn nodes(&self) -> Option<Vec<NodeIndex>> {
        if self.least() == FORBIDDEN {
            return None;
        }
        let mut nodes = Vec::with_capacity(self.wanted as usize);
        let fabric = self.free.fabric();
        self.take(fabric.depth(), 0..fabric.sites(), self.wanted, &mut nodes);
        nodes.sort_unstable();
        Some(nodes)
    }

    /// For each node, the least cost of a placement with a slot on it; infinite if there is none. A fraction below 1
    /// orders groups of equal cost by index. `None` if no placement is allowed.
    pub fn costs(&self) -> Option<Vec<f64>> {
        let fabric = self.free.fabric();
        let by_node = self.by_node();
        let least = by_node.iter().copied().min().filter(|&least| least < FORBIDDEN)?;
        let groups = f64::from(fabric.groups(self.floor).max(1));
        let cost = |(node, &cost): (NodeIndex, &u64)| {
            let index = f64::from(fabric.group(self.floor, node)) / groups;
            if cost == FORBIDDEN { f64::INFINITY } else { (cost - least) as f64 + index }
        };
        Some((0..).zip(&by_node).map(cost).collect())
    }

    /// For each node, the least cost of a placement with a slot on it; [`FORBIDDEN`] if there is none.
    fn by_node(&self) -> Vec<u64> {
        let fabric = self.free.fabric();
        let mut by_node = vec![FORBIDDEN; fabric.nodes() as usize];
        let mut around = vec![FORBIDDEN; self.wanted as usize + 1];
        around[self.wanted as usize] = 0;
        self.descend(fabric.depth(), 0..fabric.sites(), &around, &mut by_node);
        by_node
    }

    /// The costs of the groups of a level by slots taken, including all groups below. Empty below the lowest level that
    /// is judged.
    fn of_level(&self, level: usize) -> CostLists {
        let (fabric, mut lists) = (self.free.fabric(), CostLists::default());
        for group in 0..if level < self.floor { 0 } else { fabric.groups(level) } {
            if level == self.floor {
                let slots = self.free.count(level, group).min(self.wanted) as usize;
                lists.push((0..=slots).map(|taken| self.own(level, group, taken)));
            } else {
                let Range { start, end } = fabric.children(level, group);
                let below = self.merged[level - 1].before(start as usize, end as usize);
                let with_own = |(taken, &cost): (usize, &u64)| {
                    cost.saturating_add(self.own(level, group, taken))
                };
                lists.push(below.iter().enumerate().map(with_own));
            }
        }
        lists
    }

    /// For every group of a level, the least cost together with its earlier siblings. `least` has each group's own
    /// cost.
    fn merged_in(&self, level: usize, least: &CostLists) -> CostLists {
        let (fabric, mut lists) = (self.free.fabric(), CostLists::default());
        let mut merge = |groups: Range<GroupIndex>| {
            for group in groups.clone() {
                let own = (least, group as usize);
                lists.push_sum(group == groups.start, own, self.wanted as usize);
            }
        };
        if level == fabric.depth() {
            merge(0..fabric.sites());
        } else if level >= self.floor {
            let above = 0..fabric.groups(level + 1);
            above.for_each(|above| merge(fabric.children(level + 1, above)));
        }
        lists
    }

    fn own(&self, level: usize, group: GroupIndex, taken: usize) -> u64 {
        let members = self.members.get(level).map_or(0, |inside| inside[group as usize]);
        let inside = u64::from(members) + taken as u64;
        let slots = self.free.count(level, group);
        let (running, taken) = (self.running, taken as u32);
        let all = running + u64::from(self.wanted);
        (self.cost)(GroupLoad { level, group, inside, all, running, taken, slots })
    }

    fn take(
        &self,
        level: usize,
        groups: Range<GroupIndex>,
        wanted: u32,
        nodes: &mut Vec<NodeIndex>,
    ) {
        let (first, mut left) = (groups.start as usize, wanted as usize);
        for group in groups.rev() {
            let index = group as usize;
            let (before, own) =
                (self.merged[level].before(first, index), self.least[level].get(index));
            let reached = self.merged[level].get(index)[left];
            let share = (0..own.len().min(left + 1)).find(|&taken| {
                before
                    .get(left - taken)
                    .is_some_and(|cost| cost.saturating_add(own[taken]) == reached)
            });
            let Some(share) = share.filter(|&share| share > 0) else { continue };
            left -= share;
            if level == self.floor {
                self.free.take(level, group, share as u32, nodes);
            } else {
                self.take(
                    level - 1,
                    self.free.fabric().children(level, group),
                    share as u32,
                    nodes,
                );
            }
        }
    }

    /// Adds costs for the nodes below these groups. `around` is the least cost of everything outside the groups, by
    /// slots taken in all of them together.
    fn descend(
        &self,
        level: usize,
        groups: Range<GroupIndex>,
        around: &[u64],
        by_node: &mut [u64],
    ) {
        let (first, most) = (groups.start as usize, self.wanted as usize);
        let mut after = vec![0];
        for group in groups.rev() {
            let own = self.least[level].get(group as usize);
            if self.free.count(level, group) > 0 {
                let before = self.merged[level].before(first, group as usize);
                let others = sum(before, &after, most);
                let rest: Vec<u64> =
                    (0..own.len()).map(|taken| least_with(&others, &around[taken..])).collect();
                self.enter(level, group, &rest, by_node);
            }
            after = sum(&after, own, most);
        }
    }

    /// Adds costs for the nodes of one group. `rest` is the least cost of everything outside the group, by slots taken
    /// in it.
    fn enter(&self, level: usize, group: GroupIndex, rest: &[u64], by_node: &mut [u64]) {
        if level > self.floor {
            let with_own =
                |(taken, &cost): (usize, &u64)| cost.saturating_add(self.own(level, group, taken));
            let around: Vec<u64> = rest.iter().enumerate().map(with_own).collect();
            self.descend(level - 1, self.free.fabric().children(level, group), &around, by_node);
            return;
        }
        let own = self.least[level].get(group as usize);
        let at_least_one = own.iter().zip(rest).skip(1);
        let least =
            at_least_one.map(|(&own, &rest)| own.saturating_add(rest)).min().unwrap_or(FORBIDDEN);
        for node in self.free.fabric().node_range(level, group) {
            if self.free.contains(node) {
                by_node[node as usize] = least;
            }
        }
    }
}

/// The least sum of what the other groups cost and what everything outside costs.
fn least_with(others: &[u64], around: &[u64]) -> u64 {
    let sums = others.iter().zip(around).map(|(&others, &around)| others.saturating_add(around));
    sums.min().unwrap_or(FORBIDDEN)
}

/// Twice the hops that this group adds to a pair of nodes that it separates. A WAN hop counts half on each side, so
/// doubling keeps whole numbers.
pub fn hops(fabric: &Fabric, load: &GroupLoad) -> u64 {
    if load.level < fabric.depth() {
        let above = fabric.parent(load.level, load.group);
        2 * u64::from(!fabric.is_padding(load.level + 1, above))
    } else {
        u64::from(fabric.sites() > 1)
    }
}
