//! The driver's record of a job.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::clock::{Nanos, seconds};
use super::control::describe;
use super::controlled_job::ControlledJob;
use super::usage::CoreTimes;
use crate::job::{Barriers, JobId};
use crate::observer::Used;

/// The state of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobState {
    /// The job runs in its slices.
    Scheduled,
    /// The job runs regardless of slices.
    Released,
    /// The job has no processes left.
    Ended,
    /// The job can no longer be stopped or started, for this reason.
    Lost(String),
}

/// The driver's record of a job.
#[derive(Debug)]
pub struct JobRecord {
    /// The number of the job.
    pub id: JobId,
    /// The name of the job.
    pub name: String,
    /// The number of computing threads.
    pub threads: usize,
    /// The weight of the job when time is divided among jobs.
    pub weight: f64,
    /// The job under control; `None` if it has ended.
    pub held: Option<ControlledJob>,
    /// The state of the job.
    pub state: JobState,
    /// What the job used in sampled slices, in thread-seconds.
    pub used: Used,
    /// The barriers of the job, as reported by an external counter.
    pub barriers: Option<Barriers>,
    /// Total seconds on cores.
    pub cpu: f64,
    /// When the job last ran as a first job.
    pub ran_at: Option<Nanos>,
    /// Process files that stay unreadable while these processes live.
    pub watched: Vec<OwnedFd>,
    sample: Option<Sample>,
    sample_from: Nanos,
}

/// A slice, or several consecutive ones, in which it was a first job.
#[derive(Debug)]
struct Sample {
    began: Nanos,
    counts: CoreTimes,
    ended: Option<Nanos>,
}

/// Reading counters may take at most 1 / `READING` of the time.
const READING: u64 = 200;

impl JobRecord {
    /// Returns the record of a job that was just taken.
    pub fn new(id: JobId, name: String, threads: usize, weight: f64, held: ControlledJob) -> Self {
        let mut entry = JobRecord {
            id,
            name,
            threads,
            weight,
            held: Some(held),
            state: JobState::Scheduled,
            used: Used::default(),
            barriers: None,
            cpu: 0.0,
            ran_at: None,
            watched: Vec::new(),
            sample: None,
            sample_from: 0,
        };
        entry.watch();
        entry
    }

    /// Opens files that show when its processes end. Returns false if no process is alive.
    pub fn watch(&mut self) -> bool {
        let Some(held) = &self.held else { return false };
        self.watched = held.control.watch();
        !self.watched.is_empty()
    }

    /// Whether any of the watched processes is alive.
    pub fn lives(&self) -> bool {
        self.watched.iter().any(|process| !over(process))
    }

    /// Runs an action on the controlled job. If it fails, the job counts as lost. Returns whether it succeeded.
    pub fn with(
        &mut self,
        doing: &str,
        action: impl FnOnce(&mut ControlledJob) -> io::Result<()>,
    ) -> bool {
        let Some(held) = &mut self.held else { return false };
        match action(held) {
            Ok(()) => true,
            Err(error) => {
                self.state = JobState::Lost(format!("{doing}: {}", describe(&error)));
                false
            }
        }
    }

    /// Begins a sample, unless the last one was too recent.
    pub fn begin_sample(&mut self, now: Nanos) {
        if self.sample.is_none() && now >= self.sample_from {
            self.sample = self.read(now).map(|counts| Sample { began: now, counts, ended: None });
        }
    }

    /// Marks the end of its slice. The counters are read later, because the kernel updates them when a thread has
    /// stopped.
    pub fn close_sample(&mut self, now: Nanos) {
        if let Some(sample) = &mut self.sample {
            sample.ended.get_or_insert(now);
        }
    }

    /// Whether a sample has ended and was not read yet.
    pub fn sample_closed(&self) -> bool {
        self.sample.as_ref().is_some_and(|sample| sample.ended.is_some())
    }

    /// What the job used from `begin_sample` until the sample was closed, or until now.
    pub fn end_sample(&mut self, now: Nanos) -> Option<Used> {
        let Sample { began, counts, ended } = self.sample.take()?;
        let did = self.read(now)? - counts;
        let given = self.threads as f64 * seconds(ended.unwrap_or(now).saturating_sub(began));
        let used = Used {
            given,
            ran: seconds(did.ran),
            ready: did.ready as f64 * 1e-9,
            barriers: self.barriers,
        };
        self.used.given += used.given;
        self.used.ran += used.ran;
        self.used.ready += used.ready;
        Some(used)
    }

    /// Reads the counters, and delays the next sample in proportion to the time that this took.
    fn read(&mut self, now: Nanos) -> Option<CoreTimes> {
        let begun = super::clock::now();
        let counts = self.held.as_mut()?.control.counts()?;
        self.cpu = seconds(counts.ran);
        self.sample_from = now + READING * (super::clock::now() - begun);
        Some(counts)
    }
}

/// Whether the process of a pidfd has ended.
fn over(process: &OwnedFd) -> bool {
    let mut asked = [PollFd::new(process, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut asked, Some(&now)).is_ok_and(|ready| ready > 0)
}
