//! Free nodes as a step function of time.

/// `free[i]` nodes are free from `times[i]` to `times[i + 1]`; the last step never ends.
#[derive(Debug, Clone)]
pub(crate) struct Profile {
    times: Vec<f64>,
    free: Vec<i64>,
}

impl Profile {
    /// `free` nodes from `now` on.
    pub fn new(now: f64, free: i64) -> Self {
        Profile { times: vec![now], free: vec![free] }
    }

    /// Index of the step that begins at `time`, made if there is none.
    fn step(&mut self, time: f64) -> usize {
        let index = self.times.partition_point(|&t| t < time);
        if self.times.get(index) != Some(&time) {
            let before = self.free[index.saturating_sub(1)];
            self.times.insert(index, time);
            self.free.insert(index, before);
        }
        index
    }

    /// Adds `nodes` (negative to take) from `start` to `end`, both no earlier than the profile's
    /// begin; an infinite end means for good.
    pub fn add(&mut self, start: f64, end: f64, nodes: i64) {
        if start >= end {
            return;
        }
        let first = self.step(start);
        let last = if end.is_finite() { self.step(end) } else { self.free.len() };
        for free in &mut self.free[first..last] {
            *free += nodes;
        }
    }

    /// The earliest time at which `nodes` are free for `duration`; infinite if never.
    pub fn earliest(&self, duration: f64, nodes: i64) -> f64 {
        let mut since = None;
        for (index, &free) in self.free.iter().enumerate() {
            if free < nodes {
                since = None;
                continue;
            }
            let start = *since.get_or_insert(self.times[index]);
            let end = self.times.get(index + 1).copied().unwrap_or(f64::INFINITY);
            if end - start >= duration || end == f64::INFINITY {
                return start;
            }
        }
        f64::INFINITY
    }

    /// The fewest free nodes from `start` to `end`.
    pub fn least(&self, start: f64, end: f64) -> i64 {
        let first = self.times.partition_point(|&t| t <= start).saturating_sub(1);
        let last = self.times.partition_point(|&t| t < end).max(first + 1);
        self.free[first..last].iter().copied().min().unwrap_or(0)
    }

    /// The times at which a step begins.
    pub fn times(&self) -> &[f64] {
        &self.times
    }
}
