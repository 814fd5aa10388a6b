//! What a policy answers.

use std::collections::BTreeMap;

use crate::job::JobId;

/// One turn of all slices; a driver repeats it until it asks again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Round {
    /// In order of time.
    pub slices: Vec<Slice>,
    /// The cores, ascending, of every job of a slice: one for each thread of a gang, and all cores where the operating
    /// system may place the threads as it likes.
    pub cores: BTreeMap<JobId, Vec<usize>>,
    /// Jobs whose threads are kept together: each has its own cores, and in its slices no job goes before it.
    pub gangs: Vec<JobId>,
}

/// What runs for some time. All others are stopped.
#[derive(Debug, Clone, PartialEq)]
pub struct Slice {
    /// How long; infinite where nothing changes until a job comes or goes.
    pub seconds: f64,
    /// Jobs that run.
    pub first: Vec<JobId>,
    /// Jobs that run on what those leave: on a core of theirs only while no thread of a first one is ready there.
    pub fillers: Vec<JobId>,
}

impl Round {
    /// Seconds from one start of the round to the next.
    pub fn seconds(&self) -> f64 {
        self.slices.iter().map(|slice| slice.seconds).sum()
    }

    /// The longest time between two slices in which the job is a first one; the whole round where it is in none.
    pub fn delay(&self, job: JobId) -> f64 {
        let turns = || self.slices.iter().chain(&self.slices);
        let (mut longest, mut since) = (0.0_f64, 0.0);
        for slice in turns() {
            since = if slice.first.contains(&job) { 0.0 } else { since + slice.seconds };
            longest = longest.max(since);
        }
        longest.min(self.seconds())
    }
}
