//! Partitions of equal parts: so many nodes on each leaf, so many leaves in each pod, one leaf and one pod smaller.
//!
//! Rebuilt from what is published of Jigsaw (HPDC'21) and `LaaS` (links as a service); see
//! docs/explanation/isolation-at-full-load.md. The first
//! partition found is taken: most nodes on a leaf first, then most leaves in a pod, then by index.

use topolane_fabric::GroupIndex;

use crate::owned::board::{Board, Leaf};
use crate::owned::closed::closed_sets;
use crate::owned::even_pods::several_pods;
use crate::owned::need::Need;
use crate::owned::plan::Plan;

/// Sets of lanes looked at in a pod, and over pods.
pub const SETS: usize = 256;

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

/// A board, and how many links equal parts want: as many as nodes, or what that is on a tapered tree.
pub struct Even<'a> {
    pub board: &'a Board<'a>,
    need: Need,
}

impl<'a> Even<'a> {
    pub fn new(board: &'a Board<'a>) -> Self {
        // Of twice the job no part is more than half: every node counts as a flow.
        Even { board, need: Need::new(board.fabric, board.wanted.saturating_mul(2), 1.0) }
    }

    /// Lanes for so many nodes on a leaf.
    pub fn lanes(&self, nodes: u32) -> u32 {
        self.need.remainder(nodes)
    }

    /// Links to the core for so many lanes of leaves.
    pub fn core(&self, lanes: u32) -> u32 {
        self.need.links(lanes)
    }

    /// The first partition: on a leaf, else in a pod, else over pods.
    pub fn plan(&self, across: Across) -> Option<Plan> {
        let within = self.one_leaf().or_else(|| self.one_pod());
        within.or_else(|| several_pods(self, across))
    }

    /// The first leaf with room for all of the job.
    pub fn one_leaf(&self) -> Option<Plan> {
        let wanted = self.board.wanted;
        let leaf = self.board.leaves.iter().find(|leaf| leaf.idle >= wanted)?;
        Some(Plan { leaves: vec![(leaf.leaf, wanted, 0)], ..Plan::default() })
    }

    /// Equal parts on leaves of one pod, and a smaller one.
    pub fn one_pod(&self) -> Option<Plan> {
        let wanted = self.board.wanted;
        let holding = |leaves: &&[Leaf]| leaves.iter().map(|leaf| leaf.idle).sum::<u32>() >= wanted;
        let pods: Vec<(&[Leaf], Vec<u64>)> = self
            .board
            .pods()
            .filter(holding)
            .map(|leaves| (leaves, closed_sets(leaves.iter().map(|leaf| leaf.lanes), SETS).0))
            .collect();
        let most = self.board.leaves.iter().map(|leaf| leaf.idle).max()?.min(wanted - 1);
        (1..=most)
            .rev()
            .find_map(|each| pods.iter().find_map(|(leaves, sets)| self.in_pod(leaves, sets, each)))
    }

    /// `each` nodes on leaves that have a set in common, and what is left on one more.
    fn in_pod(&self, leaves: &[Leaf], sets: &[u64], each: u32) -> Option<Plan> {
        let (count, left) = ((self.board.wanted / each) as usize, self.board.wanted % each);
        let (lanes, lanes_left) = (self.lanes(each), self.lanes(left));
        let holds = |leaf: &&Leaf| leaf.idle >= each && leaf.lanes.count_ones() >= lanes;
        if leaves.iter().filter(holds).count() < count {
            return None;
        }
        sets.iter().filter(|set| set.count_ones() >= lanes).find_map(|&set| {
            let full = members(leaves, set, each, count);
            if full.len() < count {
                return None;
            }
            let mut plan = Plan::default();
            let mut part = 0;
            if left > 0 {
                let last = smaller(leaves, &full, left, set, lanes_left)?;
                part = lowest(leaves[last].lanes & set, lanes_left);
                plan.leaves.push((leaves[last].leaf, left, part));
            }
            let own = part | lowest(set & !part, lanes.saturating_sub(part.count_ones()));
            plan.leaves.extend(full.iter().map(|&at| (leaves[at].leaf, each, own)));
            Some(plan)
        })
    }

    /// Cables from a leaf to each second-level switch.
    pub fn parallel(&self, leaf: GroupIndex) -> u32 {
        let fabric = self.board.fabric;
        fabric.cabling(fabric.site_of_group(1, leaf), 1).cables
    }
}

/// The first `count` leaves with room for `each` nodes that have all lanes of the set.
pub fn members(leaves: &[Leaf], set: u64, each: u32, count: usize) -> Vec<usize> {
    let has = |leaf: &Leaf| leaf.idle >= each && leaf.lanes & set == set;
    (0..leaves.len()).filter(|&at| has(&leaves[at])).take(count).collect()
}

/// The first leaf beside those chosen with room for `nodes` and so many lanes of the set.
pub fn smaller(
    leaves: &[Leaf],
    chosen: &[usize],
    nodes: u32,
    set: u64,
    lanes: u32,
) -> Option<usize> {
    let has = |leaf: &Leaf| leaf.idle >= nodes && (leaf.lanes & set).count_ones() >= lanes;
    (0..leaves.len()).find(|at| !chosen.contains(at) && has(&leaves[*at]))
}

/// The lowest `count` lanes of a set.
pub fn lowest(set: u64, count: u32) -> u64 {
    let mut left = set;
    for _ in 0..count {
        left &= left.wrapping_sub(1);
    }
    set & !left
}
