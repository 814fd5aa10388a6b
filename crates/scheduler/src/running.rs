//! The running jobs, ordered by expected end.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use topolane_placement::{Placement, Request};

/// A job that holds nodes.
#[derive(Debug, Clone)]
pub struct RunningJob {
    /// The id of the request.
    pub id: u64,
    /// The request of the job.
    pub request: Arc<Request>,
    /// When the job started, in seconds.
    pub start: f64,
    /// When the job must have ended, in seconds: start + walltime.
    pub expected_end: f64,
    /// The nodes and links that it holds.
    pub placement: Arc<Placement>,
}

/// The start or end of a job.
#[derive(Debug, Clone)]
pub(crate) struct RunningChange {
    pub came: bool,
    pub expected_end: f64,
    pub placement: Arc<Placement>,
}

/// The number of changes that are remembered: more than occur between two passes on a busy machine.
const REMEMBERED: usize = 1 << 10;

/// The running jobs in order of (expected end, id).
#[derive(Debug, Clone, Default)]
pub struct Running {
    /// The latest changes; `forgotten` counts the changes before them.
    changes: VecDeque<RunningChange>,
    forgotten: u64,
    jobs: Vec<RunningJob>,
    /// The distinct times at which running jobs are expected to end, ascending.
    times: Vec<f64>,
    ends: FxHashMap<u64, f64>,
    /// The number of jobs that share their nodes.
    sharing: usize,
    /// The number of jobs that own links and have less than full bandwidth on them.
    slowed: usize,
}

impl Running {
    /// The jobs in order of (expected end, id).
    pub fn jobs(&self) -> &[RunningJob] {
        &self.jobs
    }

    /// The running job with this id.
    pub fn get(&self, id: u64) -> Option<&RunningJob> {
        self.position(id).map(|index| &self.jobs[index])
    }

    /// Whether a job with this id is running.
    pub(crate) fn contains(&self, id: u64) -> bool {
        self.ends.contains_key(&id)
    }

    /// The jobs grouped by expected end, earliest first.
    pub fn ending_together(&self) -> impl Iterator<Item = &[RunningJob]> {
        self.jobs.chunk_by(|a, b| a.expected_end.total_cmp(&b.expected_end).is_eq())
    }

    /// The distinct times at which running jobs are expected to end, ascending.
    pub(crate) fn times(&self) -> &[f64] {
        &self.times
    }

    /// The jobs expected to end later than `after` and not later than `up_to`.
    pub(crate) fn ending_in(&self, after: f64, up_to: f64) -> &[RunningJob] {
        let gone = |time: f64| self.jobs.partition_point(|job| job.expected_end <= time);
        if after < up_to { &self.jobs[gone(after)..gone(up_to)] } else { &[] }
    }

    /// The number of starts and ends so far.
    pub(crate) fn changes(&self) -> u64 {
        self.forgotten + self.changes.len() as u64
    }

    /// The starts and ends after the first `seen`; `None` if they are no longer remembered.
    pub(crate) fn changes_since(&self, seen: u64) -> Option<impl Iterator<Item = &RunningChange>> {
        let known = usize::try_from(seen.checked_sub(self.forgotten)?).ok()?;
        (known <= self.changes.len()).then(|| self.changes.range(known..))
    }

    fn note(&mut self, came: bool, job: &RunningJob) {
        if self.changes.len() == REMEMBERED {
            self.changes.pop_front();
            self.forgotten += 1;
        }
        let (expected_end, placement) = (job.expected_end, Arc::clone(&job.placement));
        self.changes.push_back(RunningChange { came, expected_end, placement });
    }

    /// Whether any running job shares its nodes.
    pub fn any_sharing(&self) -> bool {
        self.sharing > 0
    }

    /// Whether any running job owns links and has less than full bandwidth on them.
    pub(crate) fn any_slowed(&self) -> bool {
        self.slowed > 0
    }

    pub(crate) fn insert(&mut self, job: RunningJob) {
        self.note(true, &job);
        let key = (job.expected_end, job.id);
        let index = self.jobs.partition_point(|other| before((other.expected_end, other.id), key));
        self.ends.insert(job.id, job.expected_end);
        self.sharing += usize::from(!job.placement.share().is_whole());
        self.slowed += usize::from(is_slowed(&job.placement));
        if !self.neighbour_ends(index, job.expected_end) {
            let at = self.times.partition_point(|time| time.total_cmp(&job.expected_end).is_lt());
            self.times.insert(at, job.expected_end);
        }
        self.jobs.insert(index, job);
    }

    /// Whether the job at `index`, or the one before it, is expected to end at `time`.
    fn neighbour_ends(&self, index: usize, time: f64) -> bool {
        let ends = |job: &RunningJob| job.expected_end.total_cmp(&time).is_eq();
        self.jobs.get(index).is_some_and(ends) || index > 0 && ends(&self.jobs[index - 1])
    }

    pub(crate) fn remove(&mut self, id: u64) -> Option<RunningJob> {
        let index = self.position(id)?;
        self.ends.remove(&id);
        let job = self.jobs.remove(index);
        if !self.neighbour_ends(index, job.expected_end) {
            let at = self.times.partition_point(|time| time.total_cmp(&job.expected_end).is_lt());
            self.times.remove(at);
        }
        self.note(false, &job);
        self.sharing -= usize::from(!job.placement.share().is_whole());
        self.slowed -= usize::from(is_slowed(&job.placement));
        Some(job)
    }

    fn position(&self, id: u64) -> Option<usize> {
        let key = (*self.ends.get(&id)?, id);
        Some(self.jobs.partition_point(|other| before((other.expected_end, other.id), key)))
    }
}

fn is_slowed(placement: &Placement) -> bool {
    !placement.links().is_empty() && placement.bandwidth_share() < 1.0
}

fn before(a: (f64, u64), b: (f64, u64)) -> bool {
    a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).is_lt()
}
