//! Partitions within one pod.

use crate::owned::board::{Board, Leaf};
use crate::owned::closed::{Members, closed_sets};
use crate::owned::fill::{Taken, fill, rarest};
use crate::owned::odd;
use crate::owned::plan::Plan;

/// Sets of lanes looked at in a pod.
const SETS: usize = 256;

/// The best partition in a pod that leaves have together, and whether the search was cut short.
pub fn in_pod(board: &Board<'_>, leaves: &[Leaf]) -> (Option<Plan>, bool) {
    if !board.may_hold(leaves) {
        return (None, false);
    }
    let (sets, cut) = closed_sets(leaves.iter().map(|leaf| leaf.lanes), SETS);
    let mut best: Found = None;
    for &set in &sets {
        let members = Members::of(leaves, set);
        for lanes in 1..=set.count_ones() {
            if members.nodes(board.need.nodes(lanes)) < board.wanted {
                continue;
            }
            let set = rarest(set, lanes, leaves);
            best = cheaper(best, fill(leaves, set, board.wanted, &board.need, true));
        }
    }
    if best.is_none() {
        for &set in &sets {
            best = cheaper(best, with_giant(board, leaves, set));
            // A main part on fewer lanes has a closed set of its own.
            let main = Members::of(leaves, set).nodes(board.need.nodes(set.count_ones()));
            let enough = |part: u64| main + board.need.nodes(part.count_ones()) >= board.wanted;
            let parts = sets.iter().filter(|&&part| part & set == part && part != set);
            for &part in parts.filter(|&&part| enough(part)) {
                best = cheaper(best, with_remainder(board, leaves, set, part));
            }
        }
    }
    if best.is_none() {
        return (odd::in_pod(board, leaves, &sets), cut);
    }
    let plan = best.map(|(taken, cost)| Plan {
        leaves: taken
            .into_iter()
            .map(|(at, nodes, lanes)| (leaves[at].leaf, nodes, lanes))
            .collect(),
        core: Vec::new(),
        cost,
    });
    (plan, cut)
}

type Found = Option<(Vec<Taken>, f64)>;

/// The one of less cost, the first among equals.
fn cheaper(one: Found, other: Found) -> Found {
    match (&one, &other) {
        (Some(best), Some(found)) if found.1 < best.1 => other,
        (None, _) => other,
        _ => one,
    }
}

/// One leaf with more than half of the job, the others together no more than the lanes are enough for.
fn with_giant(board: &Board<'_>, leaves: &[Leaf], set: u64) -> Found {
    let members = leaves.iter().enumerate().filter(|(_, leaf)| leaf.lanes & set == set);
    let (giant, leaf) = members.max_by_key(|&(at, leaf)| (leaf.idle, std::cmp::Reverse(at)))?;
    let nodes = leaf.idle.min(board.wanted - 1);
    let left = board.wanted - nodes;
    if left > board.need.nodes(set.count_ones()) {
        return None;
    }
    let lanes = rarest(set, board.need.lanes(nodes), leaves);
    let others: Vec<Leaf> = leaves
        .iter()
        .map(|other| if other.leaf == leaf.leaf { Leaf { lanes: 0, ..*other } } else { *other })
        .collect();
    let (mut taken, cost) = fill(&others, lanes, left, &board.need, false)?;
    taken.push((giant, nodes, lanes));
    Some((taken, cost + super::fill::cost(leaf, nodes, lanes.count_ones())))
}

/// Leaves that have the set, and a remainder of leaves that have a part of it.
fn with_remainder(board: &Board<'_>, leaves: &[Leaf], set: u64, part: u64) -> Found {
    let free = |keep: &dyn Fn(&Leaf) -> bool, most: u32| {
        leaves.iter().filter(|leaf| keep(leaf)).map(|leaf| leaf.idle.min(most)).sum::<u32>()
    };
    for lanes in (part.count_ones()..=set.count_ones()).rev() {
        let set = part | rarest(set & !part, lanes - part.count_ones(), leaves);
        let main = |leaf: &Leaf| leaf.lanes & set == set;
        let rest = |leaf: &Leaf| leaf.lanes & part == part && !main(leaf);
        let most = board.need.nodes(set.count_ones());
        let in_rest = free(&rest, u32::MAX).min(board.need.nodes(part.count_ones()));
        let in_main = free(&main, most).min(board.wanted);
        if in_main == 0 || in_main + in_rest < board.wanted {
            continue;
        }
        let (mut taken, mut cost) = fill(leaves, set, in_main, &board.need, false)?;
        let mut left = board.wanted - in_main;
        let owned = rarest(part, board.need.remainder(left), leaves);
        let mut order: Vec<usize> = (0..leaves.len()).filter(|&at| rest(&leaves[at])).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(leaves[at].idle));
        for at in order {
            let nodes = leaves[at].idle.min(left);
            if nodes > 0 {
                taken.push((at, nodes, owned));
                cost += super::fill::cost(&leaves[at], nodes, owned.count_ones());
                left -= nodes;
            }
        }
        return Some((taken, cost));
    }
    None
}
