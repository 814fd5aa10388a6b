//! The remaining shapes in one pod: conditions (1) and (2) with both a leaf of over half of the job and a remainder.

use crate::dedicated::search::candidates::Candidates;
use crate::dedicated::search::leaf::Leaf;
use crate::dedicated::search::plan::DedicatedPlan;
use crate::dedicated::search::slot_sets::rarest;

/// Leaves of one pod that have a set of slots, and the number of nodes that a job may take on them.
pub struct SlotSetLeaves {
    /// For each leaf, its index and the most nodes that the job may take; a leaf with over half of the job comes first.
    pub leaves: Vec<(usize, u32)>,
    /// The nodes on all these leaves.
    pub nodes: u32,
}

impl SlotSetLeaves {
    /// Collects the leaves that `has` accepts, with at most `most` nodes each. With `majority`, one leaf may exceed
    /// `most` if the other leaves then hold at most `most` nodes of the job.
    pub fn of(
        candidates: &Candidates<'_>,
        leaves: &[Leaf],
        has: impl Fn(&Leaf) -> bool,
        most: u32,
        majority: bool,
    ) -> Option<Self> {
        let idle = |at: usize| leaves[at].idle;
        let mut taken: Vec<(usize, u32)> = (0..leaves.len())
            .filter(|&at| has(&leaves[at]))
            .map(|at| (at, idle(at).min(most)))
            .collect();
        if majority {
            let first = (0..taken.len()).max_by_key(|&at| idle(taken[at].0))?;
            let nodes = idle(taken[first].0).min(candidates.wanted - 1);
            if candidates.wanted - nodes > most || nodes <= most {
                return None;
            }
            taken[first].1 = nodes;
            taken.swap(0, first);
        }
        let nodes = taken.iter().map(|leaf| leaf.1).sum();
        Some(SlotSetLeaves { leaves: taken, nodes })
    }

    /// Takes `wanted` nodes, in order. Returns the nodes taken per leaf and the number still missing.
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

/// Returns a partition in one pod, if one exists. All leaves own one of the sets, one of them may hold over half of the
/// job, and a remainder on further leaves owns a part of the set.
pub fn search(candidates: &Candidates<'_>, leaves: &[Leaf], sets: &[u64]) -> Option<DedicatedPlan> {
    let (need, wanted) = (&candidates.need, candidates.wanted);
    let having =
        |set: u64| leaves.iter().filter(move |leaf| leaf.slots & set == set).map(|leaf| leaf.idle);
    let idle: Vec<u32> = sets.iter().map(|&set| having(set).sum()).collect();
    for (&set, &all) in sets.iter().zip(&idle) {
        let most = need.nodes(set.count_ones());
        let even: u32 = having(set).map(|idle| idle.min(most)).sum();
        let largest = having(set).max().unwrap_or(0).min(wanted - 1);
        let majority = largest > most && wanted - largest <= most;
        let nodes = if majority { all } else { even };
        for (&part, &in_both) in sets.iter().zip(&idle).filter(|&(part, _)| part & set == *part) {
            let rest = (in_both - all).min(need.nodes(part.count_ones()));
            if nodes + rest >= wanted {
                return with_part(candidates, leaves, set, part, majority);
            }
        }
    }
    None
}

fn with_part(
    candidates: &Candidates<'_>,
    leaves: &[Leaf],
    set: u64,
    part: u64,
    majority: bool,
) -> Option<DedicatedPlan> {
    let need = &candidates.need;
    let most = need.nodes(set.count_ones());
    let main =
        SlotSetLeaves::of(candidates, leaves, |leaf| leaf.slots & set == set, most, majority)?;
    let lacks = |leaf: &Leaf| leaf.slots & part == part && leaf.slots & set != set;
    let rest = SlotSetLeaves::of(candidates, leaves, lacks, u32::MAX, false)?;
    let (taken, left) = main.take(candidates.wanted);
    if taken.is_empty() || left > rest.nodes.min(need.nodes(part.count_ones())) {
        return None;
    }
    let in_rest = rarest(part, need.remainder(left), leaves);
    let widest = taken.iter().map(|&(_, nodes)| need.slots(nodes)).max()?;
    let slots =
        in_rest | rarest(set & !in_rest, widest.saturating_sub(in_rest.count_ones()), leaves);
    let mut plan = DedicatedPlan::default();
    plan.add(candidates, leaves, &taken, slots);
    plan.add(candidates, leaves, &rest.take(left).0, in_rest);
    Some(plan)
}
