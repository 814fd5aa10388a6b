//! Tries small random changes of the best nodes found so far.

use topolane_fabric::{GroupIndex, NodeIndex, scramble};

use super::judge::Judge;
use crate::FreeSlots;

/// The search ends after this number of attempts.
const MOST_DRAWS: u64 = 160;

/// Tries to move one node, or all nodes of a leaf, as long as the judge allows more tries. The random numbers depend
/// only on `seed`.
pub(super) fn improve(judge: &mut Judge<'_>, free: &FreeSlots<'_>, seed: u64) {
    let leaves: Vec<GroupIndex> = free.groups_with(1, 1).collect();
    let mut others = None;
    for attempt in 0..MOST_DRAWS {
        if !judge.goes_on() {
            return;
        }
        let mut draws = Draws(scramble(seed) ^ attempt);
        let moved = if draws.below(3) == 0 {
            without_a_leaf(judge.best(), (free, &leaves), &mut draws)
        } else {
            let others = others.get_or_insert_with(|| others_of_leaves(judge.best(), free));
            another_node(judge.best(), others, &mut draws)
        };
        if let Some(mut nodes) = moved {
            nodes.sort_unstable();
            if judge.consider(nodes) {
                others = None;
            }
        }
    }
}

/// Pseudo-random numbers that depend only on the seed.
struct Draws(u64);

impl Draws {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = scramble(self.0);
        ((u128::from(self.0) * limit as u128) >> 64) as usize
    }

    fn one_of(&mut self, nodes: &[NodeIndex]) -> Option<NodeIndex> {
        (!nodes.is_empty()).then(|| nodes[self.below(nodes.len())])
    }
}

/// Up to `wanted` free slots of a leaf, in node order, on nodes that are not among `nodes`.
fn unused(
    free: &FreeSlots<'_>,
    nodes: &[NodeIndex],
    leaf: GroupIndex,
    wanted: usize,
    into: &mut Vec<NodeIndex>,
) {
    let range = free.fabric().node_range(1, leaf);
    let from = nodes.partition_point(|&node| node < range.start);
    let own = &nodes[from..];
    let own = &own[..own.partition_point(|&node| node < range.end)];
    if own.is_empty() {
        free.take(1, leaf, u32::try_from(wanted).unwrap_or(u32::MAX), into);
        return;
    }
    let before = into.len();
    free.take(1, leaf, u32::MAX, into);
    let mut place = before;
    for index in before..into.len() {
        if place - before < wanted && own.binary_search(&into[index]).is_err() {
            into[place] = into[index];
            place += 1;
        }
    }
    into.truncate(place);
}

/// The free slots on the job's leaves that are not on its own nodes.
fn others_of_leaves(nodes: &[NodeIndex], free: &FreeSlots<'_>) -> Vec<NodeIndex> {
    let fabric = free.fabric();
    let mut others = Vec::new();
    for of_leaf in nodes.chunk_by(|&a, &b| fabric.group(1, a) == fabric.group(1, b)) {
        unused(free, of_leaf, fabric.group(1, of_leaf[0]), usize::MAX, &mut others);
    }
    others
}

/// Returns the nodes with one of them replaced by one of `others`.
fn another_node(
    nodes: &[NodeIndex],
    others: &[NodeIndex],
    draws: &mut Draws,
) -> Option<Vec<NodeIndex>> {
    let other = draws.one_of(others)?;
    let mut moved = nodes.to_vec();
    moved[draws.below(nodes.len())] = other;
    Some(moved)
}

/// Returns the nodes with all nodes of one leaf replaced by free ones, starting from a random leaf. `leaves` are the
/// leaves with free slots.
fn without_a_leaf(
    nodes: &[NodeIndex],
    (free, leaves): (&FreeSlots<'_>, &[GroupIndex]),
    draws: &mut Draws,
) -> Option<Vec<NodeIndex>> {
    let fabric = free.fabric();
    let leaf = fabric.group(1, draws.one_of(nodes)?);
    let first = draws.below(fabric.groups(1) as usize) as u32;
    let (before, after) = leaves.split_at(leaves.partition_point(|&leaf| leaf < first));
    let stays = |&node: &NodeIndex| fabric.group(1, node) != leaf;
    let mut moved: Vec<NodeIndex> = nodes.iter().copied().filter(stays).collect();
    for &other in after.iter().chain(before).filter(|&&other| other != leaf) {
        let missing = nodes.len() - moved.len();
        if missing == 0 {
            break;
        }
        unused(free, nodes, other, missing, &mut moved);
    }
    (moved.len() == nodes.len()).then_some(moved)
}
