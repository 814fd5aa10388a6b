//! Grows a set of switches, line by line.

use std::cmp::Reverse;

use super::flats::Flat;
use super::Search;

/// The most lines that are tried as the first one.
const MOST_SEEDS: usize = 4;
/// The most shapes that are tried in each direction of lines before any shape.
const MOST_SHAPES: usize = 4;

/// A set of switches that grows inside a flat.
pub(super) struct Growth<'a> {
    search: &'a Search<'a>,
    flat: Flat,
    /// The switches of the flat that can still join: a word for each row.
    able: Vec<u64>,
    /// The most places that the set may have in each dimension.
    limits: Vec<u32>,
    /// The places of the set in each dimension.
    places: Vec<u64>,
    taken: Vec<u32>,
    slots: u32,
    scratch: Vec<u64>,
}

/// Switches of a line that may join, and what the set would be with them.
struct Part {
    /// The fewer, the better: slots of the smallest sub-grid around the set that the job does not take; then, if the line
    /// ends the search, the slots that it has, otherwise its slots, the most first.
    price: (u32, u32, Reverse<u32>),
    switches: Vec<u32>,
}

impl<'a> Growth<'a> {
    pub fn new(search: &'a Search<'a>, flat: Flat) -> Self {
        let rows = search.able.len();
        Growth {
            search,
            flat,
            able: vec![0; rows],
            limits: Vec::new(),
            places: vec![0; search.hyperx.sizes().len()],
            taken: Vec::new(),
            slots: 0,
            scratch: vec![0; rows],
        }
    }

    /// Returns switches of the flat with enough slots such that all routes between them are free, in the order in which
    /// their slots are to be taken.
    pub fn best(mut self) -> Option<Vec<u32>> {
        let inside = self.flat.inside;
        for along in (0..self.places.len()).rev().filter(|&it| inside >> it & 1 == 1) {
            let lines = self.lines(along);
            for limits in self.shapes(along) {
                self.limits = limits;
                if self.grow(along, &lines) {
                    return Some(self.taken);
                }
            }
        }
        None
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
            if !self.add_line(along, lines, seed) {
                return false;
            }
            while self.slots < self.search.wanted && self.add_line(along, lines, 0) {}
            if self.slots >= self.search.wanted {
                return true;
            }
        }
        false
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
        self.able.fill(0);
        self.places.fill(0);
        self.taken.clear();
        self.slots = 0;
        let (last, size) = (self.places.len() - 1, self.search.hyperx.row_size());
        let is_wide = self.flat.inside >> last & 1 == 1;
        let places = if is_wide { u64::MAX } else { 1 << (self.flat.first % size) };
        for row in self.lines(last).into_iter().map(|first| first / size) {
            self.able[row as usize] = self.search.able[row as usize] & places;
        }
    }

    /// Adds switches of the line with the lowest price, or of the one after `skip` others. Returns whether there is one.
    fn add_line(&mut self, along: usize, lines: &[u32], skip: usize) -> bool {
        let hyperx = self.search.hyperx;
        let (size, stride) = (hyperx.sizes()[along], hyperx.strides()[along]);
        let mut parts: Vec<Part> = Vec::new();
        for &first in lines.iter().filter(|&&first| self.is_within_limits(along, first)) {
            let line = (0..size).map(|place| first + place * stride);
            let able: Vec<u32> = line.filter(|&switch| self.is_able(switch)).collect();
            if able.is_empty() {
                continue;
            }
            let part = self.part(along, able);
            if skip > 0 || parts.is_empty() {
                parts.push(part);
            } else if part.price < parts[0].price {
                parts[0] = part;
            }
        }
        parts.sort_by_key(|part| part.price);
        let Some(part) = parts.into_iter().nth(skip) else { return false };
        for switch in part.switches {
            // Switches of one line may be in each other's way.
            if self.is_able(switch) {
                self.add(switch);
            }
        }
        true
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

    /// The switches of a line that should join: all, or as few as suffice.
    fn part(&self, along: usize, mut able: Vec<u32>) -> Part {
        let (hyperx, slots) = (self.search.hyperx, &self.search.slots);
        let all: u32 = able.iter().map(|&switch| slots[switch as usize]).sum();
        let left = self.search.wanted - self.slots;
        let is_inside =
            |switch: u32| self.places[along] >> hyperx.place(switch, along) & 1 == 1;
        able.sort_by_key(|&switch| {
            (Reverse(is_inside(switch)), Reverse(slots[switch as usize]), switch)
        });
        let ends = all >= left;
        if ends {
            let mut count = 0;
            let mut enough = 0;
            while enough < left {
                enough += slots[able[count] as usize];
                count += 1;
            }
            // The last switch may be one with fewer slots.
            let before = enough - slots[able[count - 1] as usize];
            let suffices = |&&switch: &&u32| slots[switch as usize] >= left - before;
            let key = |&&switch: &&u32| (!is_inside(switch), slots[switch as usize]);
            if let Some(&last) = able[count - 1..].iter().filter(suffices).min_by_key(key) {
                able[count - 1] = last;
            }
            able.truncate(count);
        }
        let gained = if ends { left } else { all };
        let price = (
            self.spare_with(&able, self.slots + gained),
            if ends { all } else { 0 },
            Reverse(gained),
        );
        Part { price, switches: able }
    }

    /// The slots of the smallest sub-grid around the set and some switches, less `slots`.
    fn spare_with(&self, switches: &[u32], slots: u32) -> u32 {
        let hyperx = self.search.hyperx;
        let sides = self.places.iter().enumerate().map(|(dimension, &places)| {
            let with = |set: u64, &switch: &u32| set | 1 << hyperx.place(switch, dimension);
            switches.iter().fold(places, with).count_ones()
        });
        (sides.product::<u32>() * self.search.most).saturating_sub(slots)
    }

    fn add(&mut self, switch: u32) {
        let (hyperx, size) = (self.search.hyperx, self.search.hyperx.row_size());
        self.able[(switch / size) as usize] &= !(1 << (switch % size));
        self.search.ways.keep(switch, self.flat.inside, &mut self.able, &mut self.scratch);
        for (dimension, places) in self.places.iter_mut().enumerate() {
            *places |= 1 << hyperx.place(switch, dimension);
        }
        self.slots += self.search.slots[switch as usize];
        self.taken.push(switch);
    }
}
