//! Windows: places and times at which jobs may fit that did not fit before.

use std::ops::Range;

use super::held::HeldTimelines;

#[derive(Debug, Clone)]
pub(super) struct Window {
    pub run: Range<u32>,
    pub from: f64,
    pub until: f64,
}

impl Window {
    /// Whether the two windows overlap or touch.
    fn meets(&self, other: &Window) -> bool {
        self.run == other.run && self.from <= other.until && other.from <= self.until
    }
}

/// The windows of jobs that ask for the same.
#[derive(Debug)]
pub(super) struct Windows {
    all: Vec<Window>,
    /// When the first window begins; infinite if there is none.
    first: f64,
    /// Whether two windows may overlap.
    may_join: bool,
}

impl Default for Windows {
    fn default() -> Self {
        Windows { all: Vec::new(), first: f64::INFINITY, may_join: false }
    }
}

impl Windows {
    pub fn of(window: Option<Window>) -> Self {
        let mut windows = Windows::default();
        windows.all.extend(window);
        windows
    }

    pub fn first(&self) -> f64 {
        self.first
    }

    pub fn push(&mut self, window: Window) {
        self.first = self.first.min(window.from);
        if let Some(last) = self.all.last_mut().filter(|last| last.meets(&window)) {
            last.from = last.from.min(window.from);
            last.until = last.until.max(window.until);
        } else {
            self.may_join |= !self.all.is_empty();
            self.all.push(window);
        }
    }

    /// Joins windows of the same run that overlap.
    fn join(&mut self) {
        self.all
            .sort_unstable_by(|a, b| a.run.start.cmp(&b.run.start).then(a.from.total_cmp(&b.from)));
        self.all.dedup_by(|next, window| {
            let overlap = window.meets(next);
            if overlap {
                window.until = window.until.max(next.until);
            }
            overlap
        });
        self.may_join = false;
    }

    /// Cuts off everything before a time.
    pub fn begin_at(&mut self, now: f64) {
        if self.first < now {
            self.all.iter_mut().for_each(|window| window.from = window.from.max(now));
            self.keep_open();
        }
    }

    /// Cuts off everything after a time.
    pub fn trim(&mut self, last: f64) {
        self.all.iter_mut().for_each(|window| window.until = window.until.min(last));
        self.keep_open();
    }

    fn keep_open(&mut self) {
        self.all.retain(|window| window.from < window.until);
        self.first = self.all.iter().map(|window| window.from).fold(f64::INFINITY, f64::min);
    }

    /// The earliest time before `limit` from which there are enough nodes, if no two jobs may cross a leaf.
    pub fn earliest(
        &mut self,
        held: &mut HeldTimelines,
        shape: (u32, f64),
        limit: f64,
    ) -> Option<f64> {
        if self.may_join {
            self.join();
        }
        let mut best = limit;
        for window in &mut self.all {
            let until = window.until.min(best);
            if window.from < until {
                let found = held.room_from(&window.run, shape, (window.from, until));
                window.from = found.unwrap_or(until);
                best = found.unwrap_or(best);
            }
        }
        self.keep_open();
        (best < limit).then_some(best)
    }

    /// Removes a time at which the job turned out not to fit.
    pub fn pass_over(&mut self, held: &HeldTimelines, time: f64) {
        for window in self.all.iter_mut().filter(|window| window.from <= time) {
            window.from = held.step_after(&window.run, time);
        }
        self.keep_open();
    }
}
