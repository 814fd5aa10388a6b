//! Threads, cores and jobs, as the scheduler sees them.

use super::core_set::CoreSet;
use super::program::ThreadProgram;
use super::time::{NEVER, Nanos};

/// The state of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadState {
    /// The thread is on a core.
    Running,
    /// The thread is in a core's queue.
    Ready,
    /// The thread waits for something other than a core.
    Blocked,
    /// The thread could run, but its job is stopped.
    Stopped,
    /// The thread has ended.
    Ended,
}

/// The priority of a ready thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThreadPriority {
    /// The thread has no credits.
    Over,
    /// The thread has credits.
    Under,
    /// The thread woke up, and no tick has found it running since.
    Boost,
}

/// The class in which a job may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobClass {
    /// Behind first jobs.
    Filler,
    /// Before fillers.
    First,
}

/// A thread.
pub struct Thread {
    pub job: usize,
    /// The number of the thread in its job.
    pub index: usize,
    pub state: ThreadState,
    /// When the thread entered this state.
    pub entered: Nanos,
    /// The time up to which its time in this state is counted.
    pub counted: Nanos,
    /// Nanoseconds spent in each state.
    pub spent: [Nanos; 4],
    /// The core on which it runs, in whose queue it waits, or where it was last; `NOWHERE` before.
    pub core: usize,
    /// Computing time left until the next step of its program.
    pub work: Nanos,
    /// When the thread starts to compute, while it is on a core: the switch to it takes until then.
    pub from: Nanos,
    /// Whether the thread waits for other threads of its job.
    pub waiting: bool,
    /// Whether the thread waits by spinning on a core.
    pub spinning: bool,
    pub priority: ThreadPriority,
    /// Credits, in nanoseconds of a core.
    pub credit: f64,
    /// The time up to which it has paid, while it runs.
    pub paid: Nanos,
    /// Whether the thread gets credits at the next accounting.
    pub active: bool,
    pub ends: Vec<f64>,
}

/// The core of a thread that has not had one yet.
pub const NOWHERE: usize = usize::MAX;

impl Thread {
    pub fn new(job: usize, index: usize, now: Nanos) -> Self {
        Thread {
            job,
            index,
            state: ThreadState::Stopped,
            entered: now,
            counted: now,
            spent: [0; 4],
            core: NOWHERE,
            work: 0,
            from: 0,
            waiting: false,
            spinning: false,
            priority: ThreadPriority::Under,
            credit: 0.0,
            paid: now,
            active: false,
            ends: Vec::new(),
        }
    }
}

/// A core.
#[derive(Clone)]
pub struct Core {
    pub current: Option<usize>,
    /// The thread that ran on it last.
    pub last: Option<usize>,
    /// The waiting threads by rank; among equals, first come, first served.
    pub queue: Vec<usize>,
    /// The time until which the current thread may run.
    pub turn: Nanos,
    /// The offset of its clock, because cores do not tick at the same time.
    pub offset: Nanos,
}

/// A job, or the host's own work.
pub struct SimulatedJob {
    pub threads: std::ops::Range<usize>,
    pub weight: f64,
    pub arrived: Nanos,
    pub class: Option<JobClass>,
    /// The cores that it may use, ascending.
    pub cores: Vec<usize>,
    /// The same cores as `cores`, as a set.
    pub allowed: CoreSet,
    /// Whether each thread has one of these cores to itself.
    pub pinned: bool,
    pub program: ThreadProgram,
    pub living: usize,
    pub finished: Option<Nanos>,
    pub given: CpuAccount,
}

/// How long a job was allowed to run, and what it did in that time.
#[derive(Default)]
pub struct CpuAccount {
    /// Nanoseconds of slices in which it was allowed to run, up to `since`.
    pub clock: Nanos,
    pub since: Nanos,
    /// The part of that time as a first job since the policy was last asked.
    pub first: Nanos,
    /// Thread-nanoseconds on a core as a first job since then.
    pub ran: Nanos,
    /// Thread-nanoseconds ready for a core as a first job since then.
    pub ready: Nanos,
}

impl SimulatedJob {
    /// Whether the job's thread with this number may run on a core.
    pub fn allows(&self, index: usize, core: usize) -> bool {
        if self.pinned { self.cores[index] == core } else { self.allowed.contains(core) }
    }

    /// How long the job was allowed to run up to `now`.
    pub fn clock(&self, now: Nanos) -> Nanos {
        self.given.clock + if self.class.is_some() { now - self.given.since } else { 0 }
    }

    /// Counts the job's slice up to `now`.
    pub fn count(&mut self, now: Nanos) {
        self.given.clock = self.clock(now);
        if self.class == Some(JobClass::First) {
            self.given.first += now - self.given.since;
        }
        self.given.since = now;
    }
}

impl Core {
    pub fn new(offset: Nanos) -> Self {
        Core { current: None, last: None, queue: Vec::new(), turn: NEVER, offset }
    }

    /// The first time after `now` at which its own clock strikes, every `period`.
    pub fn strike(&self, period: Nanos, now: Nanos) -> Nanos {
        let offset = self.offset % period;
        now + period - (now + period - offset) % period
    }
}
