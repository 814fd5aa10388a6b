//! Searches for placements in one pod.

use crate::dedicated::search::candidates::Candidates;
use crate::dedicated::search::fill::{Taken, fill};
use crate::dedicated::search::leaf::Leaf;
use crate::dedicated::search::plan::DedicatedPlan;
use crate::dedicated::search::slot_sets::{SlotSetCounts, nodes_on, rarest};

/// Meets condition (1), with the last leaf as remainder (2): the leaves own one set, or its rarest slots.
pub fn one_set(
    candidates: &Candidates<'_>,
    leaves: &[Leaf],
    sets: &[u64],
) -> Option<DedicatedPlan> {
    let mut best: OnePodChoice = None;
    let mut members = SlotSetCounts::default();
    for &set in sets {
        let most = candidates.need.nodes(set.count_ones());
        if nodes_on(leaves, set, most) < candidates.wanted {
            continue;
        }
        members.look_at(leaves, set);
        for slots in 1..=set.count_ones() {
            if members.nodes(candidates.need.nodes(slots)) < candidates.wanted {
                continue;
            }
            let set = rarest(set, slots, leaves);
            best = cheaper(best, fill(candidates, leaves, set, candidates.wanted, true));
            if candidates.any && best.is_some() {
                return plan(leaves, best);
            }
        }
    }
    plan(leaves, best)
}

/// Meets condition (1) with a leaf of over half of the job, or (2) with a remainder of several leaves.
pub fn majority_or_remainder(
    candidates: &Candidates<'_>,
    leaves: &[Leaf],
    sets: &[u64],
) -> Option<DedicatedPlan> {
    let (need, wanted) = (&candidates.need, candidates.wanted);
    let mut best: OnePodChoice = None;
    for &set in sets {
        best = cheaper(best, with_majority(candidates, leaves, set));
        // If the main part owned fewer slots, these would be another of the sets, tried on their own.
        let main = nodes_on(leaves, set, need.nodes(set.count_ones()));
        let enough = |part: u64| main + need.nodes(part.count_ones()) >= wanted;
        let parts = sets.iter().filter(|&&part| part & set == part && part != set);
        for &part in parts.filter(|&&part| enough(part)) {
            best = cheaper(best, with_remainder(candidates, leaves, set, part));
        }
        if candidates.any && best.is_some() {
            break;
        }
    }
    plan(leaves, best)
}

fn plan(leaves: &[Leaf], found: OnePodChoice) -> Option<DedicatedPlan> {
    let (taken, cost) = found?;
    let leaves = taken.into_iter().map(|(at, nodes, slots)| (leaves[at].leaf, nodes, slots));
    Some(DedicatedPlan { leaves: leaves.collect(), core: Vec::new(), cost })
}

type OnePodChoice = Option<(Vec<Taken>, f64)>;

/// The cheaper of two plans, the first if they cost the same.
fn cheaper(one: OnePodChoice, other: OnePodChoice) -> OnePodChoice {
    match (&one, &other) {
        (Some(best), Some(found)) if found.1 < best.1 => other,
        (None, _) => other,
        _ => one,
    }
}

/// Puts over half of the job on one leaf; the other leaves together hold at most what the slots serve.
fn with_majority(candidates: &Candidates<'_>, leaves: &[Leaf], set: u64) -> OnePodChoice {
    let members = leaves.iter().enumerate().filter(|(_, leaf)| leaf.slots & set == set);
    let (majority, leaf) = members.max_by_key(|&(at, leaf)| (leaf.idle, std::cmp::Reverse(at)))?;
    let nodes = leaf.idle.min(candidates.wanted - 1);
    let left = candidates.wanted - nodes;
    if left > candidates.need.nodes(set.count_ones()) {
        return None;
    }
    let slots = rarest(set, candidates.need.slots(nodes), leaves);
    let others: Vec<Leaf> = leaves
        .iter()
        .map(|other| if other.leaf == leaf.leaf { Leaf { slots: 0, ..*other } } else { *other })
        .collect();
    let (mut taken, cost) = fill(candidates, &others, slots, left, false)?;
    taken.push((majority, nodes, slots));
    Some((taken, cost + candidates.weights.cost(leaf, nodes, slots.count_ones())))
}

/// Puts the job on leaves that have the set and a remainder on leaves that have a part of it.
fn with_remainder(
    candidates: &Candidates<'_>,
    leaves: &[Leaf],
    set: u64,
    part: u64,
) -> OnePodChoice {
    let free = |keep: &dyn Fn(&Leaf) -> bool, most: u32| {
        leaves.iter().filter(|leaf| keep(leaf)).map(|leaf| leaf.idle.min(most)).sum::<u32>()
    };
    for slots in (part.count_ones()..=set.count_ones()).rev() {
        let set = part | rarest(set & !part, slots - part.count_ones(), leaves);
        let main = |leaf: &Leaf| leaf.slots & set == set;
        let rest = |leaf: &Leaf| leaf.slots & part == part && !main(leaf);
        let most = candidates.need.nodes(set.count_ones());
        let in_rest = free(&rest, u32::MAX).min(candidates.need.nodes(part.count_ones()));
        let in_main = free(&main, most).min(candidates.wanted);
        if in_main == 0 || in_main + in_rest < candidates.wanted {
            continue;
        }
        let (mut taken, mut cost) = fill(candidates, leaves, set, in_main, false)?;
        let mut left = candidates.wanted - in_main;
        let owned = rarest(part, candidates.need.remainder(left), leaves);
        let mut order: Vec<usize> = (0..leaves.len()).filter(|&at| rest(&leaves[at])).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(leaves[at].idle));
        for at in order {
            let nodes = leaves[at].idle.min(left);
            if nodes > 0 {
                taken.push((at, nodes, owned));
                cost += candidates.weights.cost(&leaves[at], nodes, owned.count_ones());
                left -= nodes;
            }
        }
        return Some((taken, cost));
    }
    None
}
