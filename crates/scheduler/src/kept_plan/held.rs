//! Tracks what is held on the machine over time.

use std::ops::Range;
use std::sync::Arc;

use topolane_fabric::{Fabric, GroupIndex};
use topolane_placement::{Occupancy, Placement};

use super::runs::Runs;
use crate::steps::Steps;
use crate::timeline::{CROSSED, Openings, Timeline};

/// Seconds ahead that a search for free nodes examines first. After that it examines all the rest.
const FIRST_LOOK: f64 = 3600.0;
const LAST_LOOK: f64 = 1e8;

/// What one placement holds on leaves and groups above them.
#[derive(Debug, Default)]
pub(super) struct PlacementParts {
    pub leaves: Vec<(u32, u64)>,
    pub groups: Vec<(usize, GroupIndex)>,
}

/// A leaf. If crossing matters, jobs that cross leaves cannot use it while another job crosses it.
struct LeafRoom {
    leaf: u32,
    nodes: u64,
    crossing_matters: bool,
}

impl LeafRoom {
    fn of(leaf: u32, nodes: u64, crossing_matters: bool) -> Self {
        LeafRoom { leaf, nodes, crossing_matters }
    }

    fn on(&self, held: u64) -> i64 {
        let is_crossed = held & CROSSED != 0 && self.crossing_matters;
        if is_crossed { 0 } else { (self.nodes & !held).count_ones().into() }
    }

    /// Updates the counts after the held bits of the leaf change from `before` to `after`.
    fn count(&self, counts: &mut Runs<Option<Steps>>, when: (f64, f64), [before, after]: [u64; 2]) {
        let change = self.on(after) - self.on(before);
        if change != 0 {
            counts.each_with(self.leaf, |steps| {
                if let Some(steps) = steps {
                    steps.add(when, change);
                }
            });
        }
    }
}

/// The timelines of all leaves and of the groups above.
pub(super) struct HeldTimelines {
    pub fabric: Arc<Fabric>,
    /// For every leaf, its nodes in service.
    nodes: Vec<u64>,
    leaves: Vec<Timeline>,
    /// By level: for each group, when a job crosses it. Empty for leaves and below.
    groups: Vec<Vec<Timeline>>,
    crossing_matters: bool,
    /// The most nodes of any leaf.
    largest_leaf: u32,
    /// For runs of several leaves asked about so far: the free nodes over time on leaves that no job crosses.
    counts: Runs<Option<Steps>>,
}

impl HeldTimelines {
    /// Returns timelines on which nothing is held.
    pub fn new(occupancy: &Occupancy) -> Self {
        let fabric = Arc::clone(occupancy.fabric());
        let groups = |level: usize| if level < 2 { 0 } else { fabric.groups(level) as usize };
        let nodes = |leaf| {
            let range = fabric.node_range(1, leaf);
            let nodes = occupancy.in_service().iter_in(range.clone());
            nodes.fold(0, |bits, node| bits | 1 << (node - range.start))
        };
        HeldTimelines {
            nodes: (0..fabric.groups(1)).map(nodes).collect(),
            leaves: vec![Timeline::new(); fabric.groups(1) as usize],
            groups: (0..=fabric.depth())
                .map(|level| vec![Timeline::new(); groups(level)])
                .collect(),
            crossing_matters: fabric.domains() == 0,
            largest_leaf: (0..fabric.groups(1))
                .map(|leaf| fabric.node_range(1, leaf).len() as u32)
                .max()
                .unwrap_or(0),
            counts: Runs::new(fabric.groups(1)),
            fabric,
        }
    }

    pub fn parts(&self, placement: &Placement) -> PlacementParts {
        let mut parts = PlacementParts::default();
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

    /// Holds parts for a time span. Returns false if some of them were already held during it.
    pub fn hold(&mut self, parts: &PlacementParts, when: (f64, f64)) -> bool {
        let mut were_free = true;
        for &(leaf, bits) in &parts.leaves {
            let timeline = &mut self.leaves[leaf as usize];
            let room = LeafRoom::of(leaf, self.nodes[leaf as usize], self.crossing_matters);
            were_free &=
                timeline.hold(bits, when, |when, held| room.count(&mut self.counts, when, held));
        }
        for &(level, group) in &parts.groups {
            were_free &= self.groups[level][group as usize].hold(1, when, |_, _| ());
        }
        were_free
    }

    pub fn give_back(&mut self, parts: &PlacementParts, when: (f64, f64)) {
        for &(leaf, bits) in &parts.leaves {
            let timeline = &mut self.leaves[leaf as usize];
            let room = LeafRoom::of(leaf, self.nodes[leaf as usize], self.crossing_matters);
            timeline.give_back(bits, when, |when, held| room.count(&mut self.counts, when, held));
        }
        for &(level, group) in &parts.groups {
            self.groups[level][group as usize].give_back(1, when, |_, _| ());
        }
    }

    pub fn forget_before(&mut self, now: f64) {
        let timelines = self.leaves.iter_mut().chain(self.groups.iter_mut().flatten());
        timelines.for_each(|timeline| timeline.forget_before(now));
        self.counts.each(|steps| steps.iter_mut().for_each(|steps| steps.forget_before(now)));
    }

    /// Whether a leaf that one job crosses is useless to other jobs that cross leaves.
    pub fn crossing_matters(&self) -> bool {
        self.crossing_matters
    }

    /// The leaves of a group.
    pub fn leaves_of(&self, level: usize, group: GroupIndex) -> Range<u32> {
        let range = self.fabric.node_range(level, group);
        self.fabric.group(1, range.start)..self.fabric.group(1, range.end - 1) + 1
    }

    /// The number of times that something was held on a leaf.
    pub fn holds(&self, leaf: u32) -> u32 {
        self.leaves[leaf as usize].holds()
    }

    /// How long these bits of a leaf are free around a time span.
    pub fn openings(&self, leaf: u32, bits: u64, when: (f64, f64), now: f64) -> Openings {
        self.leaves[leaf as usize].openings(bits, self.nodes[leaf as usize], when, now)
    }

    /// How long no job crosses a group around a time span in which no job does.
    pub fn openings_of_group(
        &self,
        (level, group): (usize, GroupIndex),
        when: (f64, f64),
        now: f64,
    ) -> Openings {
        self.groups[level][group as usize].openings(1, 1, when, now)
    }

    /// For every leaf, the bits held at any time of a span.
    pub fn on_leaves(&self, (start, end): (f64, f64)) -> impl Iterator<Item = (u32, u64)> + '_ {
        let held = move |(timeline, &nodes): (&Timeline, &u64)| {
            timeline.held_of(nodes | CROSSED, (start, end))
        };
        (0..).zip(self.leaves.iter().zip(&self.nodes).map(held))
    }

    /// The groups above leaves, and whether a job crosses them at any time of a span.
    pub fn groups(
        &self,
        (start, end): (f64, f64),
    ) -> impl Iterator<Item = (usize, GroupIndex, bool)> + '_ {
        self.groups.iter().enumerate().flat_map(move |(level, timelines)| {
            let held = timelines.iter().map(move |timeline| timeline.held_of(1, (start, end)) != 0);
            (0..).zip(held).map(move |(group, is_crossed)| (level, group, is_crossed))
        })
    }

    /// The number of nodes of a leaf that are in service and not in the bits `held`.
    pub fn free_nodes(&self, leaf: u32, held: u64) -> u32 {
        (self.nodes[leaf as usize] & !held).count_ones()
    }

    /// The next time at which anything changes on a run of leaves.
    pub fn step_after(&self, run: &Range<u32>, time: f64) -> f64 {
        let leaves = &self.leaves[run.start as usize..run.end as usize];
        leaves.iter().map(|timeline| timeline.step_after(time)).fold(f64::INFINITY, f64::min)
    }

    /// Whether a run of leaves has enough nodes just before a time, if no two jobs may cross a leaf.
    pub fn has_room_before(&self, run: &Range<u32>, nodes: u32, time: f64) -> bool {
        let held = |leaf: u32| self.leaves[leaf as usize].held_before(time);
        let rooms = run.clone().map(|leaf| self.room_on(leaf, held(leaf), nodes));
        rooms.sum::<u32>() >= nodes
    }

    /// The earliest time in `between` from which a run of leaves has enough nodes for long enough, if no two jobs may
    /// cross a leaf.
    pub fn room_from(
        &mut self,
        run: &Range<u32>,
        (nodes, lasts): (u32, f64),
        between: (f64, f64),
    ) -> Option<f64> {
        if between.0 >= between.1 {
            return None;
        }
        if run.len() == 1 {
            let leaf = run.start as usize;
            return self.leaves[leaf].earliest(self.nodes[leaf], nodes, lasts, between);
        }
        let between = (self.counted_from(run, (nodes, lasts), between)?, between.1);
        let room = |leaf, held| self.room_on(leaf, held, nodes);
        // Free nodes of leaves, with the time from which they are free for long enough.
        let mut rooms: Vec<(f64, u32, u32)> = Vec::new();
        let mut at_most = 0;
        for leaf in run.clone() {
            let timeline = &self.leaves[leaf as usize];
            let mut most = 0;
            for (start, room) in timeline.rooms(move |held| room(leaf, held), lasts, between) {
                if room > 0 {
                    most = most.max(room);
                    rooms.push((start, leaf, room));
                }
            }
            at_most += most;
        }
        if at_most < nodes {
            return None;
        }
        rooms.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let exactly = |start: f64| {
            let held = |leaf: u32| self.leaves[leaf as usize].held(start, start + lasts);
            run.clone().map(|leaf| room(leaf, held(leaf))).sum::<u32>()
        };
        let mut latest = vec![0; run.len()];
        let mut total = 0;
        for together in rooms.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
            for &(_, leaf, room) in together {
                let known = &mut latest[(leaf - run.start) as usize];
                total = total - *known + room;
                *known = room;
            }
            let start = together[0].0;
            if total >= nodes && exactly(start) >= nodes {
                return Some(start);
            }
        }
        None
    }

    /// A lower bound of [`HeldTimelines::room_from`], from the number of free nodes in the run.
    pub fn counted_from(
        &mut self,
        run: &Range<u32>,
        (nodes, lasts): (u32, f64),
        between: (f64, f64),
    ) -> Option<f64> {
        if nodes <= self.largest_leaf {
            return Some(between.0);
        }
        self.count_of(run).first(nodes.into(), lasts, between)
    }

    /// The free nodes over time of a run, on leaves that no job crosses.
    fn count_of(&mut self, run: &Range<u32>) -> &Steps {
        let (leaves, nodes, crossing_matters) = (&self.leaves, &self.nodes, self.crossing_matters);
        self.counts.of(run).get_or_insert_with(|| {
            let mut steps = Steps::new(0);
            for leaf in run.clone() {
                let room = LeafRoom::of(leaf, nodes[leaf as usize], crossing_matters);
                for (when, held) in leaves[leaf as usize].spans() {
                    steps.add(when, room.on(held));
                }
            }
            steps
        })
    }

    /// The earliest time in the span from which one of these runs of leaves has enough nodes. It searches in ever
    /// longer steps.
    pub fn room_in(
        &mut self,
        runs: &[Range<u32>],
        shape: (u32, f64),
        (from, until): (f64, f64),
    ) -> Option<f64> {
        let (mut from, mut length) = (from, shape.1.max(FIRST_LOOK));
        while from < until {
            let mut best = until.min(from + length);
            let end = best;
            for run in runs {
                best = self.room_from(run, shape, (from, best)).unwrap_or(best);
            }
            if best < end {
                return Some(best);
            }
            (from, length) = (end, if length < LAST_LOOK { 2.0 * length } else { until });
        }
        None
    }

    /// The most nodes that a run of leaves has at any time from `start` to `end`, on leaves that no job crosses.
    pub fn most_room(&mut self, run: &Range<u32>, (start, end): (f64, f64)) -> u32 {
        self.count_of(run).most(start, end) as u32
    }

    /// The number of nodes of a leaf that a job of `nodes` nodes may use while the nodes in the bits `held` are taken.
    fn room_on(&self, leaf: u32, held: u64, nodes: u32) -> u32 {
        let free = self.free_nodes(leaf, held);
        let is_crossed = held & CROSSED != 0 && self.crossing_matters;
        if is_crossed && free < nodes { 0 } else { free }
    }
}
