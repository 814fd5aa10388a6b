//! Grows a set of switches, line by line.

use std::cell::OnceCell;
use std::cmp::Reverse;

use topolane_fabric::HyperX;

use super::flats::Flat;
use super::ways::Reach;
use super::{Search, bits};

/// The most lines that are tried as the first one.
const MOST_SEEDS: usize = 4;
/// The most shapes that are tried in each direction of lines before any shape.
const MOST_SHAPES: usize = 4;

/// A set of switches that grows inside a flat.
pub(super) struct Growth<'a> {
    search: &'a Search<'a>,
    flat: Flat,
    /// The rows of the machine in which the flat has switches.
    rows: Vec<u32>,
    /// The switches of the flat that can still join: a word for each row.
    able: Vec<u64>,
    /// The most places that the set may have in each dimension.
    limits: Vec<u32>,
    /// The places of the set in each dimension.
    places: Vec<u64>,
    taken: Vec<u32>,
    slots: u32,
    reach: Reach,
    /// What [`Search::bound`] said of the flat.
    bound: OnceCell<Option<u32>>,
}

/// The switches of a line that can join, by their places.
#[derive(Clone, Copy)]
struct Line {
    along: usize,
    first: u32,
    able: u64,
}

impl Line {
    fn switch(&self, hyperx: &HyperX, place: u32) -> u32 {
        self.first + place * hyperx.strides()[self.along]
    }
}

/// What a line costs; the less, the better: slots of the smallest sub-grid around the set that the job does not take; then,
/// of lines that end the search, the slots that there are; of others the most slots.
type Price = (u32, u32, Reverse<u32>);

impl<'a> Growth<'a> {
    pub fn new(search: &'a Search<'a>, flat: Flat) -> Self {
        let mut growth = Growth {
            search,
            flat,
            rows: Vec::new(),
            able: vec![0; search.able.len()],
            limits: Vec::new(),
            places: vec![0; search.hyperx.sizes().len()],
            taken: Vec::new(),
            slots: 0,
            reach: Reach::new(search.hyperx),
            bound: OnceCell::new(),
        };
        let size = search.hyperx.row_size();
        growth.rows = growth.lines(growth.places.len() - 1);
        growth.rows.iter_mut().for_each(|first| *first /= size);
        growth
    }

    /// Returns switches of the flat with enough slots such that all routes between them are free, in the order in which
    /// their slots are to be taken; else a bound of the slots of all free sets of the flat, if it is proven that none has
    /// enough.
    pub fn best(mut self) -> Result<Vec<u32>, Option<u32>> {
        let inside = self.flat.inside;
        for along in (0..self.places.len()).rev().filter(|&it| inside >> it & 1 == 1) {
            let lines = self.lines(along);
            for limits in self.shapes(along) {
                self.limits = limits;
                if self.grow(along, &lines) {
                    return Ok(self.taken);
                }
                if let Some(bound) = self.bound() {
                    return Err(Some(bound));
                }
            }
        }
        Err(None)
    }

    /// The limits of sub-grids of lines, those with the fewest lines that suffice first; then no limits.
    ///
    /// A line of the sub-grid that the job does not take is lost to others: routes between its lines go over it.
    fn shapes(&self, along: usize) -> Vec<Vec<u32>> {
        let (hyperx, search) = (self.search.hyperx, self.search);
        let wanted = search.wanted.div_ceil(hyperx.sizes()[along] * search.most.max(1));
        let mut shapes = vec![vec![u32::MAX; self.places.len()]];
        let across = |&it: &usize| it != along && self.flat.inside >> it & 1 == 1;
        let across: Vec<usize> = (0..self.places.len()).filter(across).collect();
        if across.len() > 1 {
            for &dimension in &across {
                let with = |shape: Vec<u32>| {
                    (1..=hyperx.sizes()[dimension]).map(move |side| {
                        let mut shape = shape.clone();
                        shape[dimension] = side;
                        shape
                    })
                };
                shapes = shapes.into_iter().flat_map(with).collect();
            }
            let lines = |shape: &[u32]| across.iter().map(|&it| shape[it]).product::<u32>();
            let around = |shape: &[u32]| across.iter().map(|&it| shape[it]).sum::<u32>();
            shapes.retain(|shape| lines(shape) >= wanted);
            shapes.sort_by_cached_key(|shape| (lines(shape), around(shape)));
            shapes.truncate(MOST_SHAPES);
            shapes.push(vec![u32::MAX; self.places.len()]);
        }
        shapes
    }

    /// Grows a set with enough slots from each of the best lines, until it succeeds.
    fn grow(&mut self, along: usize, lines: &[u32]) -> bool {
        for seed in 0..MOST_SEEDS {
            self.restart();
            if self.search.ways.are_costly() || !self.add_line(along, lines, seed) {
                return false;
            }
            while self.slots < self.search.wanted && self.add_line(along, lines, 0) {}
            if self.slots >= self.search.wanted {
                return true;
            }
            // Most flats that fail hold no set at all.
            if self.bound().is_some() {
                return false;
            }
        }
        false
    }

    /// Returns a bound of the slots of all free sets of the flat, if it is proven that none has enough.
    fn bound(&mut self) -> Option<u32> {
        if let Some(&known) = self.bound.get() {
            return known;
        }
        self.restart();
        let Growth { search, flat, able, reach, bound, .. } = self;
        *bound.get_or_init(|| search.bound(*flat, able, reach))
    }

    /// The first switch of each line of the flat in a dimension.
    fn lines(&self, along: usize) -> Vec<u32> {
        let hyperx = self.search.hyperx;
        let mut lines = vec![self.flat.first];
        for dimension in (0..self.places.len()).filter(|&it| self.flat.inside >> it & 1 == 1) {
            if dimension != along {
                let (size, stride) = (hyperx.sizes()[dimension], hyperx.strides()[dimension]);
                let with = |first: u32| (0..size).map(move |place| first + place * stride);
                lines = lines.into_iter().flat_map(with).collect();
            }
        }
        lines
    }

    /// Empties the set; all free switches of the flat may join.
    fn restart(&mut self) {
        self.places.fill(0);
        self.taken.clear();
        self.slots = 0;
        let (last, size) = (self.places.len() - 1, self.search.hyperx.row_size());
        let is_wide = self.flat.inside >> last & 1 == 1;
        let places = if is_wide { u64::MAX } else { 1 << (self.flat.first % size) };
        for &row in &self.rows {
            self.able[row as usize] = self.search.able[row as usize] & places;
        }
    }

    /// Adds switches of the line with the lowest price, or of the one after `skip` others. Returns whether there is one.
    fn add_line(&mut self, along: usize, lines: &[u32], skip: usize) -> bool {
        let most = self.rows.iter().map(|&row| self.able[row as usize].count_ones()).sum::<u32>();
        let most = most * self.search.most;
        if self.slots + most < self.search.wanted {
            return false;
        }
        let mut offers: Vec<(Price, Line)> = Vec::new();
        for &first in lines.iter().filter(|&&first| self.is_within_limits(along, first)) {
            let line = Line { along, first, able: self.able_in(along, first) };
            if line.able == 0 {
                continue;
            }
            let offer = (self.price(&line), line);
            if skip > 0 || offers.is_empty() {
                offers.push(offer);
            } else if offer.0 < offers[0].0 {
                offers[0] = offer;
            }
        }
        offers.sort_by_key(|&(price, _)| price);
        let Some((_, line)) = offers.get(skip) else { return false };
        for switch in self.part(line) {
            // Switches of one line may be in each other's way.
            if self.is_able(switch) {
                self.add(switch);
            }
        }
        true
    }

    /// The places in a line of the switches that can join.
    fn able_in(&self, along: usize, first: u32) -> u64 {
        let hyperx = self.search.hyperx;
        let size = hyperx.row_size();
        if along + 1 == self.places.len() {
            return self.able[(first / size) as usize];
        }
        let (row, bit, stride) = (first / size, first % size, hyperx.strides()[along] / size);
        let able = |place: u32| self.able[(row + place * stride) as usize] >> bit & 1;
        (0..hyperx.sizes()[along]).fold(0, |all, place| all | able(place) << place)
    }

    /// Whether the set keeps to its limits with a line.
    fn is_within_limits(&self, along: usize, first: u32) -> bool {
        let places = self.places.iter().zip(&self.limits).enumerate();
        places.filter(|&(dimension, _)| dimension != along).all(|(dimension, (&places, &most))| {
            (places | 1 << self.search.hyperx.place(first, dimension)).count_ones() <= most
        })
    }

    fn is_able(&self, switch: u32) -> bool {
        let size = self.search.hyperx.row_size();
        self.able[(switch / size) as usize] >> (switch % size) & 1 == 1
    }

    /// The slots of the switches of a line that can join.
    fn slots_in(&self, line: &Line) -> u32 {
        let slots = |place: u32| self.search.slots[line.switch(self.search.hyperx, place) as usize];
        if self.search.most == 1 {
            line.able.count_ones()
        } else {
            bits(line.able).map(slots).sum()
        }
    }

    fn price(&self, line: &Line) -> Price {
        let all = self.slots_in(line);
        let left = self.search.wanted - self.slots;
        if all < left {
            return (self.spare_with(line, line.able, self.slots + all), 0, Reverse(all));
        }
        let place = |switch| self.search.hyperx.place(switch, line.along);
        let part = self.part(line).into_iter().fold(0, |set, switch| set | 1 << place(switch));
        (self.spare_with(line, part, self.search.wanted), all, Reverse(left))
    }

    /// The slots of the smallest sub-grid around the set and some places of a line, less `slots`.
    fn spare_with(&self, line: &Line, part: u64, slots: u32) -> u32 {
        let hyperx = self.search.hyperx;
        let sides = self.places.iter().enumerate().map(|(dimension, &places)| {
            let own = 1 << hyperx.place(line.first, dimension);
            (places | if dimension == line.along { part } else { own }).count_ones()
        });
        (sides.product::<u32>() * self.search.most).saturating_sub(slots)
    }

    /// The switches of a line that should join: all, or as few as suffice, those at places of the set first.
    fn part(&self, line: &Line) -> Vec<u32> {
        let (hyperx, slots) = (self.search.hyperx, &self.search.slots);
        let mut able: Vec<u32> = bits(line.able).map(|place| line.switch(hyperx, place)).collect();
        let left = self.search.wanted - self.slots;
        let is_outside =
            |switch: u32| self.places[line.along] >> hyperx.place(switch, line.along) & 1 == 0;
        able.sort_by_key(|&switch| (is_outside(switch), Reverse(slots[switch as usize]), switch));
        let mut enough = 0;
        for count in 0..able.len() {
            let needed = left - enough;
            enough += slots[able[count] as usize];
            if enough >= left {
                // The last switch may be one with fewer slots.
                let suffices = |&&switch: &&u32| slots[switch as usize] >= needed;
                let key = |&&switch: &&u32| (is_outside(switch), slots[switch as usize]);
                if let Some(&last) = able[count..].iter().filter(suffices).min_by_key(key) {
                    able[count] = last;
                }
                able.truncate(count + 1);
                break;
            }
        }
        able
    }

    fn add(&mut self, switch: u32) {
        let (hyperx, size) = (self.search.hyperx, self.search.hyperx.row_size());
        self.able[(switch / size) as usize] &= !(1 << (switch % size));
        self.search.ways.keep(switch, self.flat.inside, &mut self.able, &mut self.reach);
        for (dimension, places) in self.places.iter_mut().enumerate() {
            *places |= 1 << hyperx.place(switch, dimension);
        }
        self.slots += self.search.slots[switch as usize];
        self.taken.push(switch);
    }
}
