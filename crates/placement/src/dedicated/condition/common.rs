//! The cables that several switches of a job own towards the same parents.

use crate::dedicated::condition::partition::Cables;

/// The cables that all switches of a job own. Some switches, the remainder, may own only a part of them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Common {
    pub all: Cables,
    /// The part of `all` that every switch of the remainder owns; `all` itself if there is no remainder.
    pub part: Cables,
    /// For each switch, whether it belongs to the remainder.
    pub remainder: Vec<bool>,
}

impl Common {
    /// Compares every switch with `all`: a switch that owns less belongs to the remainder.
    fn of(all: Cables, owned: &[&Cables]) -> Self {
        let lacks = |own: &&Cables| own.iter().zip(&all).any(|(own, all)| own < all);
        let remainder: Vec<bool> = owned.iter().map(lacks).collect();
        let left = owned.iter().zip(&remainder).filter(|&(_, &is_rest)| is_rest);
        let part = left.fold(all.clone(), |part, (own, _)| in_common(&part, own));
        Common { all, part, remainder }
    }

    /// Gives up one cable to a parent. Returns false if none is left.
    pub fn give_up(&mut self, parent: usize) -> bool {
        let there = self.all[parent] > 0;
        if there {
            self.all[parent] -= 1;
            self.part[parent] = self.part[parent].min(self.all[parent]);
        }
        there
    }
}

/// The total number of cables.
pub(crate) fn count(cables: &Cables) -> u32 {
    cables.iter().sum()
}

fn in_common(one: &Cables, other: &Cables) -> Cables {
    one.iter().zip(other).map(|(&one, &other)| one.min(other)).collect()
}

/// Returns every set of cables that some of the switches own in common, starting with what all of them own. The
/// switches that own only a part of a set are its remainder.
pub(crate) fn all_common(owned: &[&Cables]) -> Vec<Common> {
    let mut sets: Vec<Cables> = Vec::new();
    for &own in owned {
        for at in 0..sets.len() {
            let both = in_common(&sets[at], own);
            if !sets.contains(&both) {
                sets.push(both);
            }
        }
        if !sets.contains(own) {
            sets.push(own.clone());
        }
    }
    sets.sort_by_key(count);
    sets.into_iter().map(|all| Common::of(all, owned)).collect()
}

/// The first switch that owns too few cables in common with another switch that needs no more than it, and how many
/// they own in common. `None` if every pair owns enough.
pub(crate) fn lacking_pair(owned: &[&Cables], needed: &[u32]) -> Option<(usize, u32)> {
    for one in 0..owned.len() {
        for other in 0..one {
            let both = count(&in_common(owned[one], owned[other]));
            if both < needed[one].max(needed[other]) {
                return Some((if needed[other] < needed[one] { one } else { other }, both));
            }
        }
    }
    None
}
