//! Counts how many placements use each link of a wiring that is not a tree.

use topolane_fabric::{Dragonfly, Fabric};

use crate::detours::DetourLoad;
use crate::dragonfly::{Conflicts, KeptConflicts};
use crate::kept_bound::KeptBound;
use crate::placement::WiredLinks;

/// The placements on each link of a wiring that is not a tree.
#[derive(Debug, Clone)]
pub(crate) struct WiredLoad {
    /// Those that may use it.
    used: LinkLoad,
    /// Those that no other may join there.
    owned: LinkLoad,
    bound: KeptBound,
    /// What they leave to each other, if messages may take detours.
    detours: Option<DetourLoad>,
}

impl WiredLoad {
    /// Returns the load of an empty machine; `None` on a tree.
    pub fn of(fabric: &Fabric) -> Option<Box<Self>> {
        let conflicts = fabric.wiring().dragonfly().map(KeptConflicts::new).unwrap_or_default();
        let load = || LinkLoad::new(fabric.link_words()).keeping(conflicts.clone());
        let bound = KeptBound::unknown();
        let detours = DetourLoad::of(fabric);
        let empty = || Box::new(WiredLoad { used: load(), owned: load(), bound, detours });
        (!fabric.wiring().is_tree()).then(empty)
    }

    /// The links that placements may use.
    pub fn used(&self) -> &LinkLoad {
        &self.used
    }

    /// The links that a placement has to itself.
    pub fn owned(&self) -> &LinkLoad {
        &self.owned
    }

    /// The bound of idle nodes with links that no placement uses.
    pub fn bound(&self) -> &KeptBound {
        &self.bound
    }

    /// What placements leave to each other, if messages may take detours.
    pub fn detours(&self) -> Option<&DetourLoad> {
        self.detours.as_ref()
    }

    /// Records that nodes were freed.
    pub fn forget_bound(&mut self) {
        self.bound.forget();
    }

    pub fn enter(&mut self, links: &WiredLinks) {
        self.used.add(links.used_words());
        self.owned.add(links.owned_words());
        if let (Some(detours), Some(spread)) = (&mut self.detours, links.spread()) {
            detours.enter(spread, links.has_promise());
        }
    }

    pub fn leave(&mut self, links: &WiredLinks) {
        self.bound.forget();
        self.used.remove(links.used_words());
        self.owned.remove(links.owned_words());
        if let (Some(detours), Some(spread)) = (&mut self.detours, links.spread()) {
            detours.leave(spread, links.has_promise());
        }
    }

    /// Whether the job shares no link that it, or another, does not share, and all keep their shares of the cables on which
    /// detours meet.
    pub fn has_room_for(&self, links: &WiredLinks) -> bool {
        let keeps_shares = match (&self.detours, links.spread()) {
            (Some(detours), Some(spread)) => detours.has_room_for(spread, links.has_promise()),
            _ => true,
        };
        keeps_shares
            && !self.used.meets(links.owned_words())
            && !self.owned.meets(links.used_words())
    }
}

/// A counter for each directed link, 64 links to a word: bit `n` of a counter is in plane `n`. So a claim adds to 64
/// counters at once, and while no two jobs share a link there is one plane.
#[derive(Debug, Clone, Default)]
pub(crate) struct LinkLoad {
    /// The links with a counter above 0.
    used: Vec<u64>,
    /// The bits of the counters, the lowest first.
    planes: Vec<Vec<u64>>,
    conflicts: KeptConflicts,
}

impl LinkLoad {
    /// Returns counters of 0 for this number of words.
    pub fn new(words: u32) -> Self {
        LinkLoad { used: vec![0; words as usize], ..LinkLoad::default() }
    }

    /// Keeps conflicts of a dragonfly too.
    fn keeping(self, conflicts: KeptConflicts) -> Self {
        LinkLoad { conflicts, ..self }
    }

    /// The conflicts between switches of a group of a dragonfly over these links; `None` if there are none.
    pub fn conflicts_in(&self, dragonfly: &Dragonfly, group: u32) -> Option<&Conflicts> {
        self.conflicts.get(dragonfly, group, &|word| self.word(word))
    }

    /// The links of a word that any placement uses.
    #[inline]
    pub fn word(&self, number: u32) -> u64 {
        self.used[number as usize]
    }

    /// The same for some words in a row.
    #[inline]
    pub fn words(&self, first: u32, count: u32) -> &[u64] {
        &self.used[first as usize..][..count as usize]
    }

    /// Whether any placement uses any of these links.
    pub fn meets(&self, words: &[(u32, u64)]) -> bool {
        words.iter().any(|&(number, bits)| self.used[number as usize] & bits != 0)
    }

    /// Counts one more placement on these links.
    #[inline]
    pub fn add(&mut self, words: &[(u32, u64)]) {
        for &(number, bits) in words {
            let (at, mut carry, mut plane) = (number as usize, bits, 0);
            while carry != 0 {
                if plane == self.planes.len() {
                    self.planes.push(vec![0; self.used.len()]);
                }
                let word = &mut self.planes[plane][at];
                (*word, carry) = (*word ^ carry, *word & carry);
                plane += 1;
            }
            self.used[at] |= bits;
            self.conflicts.forget(number);
        }
    }

    /// Counts one placement less on these links, each of which has a counter above 0.
    #[inline]
    pub fn remove(&mut self, words: &[(u32, u64)]) {
        for &(number, bits) in words {
            let (at, mut borrow) = (number as usize, bits);
            for plane in &mut self.planes {
                let word = &mut plane[at];
                (*word, borrow) = (*word ^ borrow, !*word & borrow);
            }
            self.used[at] = self.planes.iter().fold(0, |all, plane| all | plane[at]);
            self.conflicts.forget(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The counters are those of a plain count, after any claims and releases.
    #[test]
    fn a_link_is_used_until_its_last_placement_leaves() {
        let sets = [vec![(0, 0b111)], vec![(0, 0b110), (1, 1)], vec![(0, 0b100)], vec![(0, 0b100)]];
        let mut load = LinkLoad::new(2);
        for set in &sets {
            load.add(set);
        }
        assert_eq!((load.word(0), load.word(1)), (0b111, 1));
        load.remove(&sets[0]);
        assert_eq!(load.word(0), 0b110, "link 0 had one placement");
        load.remove(&sets[2]);
        load.remove(&sets[1]);
        assert_eq!((load.word(0), load.word(1)), (0b100, 0));
        assert!(load.meets(&[(0, 0b100)]) && !load.meets(&[(0, 0b011), (1, 1)]));
        load.remove(&sets[3]);
        assert_eq!((load.word(0), load.word(1)), (0, 0));
    }
}
