//! Partitions that the quick searches pass over: a leaf or a pod with more than half of the job, with a remainder; a pod that
//! owns a part of what the others own of the core; parallel cables under a core.

use crate::owned::board::{Board, Leaf};
use crate::owned::fill::{cost, rarest};
use crate::owned::plan::Plan;

/// Leaves of one pod that have a set of lanes, and how much of them a job may take.
pub struct Members {
    /// Place among the leaves, and the most nodes; one with more than half of the job first.
    pub leaves: Vec<(usize, u32)>,
    /// Nodes of all of them.
    pub nodes: u32,
}

impl Members {
    /// Those that `has` them, with at most `most` nodes each; or, with `giant`, one of them as many as it can, if that leaves
    /// no more than `most`.
    pub fn of(
        board: &Board<'_>,
        leaves: &[Leaf],
        has: impl Fn(&Leaf) -> bool,
        most: u32,
        giant: bool,
    ) -> Option<Self> {
        let idle = |at: usize| leaves[at].idle;
        let mut taken: Vec<(usize, u32)> = (0..leaves.len())
            .filter(|&at| has(&leaves[at]))
            .map(|at| (at, idle(at).min(most)))
            .collect();
        if giant {
            let first = (0..taken.len()).max_by_key(|&at| idle(taken[at].0))?;
            let nodes = idle(taken[first].0).min(board.wanted - 1);
            if board.wanted - nodes > most || nodes <= most {
                return None;
            }
            taken[first].1 = nodes;
            taken.swap(0, first);
        }
        let nodes = taken.iter().map(|leaf| leaf.1).sum();
        Some(Members { leaves: taken, nodes })
    }

    /// Takes so many nodes, in order; what is taken and what is still wanted.
    pub fn take(&self, mut wanted: u32) -> (Vec<(usize, u32)>, u32) {
        let mut taken = Vec::new();
        for &(at, most) in &self.leaves {
            let nodes = most.min(wanted);
            wanted -= nodes;
            if nodes > 0 {
                taken.push((at, nodes));
            }
        }
        (taken, wanted)
    }
}

/// A partition in a pod, if there is any: leaves that have one of the sets, maybe one of them with more than half of the job,
/// and a remainder on leaves that have a part of it.
pub fn in_pod(board: &Board<'_>, leaves: &[Leaf], sets: &[u64]) -> Option<Plan> {
    let (need, wanted) = (&board.need, board.wanted);
    let having =
        |set: u64| leaves.iter().filter(move |leaf| leaf.lanes & set == set).map(|leaf| leaf.idle);
    let idle: Vec<u32> = sets.iter().map(|&set| having(set).sum()).collect();
    for (&set, &all) in sets.iter().zip(&idle) {
        let most = need.nodes(set.count_ones());
        let even: u32 = having(set).map(|idle| idle.min(most)).sum();
        let largest = having(set).max().unwrap_or(0).min(wanted - 1);
        let giant = largest > most && wanted - largest <= most;
        let nodes = if giant { all } else { even };
        for (&part, &in_both) in sets.iter().zip(&idle).filter(|&(part, _)| part & set == *part) {
            let rest = (in_both - all).min(need.nodes(part.count_ones()));
            if nodes + rest >= wanted {
                return with_part(board, leaves, set, part, giant);
            }
        }
    }
    None
}

fn with_part(board: &Board<'_>, leaves: &[Leaf], set: u64, part: u64, giant: bool) -> Option<Plan> {
    let need = &board.need;
    let most = need.nodes(set.count_ones());
    let main = Members::of(board, leaves, |leaf| leaf.lanes & set == set, most, giant)?;
    let lacks = |leaf: &Leaf| leaf.lanes & part == part && leaf.lanes & set != set;
    let rest = Members::of(board, leaves, lacks, u32::MAX, false)?;
    let (taken, left) = main.take(board.wanted);
    if taken.is_empty() || left > rest.nodes.min(need.nodes(part.count_ones())) {
        return None;
    }
    let in_rest = rarest(part, need.remainder(left), leaves);
    let widest = taken.iter().map(|&(_, nodes)| need.lanes(nodes)).max()?;
    let lanes =
        in_rest | rarest(set & !in_rest, widest.saturating_sub(in_rest.count_ones()), leaves);
    let mut plan = Plan::default();
    plan.add(leaves, &taken, lanes);
    plan.add(leaves, &rest.take(left).0, in_rest);
    Some(plan)
}

impl Plan {
    /// Adds nodes of leaves that own these lanes.
    pub fn add(&mut self, leaves: &[Leaf], taken: &[(usize, u32)], lanes: u64) {
        for &(at, nodes) in taken {
            self.leaves.push((leaves[at].leaf, nodes, lanes));
            self.cost += cost(&leaves[at], nodes, lanes.count_ones());
        }
    }
}
