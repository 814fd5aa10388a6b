//! Sets of lanes that several leaves have in common.

use rustc_hash::FxHashSet;

use crate::owned::board::Leaf;

/// The free nodes of the leaves that have a set of lanes.
pub struct Members(Vec<u32>);

impl Members {
    /// Of those of `leaves` that have all of `set`.
    pub fn of(leaves: &[Leaf], set: u64) -> Self {
        let members = leaves.iter().filter(|leaf| leaf.lanes & set == set);
        Members(members.map(|leaf| leaf.idle).collect())
    }

    /// Nodes of all of them, of each at most so many.
    pub fn nodes(&self, most: u32) -> u32 {
        self.0.iter().map(|&idle| idle.min(most)).sum()
    }

    /// How many have at least so many.
    pub fn holding(&self, nodes: u32) -> u32 {
        self.0.iter().filter(|&&idle| idle >= nodes).count() as u32
    }
}

/// All intersections of the given sets of lanes, none empty, as far as `most` of them; whether there are more.
pub fn closed_sets(lanes: impl Iterator<Item = u64>, most: usize) -> (Vec<u64>, bool) {
    let mut sets: Vec<u64> = Vec::with_capacity(32);
    let mut known = FxHashSet::default();
    for own in lanes {
        if own == 0 || !known.insert(own) {
            continue;
        }
        let before = sets.len();
        sets.push(own);
        for at in 0..before {
            let common = sets[at] & own;
            if common != 0 && known.insert(common) {
                if sets.len() >= most {
                    return (sets, true);
                }
                sets.push(common);
            }
        }
    }
    (sets, false)
}
