//! The switches to which all minimal routes are free.

use std::cell::Cell;

use topolane_fabric::HyperX;

use crate::link_load::LinkLoad;

/// The most words that a search computes before it gives up growing sets. On a machine of some hundred switches it is never
/// reached.
const MOST_WORDS: u64 = 1_000_000;

/// Which links of the machine other jobs may use.
///
/// The closure of a job is the union of the routes of its pairs of switches. So a set of switches is free exactly if all
/// routes of each pair are. With a route its reverse is one too, so one direction says both.
pub(super) struct Ways<'a> {
    hyperx: &'a HyperX,
    used: &'a LinkLoad,
    /// Words of rows computed so far.
    words: Cell<u64>,
}

impl<'a> Ways<'a> {
    pub fn new(hyperx: &'a HyperX, used: &'a LinkLoad) -> Self {
        Ways { hyperx, used, words: Cell::new(0) }
    }

    /// The number of words of rows computed so far.
    pub fn words(&self) -> u64 {
        self.words.get()
    }

    /// Whether the search has reached its bound.
    pub fn are_costly(&self) -> bool {
        self.words() > MOST_WORDS
    }

    /// Keeps the switches of a set to which all minimal routes from a switch are free. `inside` has the dimensions, as
    /// bits, in which the set's places may differ from the switch's; `open` is memory for a word of each row.
    ///
    /// All routes to b are free exactly if, for each dimension in which b differs, all routes to the switch with a's place
    /// there are free, and the link from that switch to b.
    pub fn keep(&self, a: u32, inside: u32, set: &mut [u64], open: &mut [u64]) {
        let (hyperx, size) = (self.hyperx, self.hyperx.row_size());
        let last = hyperx.sizes().len() - 1;
        let (row, bit) = (a / size, 1u64 << (a % size));
        open[row as usize] = bit | !self.used.word(hyperx.word_in_row(a));
        let mut rows = vec![row];
        for dimension in (0..last).filter(|dimension| inside >> dimension & 1 == 1) {
            let stride = hyperx.strides()[dimension] / size;
            let own = hyperx.place(a, dimension);
            // The rows so far have the switch's place in this dimension, and those before are done.
            let before = rows.len();
            for place in (0..hyperx.sizes()[dimension]).filter(|&place| place != own) {
                for index in 0..before {
                    let other = rows[index] - own * stride + place * stride;
                    open[other as usize] = self.open_in(a, other, dimension, open);
                    rows.push(other);
                }
            }
        }
        for &row in &rows {
            set[row as usize] &= open[row as usize];
        }
        self.words.set(self.words() + rows.len() as u64);
    }

    /// The switches of a row to which all routes are free, given those of the rows on the way; the row has the switch's
    /// place in all dimensions after `dimension`.
    fn open_in(&self, a: u32, row: u32, dimension: usize, open: &[u64]) -> u64 {
        let (hyperx, size) = (self.hyperx, self.hyperx.row_size());
        let bit = 1u64 << (a % size);
        let mut able = u64::MAX;
        for dimension in 0..=dimension {
            let stride = hyperx.strides()[dimension] / size;
            let (own, place) = (hyperx.place(a, dimension), hyperx.place(row * size, dimension));
            if own != place {
                let before = row - place * stride + own * stride;
                let used = self.used.word(hyperx.word_to_row(dimension, before, place));
                able &= open[before as usize] & !used;
            }
        }
        if able & bit == 0 {
            return 0;
        }
        able & (bit | !self.used.word(hyperx.word_in_row(row * size + a % size)))
    }
}
