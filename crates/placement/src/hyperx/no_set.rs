//! A quick proof that no free set has enough slots.
//!
//! Each switch of a free set has free routes to all others of it. So a switch whose free routes lead to too few slots is in no
//! such set, and neither counts for others: it drops out. Usually too few slots are left after one pass.

use super::flats::Flat;
use super::ways::Reach;
use super::{Search, bits};

impl Search<'_> {
    /// Returns a bound of the slots of all free sets in a flat, if it is proven to be below the number that the job wants.
    pub(super) fn bound(&self, flat: Flat, able: &[u64], reach: &mut Reach) -> Option<u32> {
        let mut able = able.to_vec();
        let mut left = self.slots_of(&able);
        let (mut kept, mut bound) = (0, 0);
        let size = self.hyperx.row_size();
        for row in 0..able.len() {
            for place in bits(able[row]) {
                // A set has its switches among those left, or is near the first of them that dropped out.
                if left <= bound {
                    return Some(bound);
                }
                let switch = row as u32 * size + place;
                let own = self.slots[switch as usize];
                self.ways.follow(switch, flat.inside, Some(&able), reach);
                let near = reach.rows().map(|(row, open)| self.slots_in_row(row, open & able[row]));
                let near: u32 = near.sum();
                if near >= self.wanted {
                    kept += own;
                    if kept >= self.wanted {
                        return None;
                    }
                } else {
                    bound = bound.max(near);
                    able[row] &= !(1 << place);
                    left -= own;
                }
            }
        }
        Some(bound.max(left))
    }
}
