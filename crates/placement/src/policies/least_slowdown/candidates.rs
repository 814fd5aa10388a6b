//! Proposes sets of nodes that are worth trying.

use std::cmp::Reverse;

use topolane_fabric::{GroupIndex, NodeIndex};

use crate::policies::level_spread::spread;
use crate::policies::{FirstFit, HopBytes, Isolated, LevelSpread, Random};
use crate::{FreeSlots, Occupancy, Policy, Request};

/// The number of groups tried at each level, the tightest first.
const HOMES: usize = 4;
/// Draws of random nodes, on other wirings than trees.
const DRAWS: [Random; 4] =
    [Random { seed: 0 }, Random { seed: 1 }, Random { seed: 2 }, Random { seed: 3 }];

/// Returns what other policies would choose, then leaves of the tightest groups that can hold the job, in several
/// orders. On other wirings than trees a job on few switches has few links to itself, so there policies that spread are
/// among them, and each group also gives nodes spread over its leaves.
pub(super) fn candidates(
    request: &Request,
    free: &FreeSlots<'_>,
    occupancy: &Occupancy,
) -> Vec<Vec<NodeIndex>> {
    let spreads = !free.fabric().wiring().is_tree();
    let others: &[&dyn Policy] = if spreads {
        &[&Isolated, &DRAWS[0], &LevelSpread, &DRAWS[1], &DRAWS[2], &DRAWS[3], &HopBytes, &FirstFit]
    } else {
        &[&Isolated, &HopBytes, &FirstFit]
    };
    let chosen = others.iter().filter_map(|policy| policy.choose(request, free, occupancy).ok());
    let mut found: Vec<Vec<NodeIndex>> = chosen.map(|choice| choice.nodes).collect();
    if spreads {
        // Some of them give nodes out of order.
        for nodes in &mut found {
            nodes.sort_unstable();
        }
    }
    let fabric = free.fabric();
    for level in 2..=fabric.depth() {
        let mut homes: Vec<GroupIndex> = (0..fabric.groups(level))
            .filter(|&group| free.count(level, group) >= request.nodes)
            .collect();
        homes.sort_by_key(|&group| free.count(level, group));
        let emptiest = homes.iter().rev().copied().take(if spreads { HOMES } else { 0 });
        found.extend(emptiest.map(|home| {
            let mut nodes = Vec::with_capacity(request.nodes as usize);
            spread(free, level, home, request.nodes, &mut nodes);
            nodes.sort_unstable();
            nodes
        }));
        homes.truncate(HOMES);
        for order in ORDERS {
            let leaves = |&home: &GroupIndex| {
                by_leaves((free, occupancy), (level, home), request.nodes, *order)
            };
            found.extend(homes.iter().map(leaves));
        }
    }
    found
}

/// The sort key of a leaf, from the number of placements that cross it and its free slots.
type CandidateOrder = fn(crossing: u32, slots: u32) -> (u32, Reverse<u32>);

/// In this order: leaves that no job crosses first, then the emptiest; the fewest leaves; leaves that the fewest jobs
/// cross first; the fullest leaves.
const ORDERS: &[CandidateOrder] = &[
    |crossing, slots| (crossing.min(1), Reverse(slots)),
    |_, slots| (0, Reverse(slots)),
    |crossing, slots| (crossing, Reverse(slots)),
    |_, slots| (slots, Reverse(0)),
];

/// Fills the leaves of a group in the given order.
fn by_leaves(
    (free, occupancy): (&FreeSlots<'_>, &Occupancy),
    (level, home): (usize, GroupIndex),
    wanted: u32,
    order: CandidateOrder,
) -> Vec<NodeIndex> {
    let fabric = free.fabric();
    let range = fabric.node_range(level, home);
    let leaves = fabric.group(1, range.start)..=fabric.group(1, range.end - 1);
    let mut leaves: Vec<GroupIndex> = leaves.filter(|&leaf| free.count(1, leaf) > 0).collect();
    leaves.sort_by_key(|&leaf| order(occupancy.crossing(1, leaf), free.count(1, leaf)));
    let mut nodes = Vec::with_capacity(wanted as usize);
    for leaf in leaves {
        free.take(1, leaf, wanted - nodes.len() as u32, &mut nodes);
    }
    nodes.sort_unstable();
    nodes
}
