//! The placement of least cost, where each group has a cost by how many members it ends up with, as for uniform traffic.

use std::ops::Range;

use topolane_fabric::{Fabric, GroupIndex, NodeIndex};

use crate::free_slots::FreeSlots;
use crate::request::Request;

/// The cost of what must not be.
pub const FORBIDDEN: u64 = u64::MAX;

/// One group in a placement that is being weighed up.
#[derive(Debug, Clone, Copy)]
pub struct GroupLoad {
    /// Its level; 0 is a node, judged only where several slots may lie on one.
    pub level: usize,
    /// The group.
    pub group: GroupIndex,
    /// Members of the request's group in it, those already running included.
    pub inside: u64,
    /// All members.
    pub all: u64,
    /// Members that run, in it or elsewhere.
    pub running: u64,
    /// Slots of it that the request takes.
    pub taken: u32,
    /// Slots it has.
    pub slots: u32,
}

impl GroupLoad {
    /// Pairs of members that it parts: one inside, one outside.
    pub fn parted(&self) -> u64 {
        self.inside * (self.all - self.inside)
    }

    /// Whether members that run are inside and outside, wherever the request's slots go.
    pub fn crossed_already(&self) -> bool {
        let inside = self.inside - u64::from(self.taken);
        0 < inside && inside < self.running
    }
}

/// The least sum of a cost per group over all placements of a request, by dynamic programming
/// over the tree: O(depth x groups x slots^2) time. Exact for every cost that adds up over groups.
pub struct LeastCosts<'a> {
    free: &'a FreeSlots<'a>,
    wanted: u32,
    /// The lowest level that is judged.
    floor: usize,
    /// By level, group and slots taken of it: the least cost of the group and all below.
    least: Vec<Vec<Vec<u64>>>,
    cost: &'a dyn Fn(GroupLoad) -> u64,
    members: Vec<Vec<u32>>,
    running: u64,
}

impl<'a> LeastCosts<'a> {
    /// Weighs up all placements of a request; a `cost` is a number, or [`FORBIDDEN`].
    pub fn new(
        request: &Request,
        free: &'a FreeSlots<'a>,
        cost: &'a dyn Fn(GroupLoad) -> u64,
    ) -> Self {
        let fabric = free.fabric();
        let mut members: Vec<Vec<u32>> =
            (0..=fabric.depth()).map(|level| vec![0; fabric.groups(level) as usize]).collect();
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
            cost,
            members,
            running: request.members.len() as u64 + u64::from(request.beyond),
        };
        for level in 0..=fabric.depth() {
            let below = (0..fabric.groups(level)).map(|group| loads.of(level, group)).collect();
            loads.least.push(below);
        }
        loads
    }

    /// The least cost there is; [`FORBIDDEN`] where no placement is allowed.
    pub fn least(&self) -> u64 {
        let all = self.merged(self.free.fabric().depth(), 0..self.free.fabric().sites());
        all.last().and_then(|sum| sum.get(self.wanted as usize)).copied().unwrap_or(FORBIDDEN)
    }

    /// The nodes of a placement of least cost, once per slot, ascending; of equals the one with
    /// most slots in the groups of lowest index. None where no placement is allowed.
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

    /// Of every node the least cost of a placement that has a slot on it, infinite where there is
    /// none; groups of equal cost are told apart by index, within 1. None where no placement is
    /// allowed.
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

    /// Of every node the least cost of a placement that has a slot on it, [`FORBIDDEN`] where
    /// there is none.
    fn by_node(&self) -> Vec<u64> {
        let fabric = self.free.fabric();
        let mut by_node = vec![FORBIDDEN; fabric.nodes() as usize];
        let mut around = vec![FORBIDDEN; self.wanted as usize + 1];
        around[self.wanted as usize] = 0;
        self.descend(fabric.depth(), 0..fabric.sites(), &around, &mut by_node);
        by_node
    }

    /// The cost of one group by slots taken of it, with all below.
    fn of(&self, level: usize, group: GroupIndex) -> Vec<u64> {
        if level < self.floor {
            return Vec::new();
        }
        let slots = self.free.count(level, group).min(self.wanted) as usize;
        if level == self.floor {
            return (0..=slots).map(|taken| self.own(level, group, taken)).collect();
        }
        let below = self.merged(level - 1, self.free.fabric().children(level, group));
        let below = below.last().map_or(&[][..], Vec::as_slice);
        let with_own =
            |(taken, &cost): (usize, &u64)| cost.saturating_add(self.own(level, group, taken));
        below.iter().enumerate().map(with_own).collect()
    }

    fn own(&self, level: usize, group: GroupIndex, taken: usize) -> u64 {
        let inside = u64::from(self.members[level][group as usize]) + taken as u64;
        let slots = self.free.count(level, group);
        let (running, taken) = (self.running, taken as u32);
        let all = running + u64::from(self.wanted);
        (self.cost)(GroupLoad { level, group, inside, all, running, taken, slots })
    }

    /// Of the first 0, 1, 2, ... of some groups the least cost by slots taken of them together.
    fn merged(&self, level: usize, groups: Range<GroupIndex>) -> Vec<Vec<u64>> {
        let mut merged = vec![vec![0]];
        for group in groups {
            let so_far = &merged[merged.len() - 1];
            merged.push(self.sum(so_far, &self.least[level][group as usize]));
        }
        merged
    }

    /// The least sum of two costs by slots taken of both together.
    fn sum(&self, a: &[u64], b: &[u64]) -> Vec<u64> {
        let most = (a.len() + b.len() - 2).min(self.wanted as usize);
        let mut sum = vec![FORBIDDEN; most + 1];
        for (in_a, &cost) in a.iter().enumerate().filter(|&(_, &cost)| cost < FORBIDDEN) {
            for (both, &more) in sum[in_a..].iter_mut().zip(b) {
                *both = (*both).min(cost.saturating_add(more));
            }
        }
        sum
    }

    fn take(
        &self,
        level: usize,
        groups: Range<GroupIndex>,
        wanted: u32,
        nodes: &mut Vec<NodeIndex>,
    ) {
        let merged = self.merged(level, groups.clone());
        let mut left = wanted as usize;
        for (index, group) in groups.enumerate().rev() {
            let (before, own) = (&merged[index], &self.least[level][group as usize]);
            let reached = merged[index + 1][left];
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

    /// `around`: the least cost of everything outside the groups by slots taken of them together.
    fn descend(
        &self,
        level: usize,
        groups: Range<GroupIndex>,
        around: &[u64],
        by_node: &mut [u64],
    ) {
        let before = self.merged(level, groups.clone());
        let mut after = vec![0];
        for (index, group) in groups.enumerate().rev() {
            let own = &self.least[level][group as usize];
            if self.free.count(level, group) > 0 {
                let others = self.sum(&before[index], &after);
                let rest: Vec<u64> =
                    (0..own.len()).map(|taken| beside(&others, &around[taken..])).collect();
                self.enter(level, group, &rest, by_node);
            }
            after = self.sum(&after, own);
        }
    }

    /// `rest`: the least cost of everything outside the group by slots taken of it.
    fn enter(&self, level: usize, group: GroupIndex, rest: &[u64], by_node: &mut [u64]) {
        if level > self.floor {
            let with_own =
                |(taken, &cost): (usize, &u64)| cost.saturating_add(self.own(level, group, taken));
            let around: Vec<u64> = rest.iter().enumerate().map(with_own).collect();
            self.descend(level - 1, self.free.fabric().children(level, group), &around, by_node);
            return;
        }
        let own = &self.least[level][group as usize];
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

/// The least sum of the costs of what is taken beside a group and of what is around all.
fn beside(others: &[u64], around: &[u64]) -> u64 {
    let sums = others.iter().zip(around).map(|(&others, &around)| others.saturating_add(around));
    sums.min().unwrap_or(FORBIDDEN)
}

/// Hops of a pair that a group parts, twice what each side adds.
pub fn hops(fabric: &Fabric, load: &GroupLoad) -> u64 {
    if load.level < fabric.depth() {
        let above = fabric.parent(load.level, load.group);
        2 * u64::from(!fabric.is_padding(load.level + 1, above))
    } else {
        u64::from(fabric.sites() > 1)
    }
}
