//! Turns what jobs used into what policies know about them.

use std::collections::BTreeMap;

use crate::job::{Barriers, JobId, Observation};

/// What a driver measured of a job over the slices since its last report.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Used {
    /// Thread-seconds in which the job was allowed to run as a first job: the number of its threads times the length of
    /// its slices.
    pub given: f64,
    /// The part of that time on a core.
    pub ran: f64,
    /// The part of that time ready without a core.
    pub ready: f64,
    /// The barriers of the job, if something counts them.
    pub barriers: Option<Barriers>,
}

/// Averages for all jobs; measurements from `MEMORY` seconds ago count with the factor 1/e.
#[derive(Debug, Clone, Default)]
pub struct Observer {
    jobs: BTreeMap<JobId, Memory>,
}

/// Averages of the shares of a job's time. A driver may count time in which a thread was ready in the following sample.
/// So shares are averaged before they are compared, and errors of neighbouring samples cancel.
#[derive(Debug, Clone, Copy)]
struct Memory {
    ran: f64,
    ready: f64,
    barriers: Option<Barriers>,
}

impl Default for Memory {
    /// A new job counts as never blocked. While it starts, one thread reads files and the others do not exist, which
    /// says nothing about its computing.
    fn default() -> Self {
        Memory { ran: 1.0, ready: 0.0, barriers: None }
    }
}

/// The memory of the averages, in seconds of the job's own slices. It covers several steps of a job with phases of
/// tenths of a second, in which at times only one thread works and at times all.
const MEMORY: f64 = 1.0;

impl Observer {
    /// Returns an observer that has seen no job.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what a job of `threads` threads did. A job that was not allowed to run teaches nothing.
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
        // The time in which it was not ready is at most all of it, and at least the time that it ran.
        let had = (1.0 - memory.ready.max(0.0)).max(memory.ran);
        let blocked = if had > 0.0 { 1.0 - memory.ran / had } else { 0.0 };
        Observation { blocked: Some(blocked), barriers: memory.barriers }
    }

    /// Forgets a job that has ended.
    pub fn forget(&mut self, job: JobId) {
        self.jobs.remove(&job);
    }
}
