//! Openings: what becomes free when something is given back, and which jobs may fit there.

use std::ops::Range;

use super::ROUNDING;
use super::held::HeldTimelines;
use crate::timeline::Openings;

/// Something was given back and may be used by other jobs.
#[derive(Debug)]
pub(super) struct Opening {
    pub leaves: Range<u32>,
    /// The bits of the leaf; 0 if it concerns several leaves.
    pub bits: u64,
    /// The time span for which it was held.
    pub when: (f64, f64),
    /// What is free around it, and for how long.
    pub openings: Openings,
}

impl Opening {
    /// Returns the opening of some bits of a leaf.
    pub fn of_leaf(leaf: u32, bits: u64, when: (f64, f64), openings: Openings) -> Self {
        Opening { leaves: leaf..leaf + 1, bits, when, openings }
    }

    /// Records that no job crosses these leaves now.
    pub fn of_leaves(leaves: Range<u32>, when: (f64, f64), openings: Openings) -> Self {
        Opening { leaves, bits: 0, when, openings }
    }

    /// Merges openings into one for jobs that cross leaves. It also covers the leaves in between.
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

    /// The earliest start of a job that would use a part of the opening.
    pub fn from(&self, lasts: f64, now: f64) -> f64 {
        self.openings.first.max(self.when.0 - lasts - 1.0).max(now)
    }
}

/// The durations, in seconds, for which free nodes are counted, for rough answers. Most walltimes are whole hours.
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

/// The index of the longest of [`SPANS`] that is not longer than `lasts`.
fn span_of(lasts: f64) -> usize {
    SPANS.iter().rposition(|&span| span <= lasts).unwrap_or(0)
}

/// The jobs that may fit around an opening.
#[derive(Debug)]
pub(super) enum OpeningRoom {
    /// The opening is on one leaf.
    Within {
        leaf: u32,
        bits: u64,
        /// The number of times that something had been held on the leaf.
        holds: u32,
        /// Entry `n` is the longest time, seconds, for which `n + 1` nodes are free.
        longest: Vec<f64>,
    },
    /// The opening is on several leaves.
    Across {
        /// The longest time, in seconds, for which jobs may cross some of them.
        longest: f64,
        /// For each of [`SPANS`], an upper bound of the nodes that are free together.
        most: [u32; SPANS.len()],
    },
}

impl OpeningRoom {
    /// The room on a run of leaves around an opening; `None` if fewer than `fewest` nodes are free.
    pub fn across(
        opening: &Opening,
        held: &mut HeldTimelines,
        run: &Range<u32>,
        fewest: u32,
    ) -> Option<Self> {
        let openings = &opening.openings;
        let matters = held.crossing_matters();
        let longest = if matters { openings.uncrossed } else { openings.longest };
        // Because of rounding, a job that ends when something was given back may use a part of it.
        let from = openings.first.max(opening.when.0 - 1.0);
        let most = held.most_room(run, (from, opening.when.1));
        (most >= fewest).then_some(OpeningRoom::Across { longest, most: [most; SPANS.len()] })
    }

    /// Records that `nodes` nodes are not free for `lasts` seconds. A longer job might begin earlier, but its end is
    /// within the time that was searched. Later openings are recorded on their own.
    pub fn rule_out(&mut self, nodes: u32, lasts: f64) {
        if let OpeningRoom::Across { most, .. } = self {
            for (most, _) in most.iter_mut().zip(SPANS).filter(|&(_, span)| span >= lasts) {
                *most = (*most).min(nodes - 1);
            }
        }
    }

    /// The duration of the longest job that may fit, in seconds.
    pub fn longest(&self) -> f64 {
        match self {
            OpeningRoom::Within { longest, .. } => {
                longest.first().copied().unwrap_or(0.0) + ROUNDING
            }
            OpeningRoom::Across { longest, .. } => longest + ROUNDING,
        }
    }

    /// Whether `nodes` nodes may be free for `lasts` seconds.
    pub fn may_hold(&self, nodes: u32, lasts: f64) -> bool {
        match self {
            OpeningRoom::Within { longest, .. } => {
                let longest = longest.get(nodes as usize - 1);
                longest.is_some_and(|&longest| lasts <= longest + ROUNDING)
            }
            OpeningRoom::Across { longest, most } => {
                lasts <= *longest + ROUNDING && most[span_of(lasts)] >= nodes
            }
        }
    }
}
