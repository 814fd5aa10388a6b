//! A quick proof that no free set has enough slots.
//!
//! Each switch of a free set has free routes to all others of it. So a switch whose free routes lead to too few slots is in no
//! such set, and neither counts for others: it drops out. Usually too few slots are left after one pass.

use super::flats::Flat;
use super::ways::Reach;
use super::{Search, bits};

/// The most passes of a patient proof.
const MOST_PASSES: u32 = 8;

impl Search<'_> {
    /// Returns a bound of the slots of all free sets among some switches of a flat, if it is proven to be below the number that
    /// the job wants. One pass, which ends early if it fails.
    pub(super) fn bound(&self, flat: Flat, able: &[u64], reach: &mut Reach) -> Option<u32> {
        self.bound_within(1, flat, able, reach)
    }

    /// The same on the whole machine, in several passes.
    pub(super) fn patient_bound(&self) -> Option<u32> {
        let all = Flat { first: 0, inside: (1 << self.hyperx.sizes().len()) - 1 };
        self.bound_within(MOST_PASSES, all, &self.able, &mut Reach::new(self.hyperx))
    }

    fn bound_within(
        &self,
        passes: u32,
        flat: Flat,
        able: &[u64],
        reach: &mut Reach,
    ) -> Option<u32> {
        let mut able = able.to_vec();
        let mut left = self.slots_of(&able);
        let mut bound = 0;
        let size = self.hyperx.row_size();
        for _ in 0..passes {
            let (before, mut kept) = (left, 0);
            for row in 0..able.len() {
                for place in bits(able[row]) {
                    // A set has its switches among those left, or is near the first of them that dropped out.
                    if left <= bound {
                        return Some(bound);
                    }
                    let switch = row as u32 * size + place;
                    let own = self.slots[switch as usize];
                    self.ways.follow(switch, flat.inside, Some(&able), reach);
                    let near =
                        reach.rows().map(|(row, open)| self.slots_in_row(row, open & able[row]));
                    let near: u32 = near.sum();
                    if near < self.wanted {
                        bound = bound.max(near);
                        able[row] &= !(1 << place);
                        left -= own;
                        continue;
                    }
                    kept += own;
                    if passes == 1 && kept >= self.wanted {
                        return None;
                    }
                }
            }
            if left < self.wanted {
                return Some(bound.max(left));
            }
            if left == before {
                return None;
            }
        }
        None
    }
}
