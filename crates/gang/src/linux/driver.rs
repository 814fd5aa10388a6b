//! The driver in the agent's real-time thread: waits for the end of a slice, then starts the next one.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;

use super::clock::{Nanos, nanos, now, seconds};
use super::controlled_job::ControlledJob;
use super::entry::{JobRecord, JobState};
use super::switches::{SliceSwitch, Switches};
use crate::job::{JobId, ObservedJob};
use crate::limits::SliceLimits;
use crate::observer::Observer;
use crate::policy::GangPolicy;
use crate::round::{Round, Slice};

/// The jobs, the policy and the slices.
pub struct Driver {
    policy: Box<dyn GangPolicy>,
    /// Limits chosen by the user; the cost of a switch is measured.
    pub limits: SliceLimits,
    /// The CPU number of each core of the policy.
    pub cores: Vec<usize>,
    /// All jobs, including ended ones until they are forgotten.
    pub jobs: BTreeMap<JobId, JobRecord>,
    /// The current round of slices.
    pub round: Round,
    /// The latest switches.
    pub switches: Switches,
    pub(super) observer: Observer,
    /// The index of the next slice in the round.
    next: usize,
    /// The current slice.
    pub slice: Slice,
    deadline: Nanos,
    stale: bool,
    /// Receives jobs that are no longer needed, because removing their control groups can take long.
    pub(super) released: Sender<ControlledJob>,
}

/// The end of a slice without an end.
pub const NEVER: Nanos = Nanos::MAX;

impl Driver {
    /// Returns a driver without jobs.
    pub fn new(
        policy: Box<dyn GangPolicy>,
        limits: SliceLimits,
        cores: Vec<usize>,
        released: Sender<ControlledJob>,
    ) -> Self {
        Driver {
            policy,
            limits,
            cores,
            jobs: BTreeMap::new(),
            round: Round::default(),
            switches: Switches::default(),
            observer: Observer::new(),
            next: 0,
            slice: Slice { seconds: f64::INFINITY, first: Vec::new(), fillers: Vec::new() },
            deadline: NEVER,
            stale: false,
            released,
        }
    }

    /// When `step` must be called next.
    pub fn deadline(&self) -> Nanos {
        self.deadline
    }

    /// Adds a job. It waits for the end of the current slice, if that has one.
    pub fn add(&mut self, entry: JobRecord) {
        self.jobs.insert(entry.id, entry);
        self.changed(false);
    }

    /// Records that jobs came or went. `at_once` means that cores are idle because of it.
    pub(super) fn changed(&mut self, at_once: bool) {
        self.stale = true;
        if at_once || self.slice.seconds.is_infinite() {
            self.deadline = now();
        }
    }

    /// Lets a job run from now on, regardless of slices.
    pub fn release(&mut self, id: JobId) {
        let Some(entry) = self.jobs.get_mut(&id).filter(|entry| entry.held.is_some()) else {
            return;
        };
        if entry.state == JobState::Scheduled {
            entry.state = JobState::Released;
        }
        entry.with("it cannot be let run", ControlledJob::release);
        self.observer.forget(id);
        self.changed(true);
    }

    /// Handles a job that has no processes left.
    pub fn ended(&mut self, id: JobId) {
        let running = self.runs(id);
        let Some(entry) = self.jobs.get_mut(&id) else { return };
        entry.end_sample(now());
        entry.state = JobState::Ended;
        if let Some(mut held) = entry.held.take() {
            // If the job had a control group of its own, it may be used again.
            let _ = held.release();
            let _ = self.released.send(held);
        }
        self.observer.forget(id);
        self.changed(running);
    }

    /// Forgets a job.
    pub fn forget(&mut self, id: JobId) {
        self.release(id);
        if let Some(held) = self.jobs.remove(&id).and_then(|entry| entry.held) {
            let _ = self.released.send(held);
        }
    }

    fn runs(&self, id: JobId) -> bool {
        self.slice.first.contains(&id) || self.slice.fillers.contains(&id)
    }

    /// Updates everything; must be called after every event, and at `deadline`.
    pub fn step(&mut self) {
        if self.stale {
            self.stale = false;
            self.ask();
            let now = now();
            let waited = |id| {
                let since = self.jobs.get(&id).and_then(|entry| entry.ran_at);
                since.map_or(f64::INFINITY, |since| seconds(now.saturating_sub(since)))
            };
            self.next = self.round.longest_waiting(waited);
        }
        if now() >= self.deadline {
            self.turn();
        }
    }

    /// Asks the policy for the next round.
    fn ask(&mut self) {
        let scheduled = self.jobs.values().filter(|entry| entry.state == JobState::Scheduled);
        let seen = |entry: &JobRecord| ObservedJob {
            id: entry.id,
            threads: entry.threads,
            weight: entry.weight,
            fills: entry.held.as_ref().is_some_and(|held| held.control.ranks()),
            seen: self.observer.seen(entry.id),
        };
        let jobs: Vec<ObservedJob> = scheduled.map(seen).collect();
        if let Some(cost) = self.switches.cost() {
            self.limits.switch = cost;
        }
        self.round = self.policy.round(&jobs, self.cores.len(), &self.limits);
        self.next = 0;
    }

    /// Switches to the next slice.
    fn turn(&mut self) {
        let empty = Slice { seconds: f64::INFINITY, first: Vec::new(), fillers: Vec::new() };
        let slice = self.round.slices.get(self.next).cloned().unwrap_or(empty);
        let (deadline, began) = (self.deadline, now());
        let changed = self.switch(&slice);
        let ended = now();
        self.measure(&slice, began, ended);
        // A slice that began late still ends on time, unless it would be over already.
        let end = |from: Nanos| from.saturating_add(nanos(slice.seconds));
        self.deadline = if end(deadline) > ended { end(deadline) } else { end(ended) };
        let Slice { seconds, ref first, ref fillers } = slice;
        if changed {
            let (first, fillers) = (first.clone(), fillers.clone());
            let switch =
                SliceSwitch { deadline, began, ended, seconds, slice: self.next, first, fillers };
            self.switches.push(switch, changed);
        }
        self.slice = slice;
        self.next += 1;
        if self.next >= self.round.slices.len() {
            self.ask();
        }
        self.sweep();
    }

    /// Stops the jobs that are not in the slice, then starts those that are. Returns whether any job was stopped or
    /// started.
    fn switch(&mut self, slice: &Slice) -> bool {
        let mut changed = false;
        let in_slice = |id| slice.first.contains(&id) || slice.fillers.contains(&id);
        let scheduled = |entry: &&mut JobRecord| entry.state == JobState::Scheduled;
        for entry in self.jobs.values_mut().filter(scheduled) {
            if !in_slice(entry.id) && entry.held.as_ref().is_some_and(|held| !held.stopped) {
                changed = true;
                entry.with("it cannot be stopped", ControlledJob::stop);
            }
        }
        // Rank the jobs that continue before any other job starts, then start all others as close together as possible.
        for entry in self.jobs.values_mut().filter(scheduled).filter(|entry| in_slice(entry.id)) {
            let columns = self.round.cores.get(&entry.id).map_or(&[][..], Vec::as_slice);
            let cores: Vec<usize> = columns.iter().map(|&column| self.cores[column]).collect();
            let behind = slice.fillers.contains(&entry.id);
            entry.with("it cannot be kept to its cores", |held| {
                let pinned = if held.cores == cores { Ok(()) } else { held.pin(&cores) };
                pinned.and_then(|()| if held.behind == behind { Ok(()) } else { held.rank(behind) })
            });
        }
        for entry in self.jobs.values_mut().filter(scheduled).filter(|entry| in_slice(entry.id)) {
            if entry.held.as_ref().is_some_and(|held| held.stopped) {
                changed = true;
                entry.with("it cannot be let run", ControlledJob::start);
            }
        }
        changed
    }
}
