//! Partitions of equal parts: the same number of nodes on each leaf and of leaves in each pod, except for one smaller leaf and
//! one smaller pod.
//!
//! Rebuilt from what is published of Jigsaw (HPDC'21) and `LaaS` (links as a service); see
//! docs/explanation/jigsaw-paper.md. The first
//! partition found is taken: most nodes on a leaf first, then most leaves in a pod, then by index.

mod layout;
mod several_pods;

use std::cell::OnceCell;

use topolane_fabric::GroupIndex;

use crate::dedicated::condition::need::Need;
use crate::dedicated::search::candidates::Candidates;
use crate::dedicated::search::leaf::Leaf;
use crate::dedicated::search::leaf::Weights;
use crate::dedicated::search::plan::DedicatedPlan;
use crate::dedicated::search::slot_sets::{closed_sets, lowest};
use crate::{FreeSlots, Occupancy, Request};
pub use several_pods::several_pods;

/// How a job over several pods distributes its nodes over leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Across {
    /// Takes idle leaves whole, and the rest of the job from one more leaf.
    WholeLeaves,
    /// Takes idle leaves whole, including the last one: the job is rounded up to full leaves.
    WholeLeavesOnly,
    /// Takes any equal number of nodes from each leaf.
    AnyLeaves,
}

/// The first partition that fits a request.
pub struct First {
    pub plan: DedicatedPlan,
    /// Whether the partition spans several pods.
    pub is_over_pods: bool,
}

impl First {
    /// Returns the same partition as [`EqualParts::plan`] but examines only leaves that could hold the job.
    pub fn of(
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
        across: Across,
    ) -> Option<Self> {
        let (fabric, wanted) = (free.fabric(), request.nodes);
        if let Some(leaf) = free.groups_with(1, wanted).next() {
            let plan =
                DedicatedPlan { leaves: vec![(leaf, wanted, 0)], ..DedicatedPlan::default() };
            return Some(First { plan, is_over_pods: false });
        }
        if fabric.depth() < 2 {
            return None;
        }
        let holding = free.groups_with(2, wanted).flat_map(|pod| fabric.children(2, pod));
        let candidates = among(request, free, occupancy, holding);
        if let Some(plan) = EqualParts::new(&candidates).one_pod() {
            return Some(First { plan, is_over_pods: false });
        }
        if fabric.depth() < 3 || !has_whole_leaves(request, free, occupancy, across) {
            return None;
        }
        let all = 0..fabric.groups(1);
        let candidates = among(request, free, occupancy, all);
        let plan = several_pods(&EqualParts::new(&candidates), across)?;
        Some(First { plan, is_over_pods: true })
    }
}

fn among<'a>(
    request: &Request,
    free: &FreeSlots<'a>,
    occupancy: &'a Occupancy,
    leaves: impl Iterator<Item = GroupIndex>,
) -> Candidates<'a> {
    Candidates::among(request, free, occupancy, Weights::default(), 1.0, leaves)
}

/// Whether there may be enough idle leaves of one size for a job over several pods.
fn has_whole_leaves(
    request: &Request,
    free: &FreeSlots<'_>,
    occupancy: &Occupancy,
    across: Across,
) -> bool {
    let fabric = free.fabric();
    if across == Across::AnyLeaves {
        return true;
    }
    let (sizes, counts) = (&occupancy.empty().idle_counts()[1], free.counts_of(1));
    let able = free.groups_with(2, occupancy.smallest_leaf().max(1));
    // For each leaf size, the number of idle leaves.
    let mut untouched: Vec<(u32, u32)> = Vec::new();
    for leaf in able.flat_map(|pod| fabric.children(2, pod)) {
        let (size, idle) = (sizes[leaf as usize], counts[leaf as usize]);
        if idle == size && Candidates::leaf(fabric, occupancy, leaf, idle).untouched {
            match untouched.iter_mut().find(|(of, _)| *of == size) {
                Some((_, count)) => *count += 1,
                None => untouched.push((size, 1)),
            }
        }
    }
    untouched.iter().any(|&(size, count)| {
        let leaves = match across {
            Across::WholeLeavesOnly => request.nodes.div_ceil(size),
            _ => request.nodes / size,
        };
        leaves > 0 && count >= leaves
    })
}

/// The candidate leaves and the number of links that equal parts need: one per node, or less on an oversubscribed tree.
pub struct EqualParts<'a> {
    pub candidates: &'a Candidates<'a>,
    need: Need,
}

impl<'a> EqualParts<'a> {
    pub fn new(candidates: &'a Candidates<'a>) -> Self {
        // For a job of twice the size no part is over half, so every node counts as a flow.
        EqualParts {
            candidates,
            need: Need::new(candidates.fabric, candidates.wanted.saturating_mul(2), 1.0),
        }
    }

    /// Uplink slots that `nodes` nodes on a leaf need.
    pub fn slots(&self, nodes: u32) -> u32 {
        self.need.remainder(nodes)
    }

    /// Links to the core that `slots` uplink slots of leaves need.
    pub fn core(&self, slots: u32) -> u32 {
        self.need.links(slots)
    }

    /// Returns the first partition: on one leaf, else in one pod, else over several pods.
    pub fn plan(&self, across: Across) -> Option<DedicatedPlan> {
        let within = self.one_leaf().or_else(|| self.one_pod());
        within.or_else(|| several_pods(self, across))
    }

    /// Returns a plan on the first leaf with enough free nodes for the whole job.
    pub fn one_leaf(&self) -> Option<DedicatedPlan> {
        let wanted = self.candidates.wanted;
        let leaf = self.candidates.leaves.iter().find(|leaf| leaf.idle >= wanted)?;
        Some(DedicatedPlan { leaves: vec![(leaf.leaf, wanted, 0)], ..DedicatedPlan::default() })
    }

    /// Returns a plan with equal parts on leaves of one pod, plus one smaller leaf if nodes are left.
    pub fn one_pod(&self) -> Option<DedicatedPlan> {
        let wanted = self.candidates.wanted;
        let holding = |leaves: &&[Leaf]| leaves.iter().map(|leaf| leaf.idle).sum::<u32>() >= wanted;
        let pods: Vec<(&[Leaf], OnceCell<Vec<u64>>)> = self
            .candidates
            .pods()
            .filter(holding)
            .map(|leaves| (leaves, OnceCell::new()))
            .collect();
        if pods.is_empty() {
            return None;
        }
        let most = self.candidates.leaves.iter().map(|leaf| leaf.idle).max()?.min(wanted - 1);
        (1..=most)
            .rev()
            .find_map(|each| pods.iter().find_map(|(leaves, sets)| self.in_pod(leaves, sets, each)))
    }

    /// Puts `each` nodes on leaves that share a set of slots, and the rest on one more leaf.
    fn in_pod(
        &self,
        leaves: &[Leaf],
        sets: &OnceCell<Vec<u64>>,
        each: u32,
    ) -> Option<DedicatedPlan> {
        let (count, left) =
            ((self.candidates.wanted / each) as usize, self.candidates.wanted % each);
        let (slots, slots_left) = (self.slots(each), self.slots(left));
        let holds = |leaf: &&Leaf| leaf.idle >= each && leaf.slots.count_ones() >= slots;
        if leaves.iter().filter(holds).count() < count {
            return None;
        }
        let sets = sets.get_or_init(|| closed_sets(leaves.iter().map(|leaf| leaf.slots), 1).0);
        sets.iter().filter(|set| set.count_ones() >= slots).find_map(|&set| {
            let full = members(leaves, set, each, count);
            if full.len() < count {
                return None;
            }
            let mut plan = DedicatedPlan::default();
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

/// The first `count` leaves that have at least `each` free nodes and all slots of the set.
pub fn members(leaves: &[Leaf], set: u64, each: u32, count: usize) -> Vec<usize> {
    let has = |leaf: &Leaf| leaf.idle >= each && leaf.slots & set == set;
    (0..leaves.len()).filter(|&at| has(&leaves[at])).take(count).collect()
}

/// The first leaf not yet chosen that has `nodes` free nodes and enough slots of the set.
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
