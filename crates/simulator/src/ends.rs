//! The running jobs by when something is due of them: their end, or an overrun of their walltime.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::coupling::Pace;

/// A time that orders as a number.
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

/// A job as it begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begun {
    pub id: u64,
    /// Its place in the order of starts.
    pub order: usize,
    /// Seconds it needs when alone.
    pub alone: f64,
    /// The walltime that the queue knows, seconds.
    pub walltime: f64,
    /// Whether it ends then, done or not.
    pub ends_at_walltime: bool,
}

/// What is due of a job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Due {
    /// It ends, having done `done` seconds of what it needs alone; by its walltime if `killed`.
    End { id: u64, order: usize, killed: bool, done: f64 },
    /// It outlasts the walltime that the queue knows; it is expected to end at `until`.
    Overrun { id: u64, order: usize, until: f64 },
}

#[derive(Debug)]
struct Running {
    job: Begun,
    /// Seconds alone that it still needed at `since`.
    left: f64,
    since: f64,
    pace: Pace,
    /// When it will be done at this pace.
    done: f64,
    /// When the queue expects its end.
    expected: f64,
}

impl Running {
    fn due(&self) -> f64 {
        self.done.min(self.expected)
    }

    /// Seconds alone that it still needs.
    fn left(&self, now: f64) -> f64 {
        if now < self.since {
            return self.left;
        }
        (self.left - (now - self.since) / self.pace).max(0.0)
    }
}

/// The running jobs.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    running: HashMap<u64, Running>,
    /// (time, order of start, request); one whose time is no longer that job's is passed over.
    due: BinaryHeap<Reverse<(Time, usize, u64)>>,
}

impl Ends {
    pub fn len(&self) -> usize {
        self.running.len()
    }

    pub fn begin(&mut self, job: Begun, now: f64) {
        let running = Running {
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

    /// From now on the job needs `pace` seconds for one second alone.
    pub fn set_pace(&mut self, id: u64, pace: Pace, now: f64) {
        // One that keeps its pace ends when it would have, to the bit.
        let changed = |running: &&mut Running| running.pace.to_bits() != pace.to_bits();
        let Some(running) = self.running.get_mut(&id).filter(changed) else { return };
        running.left = running.left(now);
        running.since = running.since.max(now);
        running.pace = pace;
        running.done = running.since + running.left * pace;
        self.due.push(Reverse((Time(running.due()), running.job.order, id)));
    }

    /// The job stands still for `seconds` seconds, in which neither its work nor its walltime goes on.
    pub fn pause(&mut self, id: u64, seconds: f64, now: f64) {
        let Some(running) = self.running.get_mut(&id) else { return };
        running.left = running.left(now);
        running.since = running.since.max(now) + seconds;
        running.done = running.since + running.left * running.pace;
        running.expected += seconds;
        self.due.push(Reverse((Time(running.due()), running.job.order, id)));
    }

    /// Seconds alone that the job has done.
    pub fn done(&self, id: u64, now: f64) -> f64 {
        self.running.get(&id).map_or(0.0, |running| running.job.alone - running.left(now))
    }

    /// Seconds for which the job still stands still.
    pub fn paused(&self, id: u64, now: f64) -> f64 {
        self.running.get(&id).map_or(0.0, |running| (running.since - now).max(0.0))
    }

    /// The job ends before its time.
    pub fn interrupt(&mut self, id: u64) {
        self.running.remove(&id);
    }

    /// When something is due next.
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

    /// Takes what is due by `now`, in order of time and start.
    pub fn pop(&mut self, now: f64) -> Option<Due> {
        if self.next()? > now {
            return None;
        }
        let Reverse((_, _, id)) = self.due.pop()?;
        let running = self.running.get_mut(&id)?;
        // One that was interrupted and has started again may be due at the same time as before.
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
