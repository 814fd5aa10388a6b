//! Fills leaves that own one set of uplink slots.

use crate::dedicated::search::candidates::Candidates;
use crate::dedicated::search::leaf::Leaf;
use crate::dedicated::search::slot_sets::rarest;

/// Index of a leaf, and the nodes and slots taken there.
pub type Taken = (usize, u32, u64);

/// Takes `wanted` nodes from leaves that all have `set`; on each leaf at most the nodes that its slots serve. With
/// `remainder`, the last leaf may own fewer slots: only what its own nodes need. `None` if the leaves hold too few
/// nodes.
pub fn fill(
    candidates: &Candidates<'_>,
    leaves: &[Leaf],
    set: u64,
    wanted: u32,
    remainder: bool,
) -> Option<(Vec<Taken>, f64)> {
    let (need, weights) = (&candidates.need, &candidates.weights);
    let slots = set.count_ones();
    let most = need.nodes(slots);
    let members = || leaves.iter().enumerate().filter(|(_, leaf)| leaf.slots & set == set);
    let capacity = |leaf: &Leaf| leaf.idle.min(most);
    if members().map(|(_, leaf)| capacity(leaf)).sum::<u32>() < wanted {
        return None;
    }
    let mut order: Vec<(f64, usize, u32)> = members()
        .map(|(at, leaf)| {
            let nodes = capacity(leaf);
            (weights.cost(leaf, nodes, slots) / f64::from(nodes), at, nodes)
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
        // Put the rest on the leaf where it costs least.
        let owned = if remainder { need.remainder(left).min(slots) } else { slots };
        let fitting = std::iter::once(at)
            .chain(rest.by_ref().filter(|last| last.2 >= left).map(|last| last.1));
        let best = fitting.map(|at| (weights.cost(&leaves[at], left, owned), at));
        let (cost, at) = best.min_by(|one, other| one.0.total_cmp(&other.0))?;
        taken.push((at, left, rarest(set, owned, leaves)));
        total += cost;
        left = 0;
    }
    Some((taken, total))
}
