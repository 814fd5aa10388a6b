//! Chooses which cables between its groups a job owns.

use topolane_fabric::{Lane, LinkSet, SwitchSet};

use super::group_room::Part;
use super::group_sets::GroupSets;

/// The most times that lanes are chosen for one set of groups: other lanes may leave other routers, and so other numbers of
/// nodes in each group.
const MOST_ROUNDS: usize = 4;

/// One group of a job while its lanes are chosen.
struct Side {
    group: u32,
    /// The routers that the job may still have together.
    routers: SwitchSet,
    /// The ends of its lanes.
    gates: SwitchSet,
}

/// Two groups of a job, by their places in its set.
struct Pair {
    places: (usize, usize),
    /// The least bandwidth of the lanes that the job owns between them. It owns at least one lane.
    needed: f64,
}

impl GroupSets<'_> {
    /// What each room of a set has for a job that owns lanes between each two of them, and these lanes. Of the bandwidth
    /// between two groups it owns this share of what its nodes there have when all nodes send to the other group. `None`
    /// if too few slots or lanes are left.
    pub(super) fn parts_with_lanes(
        &self,
        chosen: &[usize],
        share: f64,
    ) -> Option<(Vec<Part>, LinkSet)> {
        let places = 0..chosen.len();
        let pairs =
            places.clone().flat_map(|at| (at + 1..places.end).map(move |other| (at, other)));
        let mut pairs: Vec<Pair> = pairs.map(|places| Pair { places, needed: 0.0 }).collect();
        for _ in 0..MOST_ROUNDS {
            let (parts, lanes) = self.with_bandwidth(chosen, &pairs)?;
            let slots = self.slots_of(&parts)?;
            let mut is_enough = true;
            for Pair { places: (at, other), needed } in &mut pairs {
                let flows = slots[*at].min(slots[*other]);
                let least = share * self.bandwidth_of(chosen[*at], chosen[*other], flows);
                if least > *needed {
                    (*needed, is_enough) = (least, false);
                }
            }
            if is_enough {
                return Some((parts, lanes));
            }
        }
        None
    }

    /// The parts of a set with lanes of at least this bandwidth, in the order of the set.
    fn with_bandwidth(&self, chosen: &[usize], pairs: &[Pair]) -> Option<(Vec<Part>, LinkSet)> {
        let side = |&room: &usize| {
            let routers = self.alone[room].routers;
            Side { group: self.rooms[room].group(), routers, gates: 0 }
        };
        let mut sides: Vec<Side> = chosen.iter().map(side).collect();
        let mut words = Vec::new();
        for pair in pairs {
            self.choose_lanes(chosen, &mut sides, pair, &mut words)?;
        }
        let part = |(&room, side): (&usize, &Side)| {
            let alone = self.alone[room];
            // No search is needed where the lanes cost no router.
            if side.routers == alone.routers {
                Part { gates: side.gates, ..alone }
            } else {
                self.rooms[room].part(room, side.gates)
            }
        };
        Some((chosen.iter().zip(&sides).map(part).collect(), LinkSet::of_any(words)))
    }

    /// Takes free lanes between two rooms until they have the bandwidth, each time the one that costs the job the fewest
    /// slots, and then the one with the fewest ends that are left to others.
    fn choose_lanes(
        &self,
        chosen: &[usize],
        sides: &mut [Side],
        &Pair { places: (at, other), needed }: &Pair,
        words: &mut Vec<(u32, u64)>,
    ) -> Option<()> {
        let (low, high) =
            if sides[at].group < sides[other].group { (at, other) } else { (other, at) };
        let (dragonfly, used) = (self.search.dragonfly, self.search.links.between);
        let (group, peer) = (sides[low].group, sides[high].group);
        let lanes = dragonfly.links_between(group, peer);
        let mut left: Vec<_> =
            lanes.filter(|((word, bit), _)| used.word(*word) & bit == 0).collect();
        let mut owned = 0.0;
        // Sums of equal parts may differ in the last place.
        while owned == 0.0 || owned < needed * (1.0 - 1e-9) {
            let cost = |side: &Side, room: usize, end: u8| {
                let gate: SwitchSet = 1 << end;
                let lost = self.rooms[room].in_conflict(end.into()) & side.routers;
                let is_open = (side.gates | side.routers) & gate == 0;
                (self.rooms[room].slots_on(lost), u32::from(is_open))
            };
            let price = |&(index, &(link, of)): &(usize, &((u32, u64), &Lane))| {
                let one = cost(&sides[low], chosen[low], of.ends.0);
                let two = cost(&sides[high], chosen[high], of.ends.1);
                (one.0 + two.0, one.1 + two.1, link, index)
            };
            let (index, _) = left.iter().enumerate().min_by_key(price)?;
            let (link, of) = left.swap_remove(index);
            owned += of.bandwidth;
            words.push(link);
            for (side, end) in [(low, of.ends.0), (high, of.ends.1)] {
                let lost = self.rooms[chosen[side]].in_conflict(end.into());
                sides[side].routers &= !lost;
                sides[side].gates |= 1 << end;
            }
        }
        Some(())
    }

    /// How many slots the job takes of each part when those with the fewest are filled first; `None` if there are too few.
    fn slots_of(&self, parts: &[Part]) -> Option<Vec<u32>> {
        let mut order: Vec<usize> = (0..parts.len()).collect();
        order.sort_by_key(|&at| parts[at].most);
        let (mut left, mut slots) = (self.search.wanted, vec![0; parts.len()]);
        for at in order {
            slots[at] = parts[at].most.min(left);
            left -= slots[at];
        }
        (left == 0).then_some(slots)
    }

    /// The bandwidth between two rooms that this number of flows has when each node of the smaller group sends to the other.
    fn bandwidth_of(&self, room: usize, other: usize, flows: u32) -> f64 {
        let (fabric, rooms) = (self.search.free.fabric(), [&self.rooms[room], &self.rooms[other]]);
        let lanes = self.search.dragonfly.lanes(rooms[0].group(), rooms[1].group());
        let all: f64 = lanes.iter().map(|lane| lane.bandwidth).sum();
        let nodes = rooms.map(|room| fabric.node_range(2, room.of_hierarchy()).len() as u32);
        let nodes = nodes[0].min(nodes[1]).max(1);
        f64::from(flows.min(nodes)) * (all / f64::from(nodes)).min(fabric.bandwidth(0))
    }
}
