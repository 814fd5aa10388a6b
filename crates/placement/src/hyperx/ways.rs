//! The switches to which all minimal routes are free.

use std::cell::Cell;

use topolane_fabric::HyperX;

use super::bits;
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
    /// The dimensions but the last.
    outer: Vec<Outer>,
    /// Words of rows computed so far.
    words: Cell<u64>,
}

/// A dimension that is not the last.
struct Outer {
    size: u32,
    /// The difference in number of neighbouring rows.
    stride: u32,
    /// The number of its first word of links.
    first_word: u32,
}

/// The last step of routes to some row: the row before it and the word of the links, for place 0 in some dimension.
#[derive(Debug, Clone, Copy, Default)]
struct LastStep {
    row: u32,
    word: u32,
    /// The difference of the word for the next place.
    words: u32,
}

/// The switches to which all minimal routes from one switch are free. It is used again for the next switch.
pub(super) struct Reach {
    /// A word for each row of the machine.
    open: Vec<u64>,
    /// The rows whose word is not 0, and the dimensions in which they differ from the switch's row, as bits.
    rows: Vec<(u32, u32)>,
}

impl Reach {
    pub fn new(hyperx: &HyperX) -> Self {
        Reach { open: vec![0; hyperx.rows() as usize], rows: Vec::new() }
    }

    /// The rows with such switches, and these.
    pub fn rows(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.rows.iter().map(|&(row, _)| (row as usize, self.open[row as usize]))
    }
}

impl<'a> Ways<'a> {
    pub fn new(hyperx: &'a HyperX, used: &'a LinkLoad) -> Self {
        let outer = |dimension: usize| Outer {
            size: hyperx.sizes()[dimension],
            stride: hyperx.strides()[dimension] / hyperx.row_size(),
            first_word: hyperx.word_to_row(dimension, 0, 0),
        };
        let outer = (0..hyperx.sizes().len() - 1).map(outer).collect();
        Ways { hyperx, used, outer, words: Cell::new(0) }
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
    /// bits, in which the set's places may differ from the switch's.
    pub fn keep(&self, a: u32, inside: u32, set: &mut [u64], reach: &mut Reach) {
        self.follow(a, inside, None, reach);
        for (set, open) in set.iter_mut().zip(&reach.open) {
            *set &= open;
        }
        let along = (0..).zip(&self.outer).filter(|(dimension, _)| inside >> dimension & 1 == 1);
        let rows: u64 = along.map(|(_, outer)| u64::from(outer.size)).product();
        self.words.set(self.words() + rows);
    }

    /// Finds the switches to which all minimal routes from a switch are free, whatever their slots. Rows without a switch of
    /// `only` may be skipped.
    ///
    /// All routes to b are free exactly if, for each dimension in which b differs, all routes to the switch with a's place
    /// there are free, and the link from that switch to b.
    pub fn follow(&self, a: u32, inside: u32, only: Option<&[u64]>, reach: &mut Reach) {
        let (hyperx, size) = (self.hyperx, self.hyperx.row_size());
        let Reach { open, rows } = reach;
        for (row, _) in rows.drain(..) {
            open[row as usize] = 0;
        }
        let (row, bit) = (a / size, 1u64 << (a % size));
        open[row as usize] = bit | !self.used.word(hyperx.word_in_row(a));
        rows.push((row, 0));
        let all = inside & ((1 << self.outer.len()) - 1);
        let along = self.outer.iter().enumerate().filter(|(it, _)| inside >> it & 1 == 1);
        for (dimension, outer) in along {
            let own = hyperx.place(a, dimension);
            // The rows so far have the switch's place in this dimension, and those before are done.
            for index in 0..rows.len() {
                let (from, differs) = rows[index];
                let first = from - own * outer.stride;
                // No route leads on from a row that differs in all dimensions.
                let only = only.filter(|_| differs | 1 << dimension == all);
                let (before, count) = self.last_steps(a, from, differs, first, outer);
                let links = self.used.words(outer.first_word + from * outer.size, outer.size);
                for (place, used) in (0..).zip(links) {
                    if used & bit != 0 || place == own {
                        continue;
                    }
                    let to = first + place * outer.stride;
                    if only.is_some_and(|only| only[to as usize] == 0) {
                        continue;
                    }
                    let mut able = open[from as usize] & !used;
                    for step in &before[..count] {
                        let row = step.row + place * outer.stride;
                        able &=
                            open[row as usize] & !self.used.word(step.word + place * step.words);
                    }
                    if able & bit != 0 {
                        let in_row = hyperx.word_in_row(to * size + a % size);
                        open[to as usize] = able & (bit | !self.used.word(in_row));
                        rows.push((to, differs | 1 << dimension));
                    }
                }
            }
        }
    }

    /// The other last steps of routes to the rows that differ from row `from` only in a dimension, of which `first` is the
    /// one with place 0: one for each dimension in which `from` differs from the row of switch `a`.
    fn last_steps(
        &self,
        a: u32,
        from: u32,
        differs: u32,
        first: u32,
        along: &Outer,
    ) -> ([LastStep; 2], usize) {
        let (mut steps, mut count) = ([LastStep::default(); 2], 0);
        for dimension in bits(differs.into()) {
            let outer = &self.outer[dimension as usize];
            let there = self.hyperx.place(from * self.hyperx.row_size(), dimension as usize);
            let own = self.hyperx.place(a, dimension as usize);
            let row = first + own * outer.stride - there * outer.stride;
            let word = outer.first_word + row * outer.size + there;
            steps[count] = LastStep { row, word, words: along.stride * outer.size };
            count += 1;
        }
        (steps, count)
    }
}
