//! Threads, cores and jobs as the scheduler sees them.

use super::core_set::CoreSet;
use super::program::Program;
use super::time::{NEVER, Nanos};

/// What a thread is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// On a core.
    Running,
    /// In a core's queue.
    Ready,
    /// Waiting for something other than a core.
    Blocked,
    /// Able to run, its job not let run.
    Stopped,
    /// Gone.
    Ended,
}

/// Which of ready threads go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Without credits.
    Over,
    /// With credits.
    Under,
    /// Awake since the last tick that found it running.
    Boost,
}

/// How a job is let run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Behind first ones.
    Filler,
    /// Before fillers.
    First,
}

/// A thread.
pub struct Thread {
    pub job: usize,
    /// Its number in its job.
    pub index: usize,
    pub state: State,
    /// Since when it is in this state.
    pub entered: Nanos,
    /// Since when its time in this state is not counted.
    pub counted: Nanos,
    /// Nanoseconds in each state.
    pub spent: [Nanos; 4],
    /// The core it is on, in whose queue it is, or was last; `NOWHERE` before.
    pub core: usize,
    /// Computing left until its program goes on.
    pub work: Nanos,
    /// From when it computes, while it runs: the switch to it takes until then.
    pub from: Nanos,
    /// Whether it waits for the others of its job.
    pub waiting: bool,
    /// Whether it does so on a core.
    pub spinning: bool,
    pub priority: Priority,
    /// Nanoseconds of a core.
    pub credit: f64,
    /// Until when it has paid, while it runs.
    pub paid: Nanos,
    /// Whether it takes part when credits are given out.
    pub active: bool,
    pub ends: Vec<f64>,
}

/// No core yet.
pub const NOWHERE: usize = usize::MAX;

impl Thread {
    pub fn new(job: usize, index: usize, now: Nanos) -> Self {
        Thread {
            job,
            index,
            state: State::Stopped,
            entered: now,
            counted: now,
            spent: [0; 4],
            core: NOWHERE,
            work: 0,
            from: 0,
            waiting: false,
            spinning: false,
            priority: Priority::Under,
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
    /// Who was on it last.
    pub last: Option<usize>,
    /// By rank, among equals by who came first.
    pub queue: Vec<usize>,
    /// Until when the current thread may run.
    pub turn: Nanos,
    /// Where its own clock stands: cores do not tick together.
    pub offset: Nanos,
}

/// A job, or the host's own work.
pub struct Run {
    pub threads: std::ops::Range<usize>,
    pub weight: f64,
    pub arrived: Nanos,
    pub class: Option<Class>,
    /// Ascending.
    pub cores: Vec<usize>,
    /// The same.
    pub allowed: CoreSet,
    /// Whether each thread has one core of these to itself.
    pub pinned: bool,
    pub program: Program,
    pub living: usize,
    pub finished: Option<Nanos>,
    pub given: CpuAccount,
}

/// How long a job was let run, and what it did with it.
#[derive(Default)]
pub struct CpuAccount {
    /// Nanoseconds of slices in which it was let run, until `since`.
    pub clock: Nanos,
    pub since: Nanos,
    /// Of these since the policy was asked, as a first one.
    pub first: Nanos,
    /// Thread-nanoseconds on a core as a first one, since then.
    pub ran: Nanos,
    /// And ready.
    pub ready: Nanos,
}

impl Run {
    /// Whether its thread of that number may run on a core.
    pub fn allows(&self, index: usize, core: usize) -> bool {
        if self.pinned { self.cores[index] == core } else { self.allowed.contains(core) }
    }

    /// How long it was let run, as far as `now`.
    pub fn clock(&self, now: Nanos) -> Nanos {
        self.given.clock + if self.class.is_some() { now - self.given.since } else { 0 }
    }

    /// Counts its slice as far as `now`.
    pub fn count(&mut self, now: Nanos) {
        self.given.clock = self.clock(now);
        if self.class == Some(Class::First) {
            self.given.first += now - self.given.since;
        }
        self.given.since = now;
    }
}

impl Core {
    pub fn new(offset: Nanos) -> Self {
        Core { current: None, last: None, queue: Vec::new(), turn: NEVER, offset }
    }

    /// The first instant after `now` of its own clock, which strikes every `period`.
    pub fn strike(&self, period: Nanos, now: Nanos) -> Nanos {
        let offset = self.offset % period;
        now + period - (now + period - offset) % period
    }
}
