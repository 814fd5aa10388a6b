//! The slots of a job on a fabric: which are equivalent, and the distances between them.

use std::ops::Range;

use topolane_fabric::{Fabric, InputError, NodeIndex};

use super::Links;
use super::problem::Distances;

/// The cost per byte between nodes of one leaf if links of nodes do not count. It is so small that it only decides
/// between mappings of equal hop-bytes.
const SAME_LEAF: f64 = 1.0 / (1 << 20) as f64;

/// Slots in fabric order, grouped into places whose slots are equivalent for the network: leaves if every slot has a
/// node of its own, otherwise nodes.
pub(super) struct PlacedSlots<'a> {
    fabric: &'a Fabric,
    links: Links,
    /// 0 if places are nodes, 1 if they are leaves.
    level: usize,
    /// For each place, one of its nodes.
    node: Vec<NodeIndex>,
    /// The number of seats at each place.
    pub(super) seats: Vec<u32>,
    /// The slot of each seat.
    slot: Vec<u32>,
}

impl<'a> PlacedSlots<'a> {
    /// Returns the slots of a job; slot i is on `nodes[i]`.
    pub(super) fn new(
        fabric: &'a Fabric,
        nodes: &[NodeIndex],
        links: Links,
    ) -> Result<PlacedSlots<'a>, InputError> {
        let mut slot: Vec<u32> = (0..nodes.len() as u32).collect();
        slot.sort_by_key(|&slot| nodes[slot as usize]);
        let node_of = |slot: &u32| nodes[*slot as usize];
        let level = usize::from(slot.windows(2).all(|pair| node_of(&pair[0]) != node_of(&pair[1])));
        let same =
            |a: &u32, b: &u32| fabric.group(level, node_of(a)) == fabric.group(level, node_of(b));
        let places: Vec<&[u32]> = slot.chunk_by(same).collect();
        let node: Vec<NodeIndex> = places.iter().map(|place| node_of(&place[0])).collect();
        let seats = places.iter().map(|place| place.len() as u32).collect();
        let here = node.first().copied().unwrap_or_default();
        if let Some(&there) = node.iter().find(|&&there| fabric.hops(here, there).is_none()) {
            return Err(InputError::whole(format!(
                "no link joins {} to {}: a job cannot be mapped over both",
                fabric.node_name(here),
                fabric.node_name(there)
            )));
        }
        Ok(PlacedSlots { fabric, links, level, node, seats, slot })
    }

    pub(super) fn places(&self) -> usize {
        self.node.len()
    }

    /// The distances between the places. If places are leaves, without the links of nodes, because all traffic uses
    /// these.
    pub(super) fn distances(&self) -> Distances<'a> {
        let (fabric, node) = (self.fabric, self.node.clone());
        let node_links = match self.links {
            _ if self.level == 1 => 0.0,
            Links::BetweenSwitches => SAME_LEAF,
            Links::All => f64::from(Links::NODE_LINKS),
        };
        Distances::new(self.places(), move |a, b| {
            if a == b {
                return 0.0;
            }
            // It was checked before that links connect all sites to the first.
            let hops = fabric.hops(node[a as usize], node[b as usize]).unwrap_or_default();
            f64::from(hops) + node_links
        })
    }

    /// The seat of every rank if rank i is on slot i.
    pub(super) fn rank_order(&self) -> Vec<u32> {
        let mut seat_of_slot = vec![0; self.slot.len()];
        for (seat, &slot) in self.slot.iter().enumerate() {
            seat_of_slot[slot as usize] = seat as u32;
        }
        seat_of_slot
    }

    /// Converts the seat of every rank to its slot.
    pub(super) fn slots(&self, seats: &[u32]) -> Vec<u32> {
        seats.iter().map(|&seat| self.slot[seat as usize]).collect()
    }

    /// The highest level at which `places` are in several groups, with these groups; `None` for a single place.
    pub(super) fn groups(&self, places: Range<u32>) -> Option<(usize, Vec<Range<u32>>)> {
        (self.level..=self.fabric.depth()).rev().find_map(|level| {
            let groups = self.groups_of(level, places.clone());
            (groups.len() > 1).then_some((level, groups))
        })
    }

    /// Splits places by their groups of a level, which must not be below the level of places.
    pub(super) fn groups_of(&self, level: usize, places: Range<u32>) -> Vec<Range<u32>> {
        let mut groups: Vec<Range<u32>> = Vec::new();
        for place in places {
            match groups.last_mut() {
                Some(last) if self.group(level, last.start) == self.group(level, place) => {
                    last.end = place + 1;
                }
                _ => groups.push(place..place + 1),
            }
        }
        groups
    }

    /// The levels whose groups may be swapped as a whole.
    pub(super) fn levels(&self) -> Range<usize> {
        self.level..self.fabric.depth() + 1
    }

    /// The shape of a group. Two groups may be swapped if their shapes are equal: the seats of every place, the
    /// positions where inner groups begin, and the links climbed to leave the group.
    pub(super) fn shape(&self, level: usize, places: Range<u32>) -> Vec<u32> {
        let mut shape = Vec::new();
        for place in places.clone() {
            let node = self.node[place as usize];
            let new = |below: &usize| {
                place == places.start || self.group(*below, place - 1) != self.group(*below, place)
            };
            let begins = (self.level..level).filter(new).count();
            let climb = if level == 0 { 0 } else { self.fabric.climb(node, level) };
            shape.extend([self.seats[place as usize], begins as u32, climb]);
        }
        shape
    }

    fn group(&self, level: usize, place: u32) -> u32 {
        self.fabric.group(level, self.node[place as usize])
    }
}
