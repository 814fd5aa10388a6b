//! From what the jobs used to what the policies know of them.

use std::collections::BTreeMap;

use crate::job::{Barriers, JobId, Observation};

/// What a driver measured of a job over the slices since it told last.
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

#[derive(Debug, Clone, Copy, Default)]
struct Memory {
    seen: Observation,
    /// Seconds of its own slices that the average stands for.
    seconds: f64,
}

/// Seconds of a job's own slices after which the past counts for 1/e: several steps of a job whose phases take tenths
/// of a second, in which now one of its threads works and now all.
const MEMORY: f64 = 1.0;

impl Observer {
    /// Nobody has been seen.
    pub fn new() -> Self {
        Self::default()
    }

    /// What a job of so many threads did; nothing is learnt from a job that was not let run.
    pub fn tell(&mut self, job: JobId, threads: usize, used: Used) {
        let Memory { seen, seconds } = self.jobs.entry(job).or_default();
        let had = used.given - used.ready;
        if had > 0.0 {
            let now = (1.0 - used.ran / had).clamp(0.0, 1.0);
            let new = used.given / threads as f64;
            *seconds += new;
            let weight = share(new) / share(*seconds);
            seen.blocked = Some(seen.blocked.map_or(now, |then| then + weight * (now - then)));
        }
        seen.barriers = used.barriers.or(seen.barriers);
    }

    /// What is known of a job.
    pub fn seen(&self, job: JobId) -> Observation {
        self.jobs.get(&job).map(|memory| memory.seen).unwrap_or_default()
    }

    /// Forgets a job that ended.
    pub fn forget(&mut self, job: JobId) {
        self.jobs.remove(&job);
    }
}

/// How much the last `seconds` count in an average over an endless past. Divided by what a job's whole past counts, so
/// that a first sample of a millisecond is not taken for all that came before it.
fn share(seconds: f64) -> f64 {
    1.0 - (-seconds / MEMORY).exp()
}
