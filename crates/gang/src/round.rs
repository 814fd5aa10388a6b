//! The answer of a policy: a round of slices.

use std::collections::BTreeMap;

use crate::job::JobId;

/// One pass over all slices; a driver repeats it until it asks again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Round {
    /// The slices, in order of time.
    pub slices: Vec<Slice>,
    /// The cores of every job in a slice, ascending: one per thread for a gang, or all cores if the operating system
    /// may place its threads.
    pub cores: BTreeMap<JobId, Vec<usize>>,
    /// Jobs whose threads are kept together: each has its own cores, and in its slices no job goes before it.
    pub gangs: Vec<JobId>,
}

/// The jobs that run for some time; all others are stopped.
#[derive(Debug, Clone, PartialEq)]
pub struct Slice {
    /// The length in seconds; infinite if nothing changes until a job comes or goes.
    pub seconds: f64,
    /// The first jobs: they run whenever they are ready.
    pub first: Vec<JobId>,
    /// Jobs that use the idle time of first jobs: each runs on a core only while no thread of a first job is ready
    /// there.
    pub fillers: Vec<JobId>,
}

impl Round {
    /// The length of the round in seconds.
    pub fn seconds(&self) -> f64 {
        self.slices.iter().map(|slice| slice.seconds).sum()
    }

    /// The longest time between two slices in which the job is a first job; the whole round if there is none.
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
