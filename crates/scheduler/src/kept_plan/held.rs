//! What is held of the machine over time.

use std::ops::Range;
use std::sync::Arc;

use topolane_fabric::{Fabric, GroupIndex};
use topolane_placement::{Occupancy, Placement};

use crate::timeline::{CROSSED, Openings, Timeline};

/// What is held on the leaves and of the groups above by one placement.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub leaves: Vec<(u32, u64)>,
    pub groups: Vec<(usize, GroupIndex)>,
}

/// Timelines of all leaves and of the groups above.
pub(super) struct Held {
    pub fabric: Arc<Fabric>,
    /// Nodes in service of every leaf.
    nodes: Vec<u64>,
    leaves: Vec<Timeline>,
    /// When a job crosses each group, by level; empty for leaves and below.
    groups: Vec<Vec<Timeline>>,
    crossing_matters: bool,
}

impl Held {
    /// Nothing is held.
    pub fn new(occupancy: &Occupancy) -> Self {
        let fabric = Arc::clone(occupancy.fabric());
        let groups = |level: usize| if level < 2 { 0 } else { fabric.groups(level) as usize };
        let nodes = |leaf| {
            let range = fabric.node_range(1, leaf);
            let nodes = occupancy.in_service().iter_in(range.clone());
            nodes.fold(0, |bits, node| bits | 1 << (node - range.start))
        };
        Held {
            nodes: (0..fabric.groups(1)).map(nodes).collect(),
            leaves: vec![Timeline::new(); fabric.groups(1) as usize],
            groups: (0..=fabric.depth())
                .map(|level| vec![Timeline::new(); groups(level)])
                .collect(),
            crossing_matters: fabric.domains() == 0,
            fabric,
        }
    }

    pub fn parts(&self, placement: &Placement) -> Parts {
        let mut parts = Parts::default();
        for node in placement.held() {
            let leaf = self.fabric.group(1, node);
            let first = self.fabric.node_range(1, leaf).start;
            let bit = 1 << (node - first) & self.nodes[leaf as usize];
            match parts.leaves.last_mut() {
                Some((last, bits)) if *last == leaf => *bits |= bit,
                _ => parts.leaves.push((leaf, bit)),
            }
        }
        for &(level, group) in placement.crossed() {
            if level > 1 {
                parts.groups.push((level.into(), group));
            } else if let Some((_, bits)) = parts.leaves.iter_mut().find(|part| part.0 == group) {
                *bits |= CROSSED;
            } else {
                parts.leaves.push((group, CROSSED));
            }
        }
        parts
    }

    /// Holds parts for a time; false if some were held at some of it.
    pub fn hold(&mut self, parts: &Parts, when: (f64, f64)) -> bool {
        let mut were_free = true;
        for &(leaf, bits) in &parts.leaves {
            were_free &= self.leaves[leaf as usize].hold(bits, when);
        }
        for &(level, group) in &parts.groups {
            were_free &= self.groups[level][group as usize].hold(1, when);
        }
        were_free
    }

    pub fn give_back(&mut self, parts: &Parts, when: (f64, f64)) {
        for &(leaf, bits) in &parts.leaves {
            self.leaves[leaf as usize].give_back(bits, when);
        }
        for &(level, group) in &parts.groups {
            self.groups[level][group as usize].give_back(1, when);
        }
    }

    pub fn forget_before(&mut self, now: f64) {
        let timelines = self.leaves.iter_mut().chain(self.groups.iter_mut().flatten());
        timelines.for_each(|timeline| timeline.forget_before(now));
    }

    /// Whether a leaf that a job crosses is of no use to another that crosses leaves.
    pub fn crossing_matters(&self) -> bool {
        self.crossing_matters
    }

    /// The leaves of a group.
    pub fn leaves_of(&self, level: usize, group: GroupIndex) -> Range<u32> {
        let range = self.fabric.node_range(level, group);
        self.fabric.group(1, range.start)..self.fabric.group(1, range.end - 1) + 1
    }

    /// For how long bits of a leaf are free around a time at which they are.
    pub fn openings(&self, leaf: u32, bits: u64, when: (f64, f64), now: f64) -> Openings {
        self.leaves[leaf as usize].openings(bits, self.nodes[leaf as usize], when, now)
    }

    /// For how long no job crosses a group around a time at which none does.
    pub fn openings_of_group(
        &self,
        (level, group): (usize, GroupIndex),
        when: (f64, f64),
        now: f64,
    ) -> Openings {
        self.groups[level][group as usize].openings(1, 1, when, now)
    }

    /// What is held of every leaf at any time of a span.
    pub fn on_leaves(&self, (start, end): (f64, f64)) -> impl Iterator<Item = (u32, u64)> + '_ {
        (0..).zip(self.leaves.iter().map(move |timeline| timeline.held(start, end)))
    }

    /// What is held of one leaf.
    pub fn on_leaf(&self, leaf: u32, (start, end): (f64, f64)) -> u64 {
        self.leaves[leaf as usize].held(start, end)
    }

    /// The groups above leaves, and whether a job crosses them at any time of a span.
    pub fn groups(
        &self,
        (start, end): (f64, f64),
    ) -> impl Iterator<Item = (usize, GroupIndex, bool)> + '_ {
        self.groups.iter().enumerate().flat_map(move |(level, timelines)| {
            let held = timelines.iter().map(move |timeline| timeline.held(start, end) != 0);
            (0..).zip(held).map(move |(group, is_crossed)| (level, group, is_crossed))
        })
    }

    pub fn is_crossed(&self, level: usize, group: GroupIndex, (start, end): (f64, f64)) -> bool {
        self.groups[level][group as usize].held(start, end) != 0
    }

    /// Nodes of a leaf that are in service and not held.
    pub fn free_nodes(&self, leaf: u32, held: u64) -> u32 {
        (self.nodes[leaf as usize] & !held).count_ones()
    }

    /// The next time at which anything changes on a run of leaves.
    pub fn step_after(&self, run: &Range<u32>, time: f64) -> f64 {
        let leaves = &self.leaves[run.start as usize..run.end as usize];
        leaves.iter().map(|timeline| timeline.step_after(time)).fold(f64::INFINITY, f64::min)
    }

    /// Whether a run of leaves has nodes enough just before a time, if no two jobs may cross a leaf.
    pub fn has_room_before(&self, run: &Range<u32>, nodes: u32, time: f64) -> bool {
        let held = |leaf: u32| self.leaves[leaf as usize].held_before(time);
        let rooms = run.clone().map(|leaf| self.room_on(leaf, held(leaf), nodes));
        rooms.sum::<u32>() >= nodes
    }

    /// The earliest time between two from which on a run of leaves has nodes enough, if no two jobs may cross a leaf.
    pub fn room_from(
        &self,
        run: &Range<u32>,
        nodes: u32,
        lasts: f64,
        between: (f64, f64),
    ) -> Option<f64> {
        if between.0 >= between.1 {
            return None;
        }
        if run.len() == 1 {
            let leaf = run.start as usize;
            return self.leaves[leaf].earliest(self.nodes[leaf], nodes, lasts, between);
        }
        let room = |leaf, held| self.room_on(leaf, held, nodes);
        self.find_room(run, lasts, between, room, |start, total| {
            let exactly = || {
                let held = |leaf: u32| self.leaves[leaf as usize].held(start, start + lasts);
                run.clone().map(|leaf| room(leaf, held(leaf))).sum::<u32>()
            };
            total >= nodes && exactly() >= nodes
        })
    }

    /// The most nodes that a run of leaves has together from a time between two on, on leaves that no job crosses.
    pub fn most_room(&self, run: &Range<u32>, lasts: f64, between: (f64, f64)) -> u32 {
        let room = |leaf, held| self.room_on(leaf, held, u32::MAX);
        let mut most = 0;
        self.find_room(run, lasts, between, room, |_, total| {
            most = most.max(total);
            false
        });
        most
    }

    /// Nodes of a leaf for a job of so many, where these bits are held.
    fn room_on(&self, leaf: u32, held: u64, nodes: u32) -> u32 {
        let free = self.free_nodes(leaf, held);
        let is_crossed = held & CROSSED != 0 && self.crossing_matters;
        if is_crossed && free < nodes { 0 } else { free }
    }

    /// The first time at which a run of leaves may have more room than before and that does, of the time and of at most how much room
    /// there is from then on.
    fn find_room(
        &self,
        run: &Range<u32>,
        lasts: f64,
        between: (f64, f64),
        room: impl Fn(u32, u64) -> u32 + Copy,
        mut does: impl FnMut(f64, u32) -> bool,
    ) -> Option<f64> {
        let mut rooms: Vec<(f64, u32, u32)> = Vec::new();
        for leaf in run.clone() {
            let timeline = &self.leaves[leaf as usize];
            let found = timeline.rooms(move |held| room(leaf, held), lasts, between);
            rooms.extend(
                found.filter(|&(_, room)| room > 0).map(|(start, room)| (start, leaf, room)),
            );
        }
        rooms.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut most = vec![0; run.len()];
        let mut total = 0;
        for together in rooms.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
            for &(_, leaf, room) in together {
                let known = &mut most[(leaf - run.start) as usize];
                total = total - *known + room;
                *known = room;
            }
            if does(together[0].0, total) {
                return Some(together[0].0);
            }
        }
        None
    }
}
