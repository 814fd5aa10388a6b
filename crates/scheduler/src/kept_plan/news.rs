//! What came and went.

use std::ops::Range;

use super::held::{Held, Parts};
use crate::timeline::Openings;

/// For how long nodes are free, at least, seconds: for rough answers.
const SPANS: [f64; 4] = [0.0, 3600.0, 4.0 * 3600.0, 12.0 * 3600.0];

/// The most nodes of a run of leaves that are free together for each of [`SPANS`] at a time that meets some news, on leaves that no
/// job crosses; as far as it was asked.
type Rooms = Vec<(Range<u32>, [Option<u32>; SPANS.len()])>;

/// Something came or went.
#[derive(Debug)]
pub(super) struct Item {
    pub leaves: Range<u32>,
    /// Whether it is on a leaf, not of a group above.
    pub is_of_leaf: bool,
    /// When.
    pub from: f64,
    pub until: f64,
    pub has_gone: bool,
    /// What is free around it without it.
    pub openings: Openings,
    rooms: Rooms,
}

/// The first and the last moment of what is free around something, and for how long any of it is.
#[derive(Debug)]
struct Reach {
    first: f64,
    last: f64,
    longest: f64,
}

/// All that came and went since the last pass over all jobs began, numbered.
#[derive(Debug, Default)]
pub(super) struct News {
    items: Vec<Item>,
    /// All that most jobs need to know of each.
    reaches: Vec<Reach>,
    /// Items before those, and all there were when the last pass over all jobs began.
    forgotten: u64,
    before_last: u64,
}

impl News {
    /// Items so far.
    pub fn count(&self) -> u64 {
        self.forgotten + self.items.len() as u64
    }

    fn index_of(&self, number: u64) -> usize {
        number.saturating_sub(self.forgotten) as usize
    }

    /// Notes parts that have gone, or are about to come.
    pub fn note(
        &mut self,
        held: &Held,
        parts: &Parts,
        (from, until): (f64, f64),
        has_gone: bool,
        now: f64,
    ) {
        let from = from.max(now);
        if from >= until {
            return;
        }
        let when = (from, until);
        let item = |leaves, is_of_leaf, openings| Item {
            leaves,
            is_of_leaf,
            from,
            until,
            has_gone,
            openings,
            rooms: Rooms::new(),
        };
        for &(leaf, bits) in &parts.leaves {
            self.add(item(leaf..leaf + 1, true, held.openings(leaf, bits, when, now)));
        }
        for &group in &parts.groups {
            let leaves = held.leaves_of(group.0, group.1);
            self.add(item(leaves, false, held.openings_of_group(group, when, now)));
        }
    }

    fn add(&mut self, item: Item) {
        let Openings { first, last, longest, .. } = item.openings;
        self.reaches.push(Reach { first, last, longest });
        self.items.push(item);
    }

    /// Forgets what every reservation takes account of.
    pub fn forget(&mut self) {
        let old = self.index_of(self.before_last);
        self.reaches.drain(..old);
        self.items.drain(..old);
        self.forgotten = self.before_last;
        self.before_last = self.count();
    }

    /// The index of the first that a job has not seen.
    pub fn first(&self, seen: Option<u64>) -> usize {
        self.index_of(seen.unwrap_or_default())
    }

    /// The index of the next that may matter to a job with a reservation from `start`: something is free before that for so long, or up
    /// to that.
    pub fn next_about(&self, from: usize, start: f64, lasts: f64) -> Option<usize> {
        let matters =
            |reach: &Reach| reach.first <= start && (reach.longest >= lasts || reach.last >= start);
        Some(from + self.reaches.get(from..)?.iter().position(matters)?)
    }

    pub fn item(&self, index: usize) -> &Item {
        &self.items[index]
    }

    /// The most nodes that a run of leaves has for a while at a time that meets an item, on leaves that no job crosses: at least as
    /// many as for `lasts`.
    pub fn most_room(&mut self, index: usize, held: &Held, run: &Range<u32>, lasts: f64) -> u32 {
        let span = SPANS.iter().rposition(|&span| span <= lasts).unwrap_or(0);
        let item = &mut self.items[index];
        let known = item.rooms.iter().position(|(known, _)| known == run);
        let known = known.unwrap_or_else(|| {
            item.rooms.push((run.clone(), [None; SPANS.len()]));
            item.rooms.len() - 1
        });
        let from = item.openings.first.max(item.from - SPANS[span] - 1.0);
        let most = &mut item.rooms[known].1[span];
        *most.get_or_insert_with(|| held.most_room(run, SPANS[span], (from, item.until)))
    }
}
