//! From what the jobs used to what the policies know of them.

use std::collections::BTreeMap;

use crate::job::{Barriers, JobId, Observation};

/// What a driver measured of a job over the slices since its last report.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Used {
    /// Thread-seconds in which the job was let run as a first one: its threads times the seconds of its slices.
    pub given: f64,
    /// Of those, thread-seconds on a core.
    pub ran: f64,
    /// Of those, thread-seconds ready without a core.
    pub ready: f64,
    /// Its barriers, where something counts them.
    pub barriers: Option<Barriers>,
}

/// What is remembered of all jobs: averages in which what was seen `MEMORY` seconds ago counts for 1/e.
#[derive(Debug, Clone, Default)]
pub struct Observer {
    jobs: BTreeMap<JobId, Memory>,
}

/// Shares of the time that a job was given. A driver may count the time that a thread was ready in the sample after the
/// one in which it was. So the shares are averaged, and only then compared: too much in one sample makes up for too
/// little in another.
#[derive(Debug, Clone, Copy)]
struct Memory {
    ran: f64,
    ready: f64,
    barriers: Option<Barriers>,
}

impl Default for Memory {
    /// A job begins as one that never blocks: while it starts, one thread reads files and the others do not exist, which
    /// says nothing of how it computes.
    fn default() -> Self {
        Memory { ran: 1.0, ready: 0.0, barriers: None }
    }
}

/// Seconds of a job's own slices after which the past counts for 1/e: several steps of a job whose phases take tenths
/// of a second, in which now one of its threads works and now all.
const MEMORY: f64 = 1.0;

impl Observer {
    /// An observer that has seen no job.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in what a job of `threads` threads did; nothing is learnt from a job that was not let run.
    pub fn learn(&mut self, job: JobId, threads: usize, used: Used) {
        let memory = self.jobs.entry(job).or_default();
        if used.given > 0.0 {
            let weight = 1.0 - (-used.given / threads as f64 / MEMORY).exp();
            memory.ran += weight * (used.ran / used.given - memory.ran);
            memory.ready += weight * (used.ready / used.given - memory.ready);
        }
        memory.barriers = used.barriers.or(memory.barriers);
    }

    /// What is known of a job.
    pub fn seen(&self, job: JobId) -> Observation {
        let Some(memory) = self.jobs.get(&job) else { return Observation::default() };
        // What it neither ran nor was ready is at most all, and not less than nothing.
        let had = (1.0 - memory.ready.max(0.0)).max(memory.ran);
        let blocked = if had > 0.0 { 1.0 - memory.ran / had } else { 0.0 };
        Observation { blocked: Some(blocked), barriers: memory.barriers }
    }

    /// Forgets a job that ended.
    pub fn forget(&mut self, job: JobId) {
        self.jobs.remove(&job);
    }
}
