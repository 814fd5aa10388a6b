//! How many running jobs may be moved.

/// Moves of running jobs that make room for one that is refused though enough nodes are free.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Defrag {
    /// Jobs moved for one that starts, at most.
    pub most: u32,
    /// Moves for every job started, at most.
    pub per_start: f64,
    /// Jobs started so far.
    pub(crate) starts: u64,
    /// Moves made so far.
    pub(crate) moves: u64,
}

impl Defrag {
    /// Up to `most` moves for one job, and on average up to `per_start` for each that starts.
    pub fn new(most: u32, per_start: f64) -> Self {
        Defrag { most, per_start, starts: 0, moves: 0 }
    }

    /// Jobs that may be moved now.
    pub fn allowed(&self) -> u32 {
        let budget = self.per_start * self.starts as f64 - self.moves as f64;
        self.most.min(budget.max(0.0) as u32)
    }
}
