//! Small changes of the best nodes found, drawn one after the other.

use topolane_fabric::{GroupIndex, NodeIndex, scramble};

use super::judge::Judge;
use crate::FreeSlots;

/// Draws that lead to nothing new end the search after so many.
const MOST_DRAWS: u64 = 160;

/// Moves a node, or all nodes of a leaf, as long as there is time. The draws depend on `seed` alone.
pub(super) fn improve(judge: &mut Judge<'_>, free: &FreeSlots<'_>, seed: u64) {
    for attempt in 0..MOST_DRAWS {
        if !judge.goes_on() {
            return;
        }
        let mut draws = Draws(scramble(seed) ^ attempt);
        let moved = match draws.below(3) {
            0 => without_a_leaf(judge.best(), free, &mut draws),
            _ => another_node(judge.best(), free, &mut draws),
        };
        if let Some(mut nodes) = moved {
            nodes.sort_unstable();
            judge.consider(nodes);
        }
    }
}

/// Numbers that depend on the seed alone.
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

/// The free slots of a leaf on nodes that are not among `nodes`.
fn unused(free: &FreeSlots<'_>, nodes: &[NodeIndex], leaf: GroupIndex, into: &mut Vec<NodeIndex>) {
    let before = into.len();
    free.take(1, leaf, u32::MAX, into);
    let mut place = before;
    for index in before..into.len() {
        if nodes.binary_search(&into[index]).is_err() {
            into[place] = into[index];
            place += 1;
        }
    }
    into.truncate(place);
}

/// One node exchanged for another of the leaves that the job has.
fn another_node(
    nodes: &[NodeIndex],
    free: &FreeSlots<'_>,
    draws: &mut Draws,
) -> Option<Vec<NodeIndex>> {
    let fabric = free.fabric();
    let mut others = Vec::new();
    for of_leaf in nodes.chunk_by(|&a, &b| fabric.group(1, a) == fabric.group(1, b)) {
        unused(free, nodes, fabric.group(1, of_leaf[0]), &mut others);
    }
    let other = draws.one_of(&others)?;
    let mut moved = nodes.to_vec();
    moved[draws.below(nodes.len())] = other;
    Some(moved)
}

/// All nodes of one leaf exchanged for those of others, from a drawn leaf on.
fn without_a_leaf(
    nodes: &[NodeIndex],
    free: &FreeSlots<'_>,
    draws: &mut Draws,
) -> Option<Vec<NodeIndex>> {
    let fabric = free.fabric();
    let leaf = fabric.group(1, draws.one_of(nodes)?);
    let leaves = fabric.groups(1);
    let first = draws.below(leaves as usize) as u32;
    let stays = |&node: &NodeIndex| fabric.group(1, node) != leaf;
    let mut moved: Vec<NodeIndex> = nodes.iter().copied().filter(stays).collect();
    for other in (first..leaves).chain(0..first).filter(|&other| other != leaf) {
        if moved.len() >= nodes.len() {
            break;
        }
        unused(free, nodes, other, &mut moved);
    }
    moved.truncate(nodes.len());
    (moved.len() == nodes.len()).then_some(moved)
}
