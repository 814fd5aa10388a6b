//! Partitions of equal parts: so many nodes on each leaf, so many leaves in each pod, one leaf and one pod smaller.
//!
//! Rebuilt from what is published of Jigsaw (HPDC'21) and `LaaS` (links as a service); see
//! docs/explanation/isolation-at-full-load.md. The first
//! partition found is taken: most nodes on a leaf first, then most leaves in a pod, then by index.

mod layout;
mod several_pods;

use topolane_fabric::GroupIndex;

use crate::dedicated::condition::need::Need;
use crate::dedicated::search::candidates::{Candidates, Leaf};
use crate::dedicated::search::plan::Plan;
use crate::dedicated::search::slot_sets::{closed_sets, lowest};
pub use several_pods::several_pods;

/// How many nodes a job over several pods has on its leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Across {
    /// All of each leaf, of which nothing is taken, and what is left on one more leaf.
    WholeLeaves,
    /// The same, but all of the last leaf as well: the job is rounded up to leaves.
    WholeLeavesOnly,
    /// Any number.
    AnyLeaves,
}

/// The leaves to choose from, and how many links equal parts need: as many as nodes, or the tree's share of that.
pub struct EqualParts<'a> {
    pub candidates: &'a Candidates<'a>,
    need: Need,
}

impl<'a> EqualParts<'a> {
    pub fn new(candidates: &'a Candidates<'a>) -> Self {
        // Of twice the job no part is more than half: every node counts as a flow.
        EqualParts {
            candidates,
            need: Need::new(candidates.fabric, candidates.wanted.saturating_mul(2), 1.0),
        }
    }

    /// Uplink slots for so many nodes on a leaf.
    pub fn slots(&self, nodes: u32) -> u32 {
        self.need.remainder(nodes)
    }

    /// Links to the core for so many slots of leaves.
    pub fn core(&self, slots: u32) -> u32 {
        self.need.links(slots)
    }

    /// The first partition: on a leaf, else in a pod, else over pods.
    pub fn plan(&self, across: Across) -> Option<Plan> {
        let within = self.one_leaf().or_else(|| self.one_pod());
        within.or_else(|| several_pods(self, across))
    }

    /// The first leaf with room for all of the job.
    pub fn one_leaf(&self) -> Option<Plan> {
        let wanted = self.candidates.wanted;
        let leaf = self.candidates.leaves.iter().find(|leaf| leaf.idle >= wanted)?;
        Some(Plan { leaves: vec![(leaf.leaf, wanted, 0)], ..Plan::default() })
    }

    /// Equal parts on leaves of one pod, and a smaller one.
    pub fn one_pod(&self) -> Option<Plan> {
        let wanted = self.candidates.wanted;
        let holding = |leaves: &&[Leaf]| leaves.iter().map(|leaf| leaf.idle).sum::<u32>() >= wanted;
        let pods: Vec<(&[Leaf], Vec<u64>)> = self
            .candidates
            .pods()
            .filter(holding)
            .map(|leaves| (leaves, closed_sets(leaves.iter().map(|leaf| leaf.slots), 1).0))
            .collect();
        let most = self.candidates.leaves.iter().map(|leaf| leaf.idle).max()?.min(wanted - 1);
        (1..=most)
            .rev()
            .find_map(|each| pods.iter().find_map(|(leaves, sets)| self.in_pod(leaves, sets, each)))
    }

    /// `each` nodes on leaves that have a set in common, and what is left on one more.
    fn in_pod(&self, leaves: &[Leaf], sets: &[u64], each: u32) -> Option<Plan> {
        let (count, left) =
            ((self.candidates.wanted / each) as usize, self.candidates.wanted % each);
        let (slots, slots_left) = (self.slots(each), self.slots(left));
        let holds = |leaf: &&Leaf| leaf.idle >= each && leaf.slots.count_ones() >= slots;
        if leaves.iter().filter(holds).count() < count {
            return None;
        }
        sets.iter().filter(|set| set.count_ones() >= slots).find_map(|&set| {
            let full = members(leaves, set, each, count);
            if full.len() < count {
                return None;
            }
            let mut plan = Plan::default();
            let mut part = 0;
            if left > 0 {
                let last = smaller(leaves, &full, left, set, slots_left)?;
                part = lowest(leaves[last].slots & set, slots_left);
                plan.leaves.push((leaves[last].leaf, left, part));
            }
            let own = part | lowest(set & !part, slots.saturating_sub(part.count_ones()));
            plan.leaves.extend(full.iter().map(|&at| (leaves[at].leaf, each, own)));
            Some(plan)
        })
    }

    /// Cables from a leaf to each second-level switch.
    pub fn parallel(&self, leaf: GroupIndex) -> u32 {
        let fabric = self.candidates.fabric;
        fabric.cabling(fabric.site_of_group(1, leaf), 1).cables
    }
}

/// The first `count` leaves with room for `each` nodes that have all slots of the set.
pub fn members(leaves: &[Leaf], set: u64, each: u32, count: usize) -> Vec<usize> {
    let has = |leaf: &Leaf| leaf.idle >= each && leaf.slots & set == set;
    (0..leaves.len()).filter(|&at| has(&leaves[at])).take(count).collect()
}

/// The first leaf that is not chosen, with room for `nodes` and so many slots of the set.
pub fn smaller(
    leaves: &[Leaf],
    chosen: &[usize],
    nodes: u32,
    set: u64,
    slots: u32,
) -> Option<usize> {
    let has = |leaf: &Leaf| leaf.idle >= nodes && (leaf.slots & set).count_ones() >= slots;
    (0..leaves.len()).find(|at| !chosen.contains(at) && has(&leaves[*at]))
}
