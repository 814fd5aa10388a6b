//! A job as the driver keeps it.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::clock::{Nanos, seconds};
use super::control::describe;
use super::controlled_job::ControlledJob;
use super::usage::Counts;
use crate::job::{Barriers, JobId};
use crate::observer::Used;

/// How a job is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It gets its slices.
    Scheduled,
    /// It is let run, whatever the slices say.
    Released,
    /// Nothing of it is left.
    Ended,
    /// It cannot be stopped or started any more, and why.
    Lost(String),
}

/// What the driver knows of a job.
#[derive(Debug)]
pub struct Entry {
    /// Its number.
    pub id: JobId,
    /// Its name.
    pub name: String,
    /// Threads that compute.
    pub threads: usize,
    /// Its share against others'.
    pub weight: f64,
    /// What it is stopped with; none when it ended.
    pub held: Option<ControlledJob>,
    /// How it is.
    pub state: State,
    /// What it had in sampled slices, thread-seconds.
    pub used: Used,
    /// How its threads meet, as reported by something that counts it.
    pub barriers: Option<Barriers>,
    /// Seconds on cores, all in all.
    pub cpu: f64,
    /// When it was last let run as a first one.
    pub ran_at: Option<Nanos>,
    /// Open while any of these processes live.
    pub watched: Vec<OwnedFd>,
    sample: Option<Sample>,
    sample_from: Nanos,
}

/// A slice, or some of them in a row, in which it was a first job.
#[derive(Debug)]
struct Sample {
    began: Nanos,
    counts: Counts,
    ended: Option<Nanos>,
}

/// Reading counters may take this share of the time.
const READING: u64 = 200;

impl Entry {
    /// A job that was just taken.
    pub fn new(id: JobId, name: String, threads: usize, weight: f64, held: ControlledJob) -> Self {
        let mut entry = Entry {
            id,
            name,
            threads,
            weight,
            held: Some(held),
            state: State::Scheduled,
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

    /// Opens files that show when its processes end; `false` if no process lives.
    pub fn watch(&mut self) -> bool {
        let Some(held) = &self.held else { return false };
        self.watched = held.control.watch();
        !self.watched.is_empty()
    }

    /// Whether one of the processes watched has not ended.
    pub fn lives(&self) -> bool {
        self.watched.iter().any(|process| !over(process))
    }

    /// Does something with what holds it; a job with which that fails is lost. Whether it went well.
    pub fn with(
        &mut self,
        doing: &str,
        action: impl FnOnce(&mut ControlledJob) -> io::Result<()>,
    ) -> bool {
        let Some(held) = &mut self.held else { return false };
        match action(held) {
            Ok(()) => true,
            Err(error) => {
                self.state = State::Lost(format!("{doing}: {}", describe(&error)));
                false
            }
        }
    }

    /// Begins to measure, where that was not done too lately.
    pub fn begin_sample(&mut self, now: Nanos) {
        if self.sample.is_none() && now >= self.sample_from {
            self.sample = self.read(now).map(|counts| Sample { began: now, counts, ended: None });
        }
    }

    /// Its slice is over. What it did is read later: the kernel counts what a thread did when that has stopped.
    pub fn close_sample(&mut self, now: Nanos) {
        if let Some(sample) = &mut self.sample {
            sample.ended.get_or_insert(now);
        }
    }

    /// Whether there is a slice that is over and was not read.
    pub fn sample_closed(&self) -> bool {
        self.sample.as_ref().is_some_and(|sample| sample.ended.is_some())
    }

    /// What it used since `begin_sample`, until the sample was closed or now.
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

    /// The next sample is put off by what reading costs.
    fn read(&mut self, now: Nanos) -> Option<Counts> {
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
