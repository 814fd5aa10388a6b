//! What opens when something is given back, and for whom there may be room.

use std::ops::Range;

use super::ROUNDING;
use super::held::Held;
use crate::timeline::Openings;

/// Something was given back.
#[derive(Debug)]
pub(super) struct Opening {
    pub leaves: Range<u32>,
    /// What it is of a leaf; 0 if it is not of one.
    pub bits: u64,
    /// From when to when it was held.
    pub when: (f64, f64),
    /// What is free around it.
    pub openings: Openings,
}

impl Opening {
    /// Bits of a leaf.
    pub fn of_leaf(leaf: u32, bits: u64, when: (f64, f64), openings: Openings) -> Self {
        Opening { leaves: leaf..leaf + 1, bits, when, openings }
    }

    /// These leaves: no job crosses them any more.
    pub fn of_leaves(leaves: Range<u32>, when: (f64, f64), openings: Openings) -> Self {
        Opening { leaves, bits: 0, when, openings }
    }

    /// All at once, for jobs that cross leaves: the leaves between are opened too.
    pub fn joined(openings: &[Opening]) -> Option<Opening> {
        let first = openings.first()?;
        let mut all = Opening::of_leaves(first.leaves.clone(), first.when, Openings::default());
        all.openings.first = f64::INFINITY;
        for Opening { leaves, openings, .. } in openings {
            all.leaves = all.leaves.start.min(leaves.start)..all.leaves.end.max(leaves.end);
            all.openings.first = all.openings.first.min(openings.first);
            all.openings.longest = all.openings.longest.max(openings.longest);
            all.openings.uncrossed = all.openings.uncrossed.max(openings.uncrossed);
        }
        Some(all)
    }

    /// The earliest start of a job that would use some of it.
    pub fn from(&self, lasts: f64, now: f64) -> f64 {
        self.openings.first.max(self.when.0 - lasts - 1.0).max(now)
    }
}

/// For how long nodes are free, at least, seconds: for rough answers. Most walltimes are round numbers of hours.
const SPANS: [f64; 9] = {
    let hour = 3600.0;
    [
        0.0,
        hour,
        2.0 * hour,
        3.0 * hour,
        4.0 * hour,
        6.0 * hour,
        8.0 * hour,
        12.0 * hour,
        24.0 * hour,
    ]
};

/// The longest of [`SPANS`] that is no longer than a job lasts.
fn span_of(lasts: f64) -> usize {
    SPANS.iter().rposition(|&span| span <= lasts).unwrap_or(0)
}

/// For whom there may be room around an opening.
#[derive(Debug)]
pub(super) enum Room {
    /// On a leaf.
    Within {
        leaf: u32,
        bits: u64,
        /// How often something had been held on the leaf.
        holds: u32,
        /// Entry `n` is the longest time, seconds, for which `n + 1` nodes are free.
        longest: Vec<f64>,
    },
    /// On several leaves.
    Across {
        /// The longest time for which jobs may cross some of them, seconds.
        longest: f64,
        /// At least as many nodes as are free together for each of [`SPANS`].
        most: [u32; SPANS.len()],
    },
}

impl Room {
    /// Room on a run of leaves around what has opened of some; `None` if there is none for as few nodes as `fewest`.
    pub fn across(
        opening: &Opening,
        held: &mut Held,
        run: &Range<u32>,
        fewest: u32,
    ) -> Option<Self> {
        let openings = &opening.openings;
        let matters = held.crossing_matters();
        let longest = if matters { openings.uncrossed } else { openings.longest };
        // A job that ends when something was given back, off by rounding, uses some of it.
        let from = openings.first.max(opening.when.0 - 1.0);
        let most = held.most_room(run, (from, opening.when.1));
        (most >= fewest).then_some(Room::Across { longest, most: [most; SPANS.len()] })
    }

    /// Notes that `nodes` nodes are not free for `lasts` seconds. A job that lasts longer may begin earlier, but the end of its time
    /// is part of what was searched. What opens later is noted for itself.
    pub fn rule_out(&mut self, nodes: u32, lasts: f64) {
        if let Room::Across { most, .. } = self {
            for (most, _) in most.iter_mut().zip(SPANS).filter(|&(_, span)| span >= lasts) {
                *most = (*most).min(nodes - 1);
            }
        }
    }

    /// The longest job that may fit, seconds.
    pub fn longest(&self) -> f64 {
        match self {
            Room::Within { longest, .. } => longest.first().copied().unwrap_or(0.0) + ROUNDING,
            Room::Across { longest, .. } => longest + ROUNDING,
        }
    }

    /// Whether `nodes` nodes may be free for `lasts` seconds.
    pub fn may_hold(&self, nodes: u32, lasts: f64) -> bool {
        match self {
            Room::Within { longest, .. } => {
                let longest = longest.get(nodes as usize - 1);
                longest.is_some_and(|&longest| lasts <= longest + ROUNDING)
            }
            Room::Across { longest, most } => {
                lasts <= *longest + ROUNDING && most[span_of(lasts)] >= nodes
            }
        }
    }
}
