//! Searches for nodes of a HyperX whose links no other job uses.

mod any_set;
mod flats;
mod growth;
mod no_set;
mod ways;

use std::borrow::Cow;

use topolane_fabric::{HyperX, NodeIndex};

use crate::free_slots::FreeSlots;
use crate::kept_bound::MostSlots;
use crate::link_load::LinkLoad;
use flats::flats;
use growth::Growth;
use ways::Ways;

/// The most flats of one shape in which a search grows a set.
const MOST_FLATS: usize = 8;

/// Nodes such that a job on them uses none of the links that others use: on one switch if possible, else in a line, a plane
/// and so on with as few free slots as suffice. If there are none, or the search reached its bound: the most slots that any
/// such nodes can have.
pub(crate) fn nodes(
    hyperx: &HyperX,
    used: &LinkLoad,
    free: &FreeSlots<'_>,
    wanted: u32,
) -> Result<Vec<NodeIndex>, MostSlots> {
    Search::new(hyperx, free, Ways::new(hyperx, used), wanted).nodes()
}

struct Search<'a> {
    hyperx: &'a HyperX,
    free: &'a FreeSlots<'a>,
    ways: Ways<'a>,
    wanted: u32,
    /// The free slots of each switch.
    slots: Cow<'a, [u32]>,
    /// The most free slots on any switch.
    most: u32,
    /// The switches with free slots: a word for each row.
    able: Vec<u64>,
}

impl<'a> Search<'a> {
    fn new(hyperx: &'a HyperX, free: &'a FreeSlots<'a>, ways: Ways<'a>, wanted: u32) -> Self {
        let counts = free.counts_of(1);
        let slots = if hyperx.is_in_order() {
            Cow::Borrowed(counts)
        } else {
            let mut slots = vec![0; hyperx.switches() as usize];
            for (leaf, &count) in (0..).zip(counts) {
                slots[hyperx.switch_of_leaf(leaf) as usize] = count;
            }
            Cow::Owned(slots)
        };
        let most = free.largest(1);
        let able = switches_with(hyperx, free, &slots);
        Search { hyperx, free, ways, wanted, slots, most, able }
    }

    fn nodes(&self) -> Result<Vec<NodeIndex>, MostSlots> {
        if self.most >= self.wanted {
            let switch = self.lone_switch().ok_or(MostSlots::UNKNOWN)?;
            return Ok(self.taken(&[switch]));
        }
        let dimensions = self.hyperx.sizes().len();
        for shape in flats::shapes(dimensions) {
            if flats::capacity(self, shape) < self.wanted {
                continue;
            }
            for flat in flats(self, shape, MOST_FLATS) {
                match Growth::new(self, flat).best() {
                    Ok(switches) => return Ok(self.taken(&switches)),
                    Err(Some(bound)) if shape + 1 == 1 << dimensions => {
                        return Err(MostSlots::of(bound));
                    }
                    Err(_) => {}
                }
            }
        }
        any_set::switches(self).map(|switches| self.taken(&switches))
    }

    /// Of the switches with the fewest free slots that suffice, the one with the fewest free switches in its lines: such a
    /// job uses no link, so it should not take a place where a larger job could be.
    fn lone_switch(&self) -> Option<u32> {
        let sizes = self.hyperx.sizes();
        let mut in_line: Vec<Vec<u32>> = Vec::new();
        let line = |switch: u32, dimension: usize| {
            switch - self.hyperx.place(switch, dimension) * self.hyperx.strides()[dimension]
        };
        for dimension in 0..sizes.len() {
            let mut counts = vec![0; self.slots.len()];
            for (switch, _) in (0..).zip(&*self.slots).filter(|&(_, &slots)| slots > 0) {
                counts[line(switch, dimension) as usize] += 1;
            }
            in_line.push(counts);
        }
        let neighbours = |switch: u32| -> u32 {
            (0..).zip(&in_line).map(|(it, counts)| counts[line(switch, it) as usize]).sum()
        };
        let switches = (0..).zip(&*self.slots).filter(|&(_, &slots)| slots >= self.wanted);
        let best = switches.min_by_key(|&(switch, &slots)| (slots, neighbours(switch), switch));
        best.map(|(switch, _)| switch)
    }

    /// The slots of these switches, in this order, up to the number that the job wants; ascending.
    fn taken(&self, switches: &[u32]) -> Vec<NodeIndex> {
        let mut nodes = Vec::with_capacity(self.wanted as usize);
        for &switch in switches {
            let left = self.wanted - nodes.len() as u32;
            if left == 0 {
                break;
            }
            if let Some(leaf) = self.hyperx.leaf_of_switch(switch) {
                self.free.take(1, leaf, left, &mut nodes);
            }
        }
        nodes.sort_unstable();
        nodes
    }

    /// The free slots of the switches of a set, which has a word for each row.
    fn slots_of(&self, set: &[u64]) -> u32 {
        let size = self.hyperx.row_size() as usize;
        if self.most == 1 {
            return set.iter().map(|row| row.count_ones()).sum();
        }
        set.iter()
            .zip(self.slots.chunks(size))
            .flat_map(|(&row, slots)| bits(row).map(|place| slots[place as usize]))
            .sum()
    }

    /// The free slots of switches of a row.
    fn slots_in_row(&self, row: usize, places: u64) -> u32 {
        if self.most == 1 {
            return places.count_ones();
        }
        let slots = &self.slots[row * self.hyperx.row_size() as usize..];
        bits(places).map(|place| slots[place as usize]).sum()
    }
}

/// The switches with free slots: a word for each row.
fn switches_with(hyperx: &HyperX, free: &FreeSlots<'_>, slots: &[u32]) -> Vec<u64> {
    let size = hyperx.row_size();
    if hyperx.is_in_order() && free.fabric().nodes() == hyperx.switches() {
        let places = u64::MAX >> (u64::BITS - size);
        let row = |row: u32| free.bits_from(row * size).map(|bits| bits & places);
        if let Some(rows) = (0..hyperx.rows()).map(row).collect() {
            return rows;
        }
    }
    let add = |word: u64, &count: &u32| word << 1 | u64::from(count > 0);
    slots.chunks(size as usize).map(|slots| slots.iter().rev().fold(0, add)).collect()
}

/// The places in a word, ascending.
fn bits(word: u64) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(word), |&left| Some(left & left.wrapping_sub(1)))
        .take_while(|&left| left != 0)
        .map(u64::trailing_zeros)
}
