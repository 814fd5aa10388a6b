//! Which leaves a job takes that own one set of lanes, and how much of each.

use topolane_fabric::GroupIndex;

use crate::owned::board::Leaf;
use crate::owned::need::Need;

/// What it counts to break a leaf that nobody has touched, in nodes.
const UNTOUCHED: f64 = 4.0;
/// What a free node counts that is left on a leaf.
const LEFT: f64 = 0.02;

/// Nodes and lanes taken of a leaf, by its place among the leaves.
pub type Taken = (usize, u32, u64);

/// What taking so many nodes and lanes of a leaf costs those who come: by how much more than the nodes taken it cuts
/// what jobs over several leaves may have there, the free nodes with lanes.
pub fn cost(leaf: &Leaf, nodes: u32, lanes: u32) -> f64 {
    let free = leaf.lanes.count_ones();
    let usable = |idle: u32, free: u32| f64::from(idle.min(free));
    let lost = usable(leaf.idle, free) - usable(leaf.idle - nodes, free.saturating_sub(lanes));
    let left = leaf.idle - nodes;
    let broken = if leaf.untouched && left > 0 { UNTOUCHED } else { 0.0 };
    lost - f64::from(nodes) + broken + LEFT * f64::from(left)
}

/// The leaf for a job that fits one.
pub fn one_leaf(leaves: &[Leaf], wanted: u32) -> Option<(GroupIndex, f64)> {
    let costs = leaves
        .iter()
        .filter(|leaf| leaf.idle >= wanted)
        .map(|leaf| (leaf.leaf, cost(leaf, wanted, 0)));
    costs.min_by(|one, other| one.1.total_cmp(&other.1).then(one.0.cmp(&other.0)))
}

/// The lowest-cost lanes of a set: those that fewest of the leaves have, the lowest among equals.
pub fn rarest(set: u64, count: u32, leaves: &[Leaf]) -> u64 {
    if set.count_ones() <= count {
        return set;
    }
    let having = |lane: u32| leaves.iter().filter(|leaf| leaf.lanes >> lane & 1 == 1).count();
    let mut lanes: Vec<(usize, u32)> = (0..u64::BITS)
        .filter(|lane| set >> lane & 1 == 1)
        .map(|lane| (having(lane), lane))
        .collect();
    lanes.sort_unstable();
    lanes[..count as usize].iter().fold(0, |chosen, &(_, lane)| chosen | 1 << lane)
}

/// Takes `wanted` nodes of leaves that all have `set`, each at most what its lanes are enough for. With `remainder` the
/// last leaf owns only as many lanes as it has nodes. `None` where they hold fewer.
pub fn fill(
    leaves: &[Leaf],
    set: u64,
    wanted: u32,
    need: &Need,
    remainder: bool,
) -> Option<(Vec<Taken>, f64)> {
    let lanes = set.count_ones();
    let most = need.nodes(lanes);
    let members = || leaves.iter().enumerate().filter(|(_, leaf)| leaf.lanes & set == set);
    let capacity = |leaf: &Leaf| leaf.idle.min(most);
    if members().map(|(_, leaf)| capacity(leaf)).sum::<u32>() < wanted {
        return None;
    }
    let mut order: Vec<(f64, usize, u32)> = members()
        .map(|(at, leaf)| {
            let nodes = capacity(leaf);
            (cost(leaf, nodes, lanes) / f64::from(nodes), at, nodes)
        })
        .collect();
    order.sort_unstable_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    let mut taken = Vec::new();
    let (mut left, mut total) = (wanted, 0.0);
    let mut rest = order.into_iter();
    while left > 0 {
        let (each, at, nodes) = rest.next()?;
        if nodes < left {
            taken.push((at, nodes, set));
            total += each * f64::from(nodes);
            left -= nodes;
            continue;
        }
        // The last one: the leaf that what is left fits best.
        let owned = if remainder { need.remainder(left).min(lanes) } else { lanes };
        let fitting = std::iter::once(at)
            .chain(rest.by_ref().filter(|last| last.2 >= left).map(|last| last.1));
        let best = fitting.map(|at| (cost(&leaves[at], left, owned), at));
        let (cost, at) = best.min_by(|one, other| one.0.total_cmp(&other.0))?;
        taken.push((at, left, rarest(set, owned, leaves)));
        total += cost;
        left = 0;
    }
    Some((taken, total))
}
