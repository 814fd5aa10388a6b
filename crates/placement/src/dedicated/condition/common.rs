//! What several switches own in common.

use crate::dedicated::condition::partition::Cables;

/// The cables that all switches of a job own, but for a remainder that owns a part of them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Common {
    pub all: Cables,
    /// What the remainder owns as well; all of it where there is none.
    pub part: Cables,
    /// Whether each switch is in the remainder.
    pub remainder: Vec<bool>,
}

impl Common {
    /// Every switch that owns `all` owns it; the others are in the remainder.
    fn of(all: Cables, owned: &[&Cables]) -> Self {
        let lacks = |own: &&Cables| own.iter().zip(&all).any(|(own, all)| own < all);
        let remainder: Vec<bool> = owned.iter().map(lacks).collect();
        let left = owned.iter().zip(&remainder).filter(|&(_, &is_rest)| is_rest);
        let part = left.fold(all.clone(), |part, (own, _)| in_common(&part, own));
        Common { all, part, remainder }
    }

    /// Gives up a cable to a parent, if there is one left.
    pub fn give_up(&mut self, parent: usize) -> bool {
        let there = self.all[parent] > 0;
        if there {
            self.all[parent] -= 1;
            self.part[parent] = self.part[parent].min(self.all[parent]);
        }
        there
    }
}

/// Number of cables.
pub(crate) fn count(cables: &Cables) -> u32 {
    cables.iter().sum()
}

fn in_common(one: &Cables, other: &Cables) -> Cables {
    one.iter().zip(other).map(|(&one, &other)| one.min(other)).collect()
}

/// All that any of the switches own in common, what all own first; each with those that lack some of it as remainder.
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

/// The first switch that owns fewer cables in common with another, which needs no more, than it needs; and how many.
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
