//! Any set of switches, whatever its shape.

use super::ways::Reach;
use super::{Search, bits};
use crate::kept_bound::MostSlots;

/// The most words of sets of switches that one search computes. On a machine of some dozen switches it tries all sets.
const MOST_WORDS: u64 = 100_000;

/// Returns switches with enough slots such that all routes between them are free; else the most slots that such switches can
/// have, which is not known if the search reaches its bound.
pub(super) fn switches(search: &Search<'_>) -> Result<Vec<u32>, MostSlots> {
    let mut any = AnySet {
        search,
        inside: (1 << search.hyperx.sizes().len()) - 1,
        last: search.ways.words() + MOST_WORDS,
        reach: Reach::new(search.hyperx),
        taken: Vec::new(),
    };
    if any.descend(search.able.clone(), 0) {
        Ok(any.taken)
    } else if search.ways.words() < any.last {
        Err(MostSlots::of(search.wanted - 1))
    } else {
        Err(MostSlots::UNKNOWN)
    }
}

struct AnySet<'a> {
    search: &'a Search<'a>,
    inside: u32,
    /// The number of words at which the search ends.
    last: u64,
    reach: Reach,
    taken: Vec<u32>,
}

impl AnySet<'_> {
    /// Adds switches of `able`, each of which has free routes to all of the set, until the set has enough slots.
    fn descend(&mut self, mut able: Vec<u64>, mut slots: u32) -> bool {
        let before = self.taken.len();
        let mut left = self.search.slots_of(&able);
        while slots + left >= self.search.wanted {
            if slots >= self.search.wanted {
                return true;
            }
            let Some(switch) = self.next(&mut able) else { break };
            let own = self.search.slots[switch as usize];
            left -= own;
            let mut with = able.clone();
            self.search.ways.keep(switch, self.inside, &mut with, &mut self.reach);
            self.taken.push(switch);
            if with == able {
                // A switch that is in the way of no other costs nothing.
                slots += own;
                continue;
            }
            if self.search.ways.words() >= self.last {
                break;
            }
            if self.descend(with, slots + own) {
                return true;
            }
            self.taken.pop();
        }
        self.taken.truncate(before);
        false
    }

    /// Takes the first switch out of a set.
    fn next(&self, able: &mut [u64]) -> Option<u32> {
        let (row, word) = (0..).zip(able).find(|(_, word)| **word != 0)?;
        let place = bits(*word).next()?;
        *word &= !(1 << place);
        Some(row * self.search.hyperx.row_size() + place)
    }
}
