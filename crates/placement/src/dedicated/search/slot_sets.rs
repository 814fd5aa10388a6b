//! Sets of uplink slots that several leaves have in common.

use std::cmp::Reverse;

use rustc_hash::{FxBuildHasher, FxHashSet};

use crate::dedicated::search::BOUNDS;
use crate::dedicated::search::leaf::Leaf;

/// The leaves that have a set of slots, counted by their free nodes.
#[derive(Default)]
pub struct SlotSetCounts {
    /// Entry `n` is the number of leaves with at least `n` free nodes.
    holding: Vec<u32>,
    /// Entry `n - 1` is the number of free nodes, counting at most `n` on each leaf.
    nodes: Vec<u32>,
}

impl SlotSetCounts {
    /// Counts those of `leaves` that have all slots of `set`.
    pub fn look_at(&mut self, leaves: &[Leaf], set: u64) {
        self.holding.clear();
        for leaf in leaves.iter().filter(|leaf| leaf.slots & set == set) {
            let idle = leaf.idle as usize;
            if idle >= self.holding.len() {
                self.holding.resize(idle + 1, 0);
            }
            self.holding[idle] += 1;
        }
        for idle in (1..self.holding.len()).rev() {
            self.holding[idle - 1] += self.holding[idle];
        }
        self.nodes.clear();
        self.nodes.extend(self.holding.iter().skip(1).scan(0, |nodes, holding| {
            *nodes += holding;
            Some(*nodes)
        }));
    }

    /// Free nodes of these leaves, counting at most `most` on each.
    pub fn nodes(&self, most: u32) -> u32 {
        let most = self.nodes.len().min(most as usize);
        if most == 0 { 0 } else { self.nodes[most - 1] }
    }

    /// The number of these leaves with at least `nodes` free nodes.
    pub fn holding(&self, nodes: u32) -> u32 {
        self.holding.get(nodes as usize).copied().unwrap_or(0)
    }
}

/// Free nodes of the leaves that have all slots of a set, counting at most `most` on each.
pub fn nodes_on(leaves: &[Leaf], set: u64, most: u32) -> u32 {
    leaves.iter().filter(|leaf| leaf.slots & set == set).map(|leaf| leaf.idle.min(most)).sum()
}

/// Returns all intersections of the given sets that have at least `fewest` slots (never an empty one), and whether
/// there are more than [`BOUNDS`] allows.
pub fn closed_sets(slots: impl Iterator<Item = u64>, fewest: u32) -> (Vec<u64>, bool) {
    let mut sets: Vec<u64> = Vec::with_capacity(32);
    let mut known = FxHashSet::with_capacity_and_hasher(32, FxBuildHasher);
    for own in slots {
        if own.count_ones() < fewest.max(1) || !known.insert(own) {
            continue;
        }
        let before = sets.len();
        sets.push(own);
        for at in 0..before {
            let common = sets[at] & own;
            if common.count_ones() >= fewest.max(1) && known.insert(common) {
                if sets.len() >= BOUNDS.slot_sets {
                    return (sets, true);
                }
                sets.push(common);
            }
        }
    }
    (sets, false)
}

/// The distinct sets of free slots; the set whose leaves have most free nodes comes first.
pub fn by_weight(leaves: &[Leaf]) -> Vec<u64> {
    let mut weights: Vec<(u64, u32)> = leaves.iter().map(|leaf| (leaf.slots, leaf.idle)).collect();
    weights.sort_unstable();
    weights.dedup_by(|one, kept| {
        let same = one.0 == kept.0;
        if same {
            kept.1 += one.1;
        }
        same
    });
    weights.sort_by_key(|&(slots, idle)| (Reverse(idle), slots));
    weights.into_iter().map(|(slots, _)| slots).collect()
}

/// The lowest `count` slots of a set.
pub fn lowest(set: u64, count: u32) -> u64 {
    let mut left = set;
    for _ in 0..count {
        left &= left.wrapping_sub(1);
    }
    set & !left
}

/// The `count` slots of a set that the fewest leaves have free, the lowest among equals.
pub fn rarest(set: u64, count: u32, leaves: &[Leaf]) -> u64 {
    if set.count_ones() <= count {
        return set;
    }
    let having = |slot: u32| leaves.iter().filter(|leaf| leaf.slots >> slot & 1 == 1).count();
    let mut slots: Vec<(usize, u32)> = (0..u64::BITS)
        .filter(|slot| set >> slot & 1 == 1)
        .map(|slot| (having(slot), slot))
        .collect();
    slots.sort_unstable();
    slots[..count as usize].iter().fold(0, |chosen, &(_, slot)| chosen | 1 << slot)
}

/// The planes of a set of slots, ascending, if every slot leads to a plane of its own.
pub fn planes_of(set: u64) -> impl Iterator<Item = usize> {
    (0..u64::BITS as usize).filter(move |plane| set >> plane & 1 == 1)
}
