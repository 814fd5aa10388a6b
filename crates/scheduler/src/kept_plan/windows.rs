//! Where and when a job may fit that did not fit before.

use std::ops::Range;

use super::held::Held;

#[derive(Debug, Clone)]
pub(super) struct Window {
    pub run: Range<u32>,
    pub from: f64,
    pub until: f64,
}

/// Windows for one job.
#[derive(Debug, Default)]
pub(super) struct Windows(Vec<Window>);

impl Windows {
    /// All that comes from a time on.
    pub fn from(runs: &[Range<u32>], from: f64) -> Self {
        let window = |run: &Range<u32>| Window { run: run.clone(), from, until: f64::INFINITY };
        Windows(runs.iter().map(window).collect())
    }

    /// Joins windows of one run that overlap.
    pub fn joined(mut windows: Vec<Window>) -> Self {
        windows
            .sort_unstable_by(|a, b| a.run.start.cmp(&b.run.start).then(a.from.total_cmp(&b.from)));
        windows.dedup_by(|next, window| {
            let overlap = next.run == window.run && next.from <= window.until;
            if overlap {
                window.until = window.until.max(next.until);
            }
            overlap
        });
        Windows(windows)
    }

    pub fn and(mut self, more: Windows) -> Self {
        self.0.extend(more.0);
        self
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keeps those in which there are nodes enough, from the time on at which there are, if no two jobs may cross a leaf.
    pub fn keep_with_room(&mut self, held: &Held, (nodes, lasts): (u32, f64)) {
        self.0.retain_mut(|window| {
            let start = held.room_from(&window.run, nodes, lasts, (window.from, window.until));
            start.inspect(|&start| window.from = start).is_some()
        });
    }

    /// The earliest time from which on there are nodes enough, if no two jobs may cross a leaf.
    pub fn earliest(&mut self, held: &Held, (nodes, lasts): (u32, f64)) -> Option<f64> {
        let mut best: Option<f64> = None;
        for window in &mut self.0 {
            let until = best.map_or(window.until, |best| window.until.min(best));
            let start = held.room_from(&window.run, nodes, lasts, (window.from, until));
            window.from = start.unwrap_or(window.from);
            best = start.or(best);
        }
        best
    }

    /// Leaves out a time at which there is no place.
    pub fn pass_over(&mut self, held: &Held, time: f64) {
        for window in self.0.iter_mut().filter(|window| window.from <= time) {
            window.from = held.step_after(&window.run, time);
        }
        self.0.retain(|window| window.from < window.until);
    }
}
