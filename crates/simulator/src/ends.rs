//! The running jobs, ordered by the next event of each: its end, or exceeding its walltime.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::coupling::Pace;

/// A time that can be sorted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Time(pub f64);

impl Eq for Time {}

impl Ord for Time {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Time {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// A job that starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begun {
    pub id: u64,
    /// The job's index in the order of starts.
    pub order: usize,
    /// Seconds that it needs alone.
    pub alone: f64,
    /// The walltime that the queue knows, in seconds.
    pub walltime: f64,
    /// Whether the job ends at its walltime, finished or not.
    pub ends_at_walltime: bool,
}

/// An event of a job that is due.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Due {
    /// The job ends after `done` seconds of its work alone; `killed` if by its walltime.
    End { id: u64, order: usize, killed: bool, done: f64 },
    /// The job exceeds the walltime that the queue knows; it is now expected to end at `until`.
    Overrun { id: u64, order: usize, until: f64 },
}

#[derive(Debug)]
struct PacedJob {
    job: Begun,
    /// The work left at `since`, in seconds alone.
    left: f64,
    since: f64,
    pace: Pace,
    /// When the job will finish at this pace.
    done: f64,
    /// When the queue expects its end.
    expected: f64,
}

impl PacedJob {
    fn due(&self) -> f64 {
        self.done.min(self.expected)
    }

    /// The work left at `now`, in seconds alone.
    fn left(&self, now: f64) -> f64 {
        if now < self.since {
            return self.left;
        }
        (self.left - (now - self.since) / self.pace).max(0.0)
    }
}

/// The running jobs with their next events.
#[derive(Debug, Default)]
pub(crate) struct JobEnds {
    running: HashMap<u64, PacedJob>,
    /// Events as (time, order of start, request). An event whose time no longer matches the job is skipped.
    due: BinaryHeap<Reverse<(Time, usize, u64)>>,
}

impl JobEnds {
    pub fn len(&self) -> usize {
        self.running.len()
    }

    pub fn begin(&mut self, job: Begun, now: f64) {
        let running = PacedJob {
            job,
            left: job.alone,
            since: now,
            pace: 1.0,
            done: now + job.alone,
            expected: now + job.walltime,
        };
        self.due.push(Reverse((Time(running.due()), job.order, job.id)));
        self.running.insert(job.id, running);
    }

    /// Sets the pace of a job from now on: the seconds it needs for one second of work done alone.
    pub fn set_pace(&mut self, id: u64, pace: Pace, now: f64) {
        // A job that keeps its pace must keep its exact end, so do not compute it again.
        let changed = |running: &&mut PacedJob| running.pace.to_bits() != pace.to_bits();
        let Some(running) = self.running.get_mut(&id).filter(changed) else { return };
        running.left = running.left(now);
        running.since = running.since.max(now);
        running.pace = pace;
        running.done = running.since + running.left * pace;
        self.due.push(Reverse((Time(running.due()), running.job.order, id)));
    }

    /// Stops a job for `seconds` seconds. Neither its work nor its walltime continues.
    pub fn pause(&mut self, id: u64, seconds: f64, now: f64) {
        let Some(running) = self.running.get_mut(&id) else { return };
        running.left = running.left(now);
        running.since = running.since.max(now) + seconds;
        running.done = running.since + running.left * running.pace;
        running.expected += seconds;
        self.due.push(Reverse((Time(running.due()), running.job.order, id)));
    }

    /// The work that a job has done, in seconds alone.
    pub fn done(&self, id: u64, now: f64) -> f64 {
        self.running.get(&id).map_or(0.0, |running| running.job.alone - running.left(now))
    }

    /// Seconds for which a job is still stopped.
    pub fn paused(&self, id: u64, now: f64) -> f64 {
        self.running.get(&id).map_or(0.0, |running| (running.since - now).max(0.0))
    }

    /// Removes a job that ends early.
    pub fn interrupt(&mut self, id: u64) {
        self.running.remove(&id);
    }

    /// The time of the next event.
    pub fn next(&mut self) -> Option<f64> {
        while let Some(Reverse((Time(time), _, id))) = self.due.peek() {
            let current = self.running.get(id).is_some_and(|job| job.due().total_cmp(time).is_eq());
            if current {
                return Some(*time);
            }
            self.due.pop();
        }
        None
    }

    /// Removes and returns an event that is due by `now`; `None` if there is none. Events come in order of time, then
    /// of start.
    pub fn pop(&mut self, now: f64) -> Option<Due> {
        if self.next()? > now {
            return None;
        }
        let Reverse((_, _, id)) = self.due.pop()?;
        let running = self.running.get_mut(&id)?;
        // A job that was interrupted and started again may have an event at the same time as before.
        let order = running.job.order;
        let is_done = running.done <= running.expected;
        if is_done || running.job.ends_at_walltime {
            let left = if is_done { 0.0 } else { running.left(now) };
            let done = running.job.alone - left;
            self.running.remove(&id);
            return Some(Due::End { id, order, killed: !is_done, done });
        }
        running.expected = running.done;
        self.due.push(Reverse((Time(running.done), order, id)));
        Some(Due::Overrun { id, order, until: running.done })
    }
}
