//! The results of a simulation.

/// The results of a simulation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GangOutcome {
    /// The results of the jobs, in the order given.
    pub jobs: Vec<GangJobOutcome>,
    /// Simulated seconds: fewer than requested if all jobs ended before.
    pub seconds: f64,
    /// Switches between slices that changed which jobs may run.
    pub switches: u64,
    /// Time spans in which threads were on a core or ready, sorted by end; kept only on request. The host's own work is
    /// not included.
    pub spells: Vec<Spell>,
    /// The slices, in order of time; kept only on request.
    pub slices: Vec<SliceRun>,
}

/// The results of one job.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GangJobOutcome {
    /// When the last thread of the job ended, in seconds; `None` if it has not.
    pub finished: Option<f64>,
    /// For each thread, when each iteration ended, in seconds.
    pub ends: Vec<Vec<f64>>,
    /// Thread-seconds on a core, including the costs of switching.
    pub ran: f64,
    /// Thread-seconds ready for a core while the job was allowed to run.
    pub ready: f64,
    /// Thread-seconds waiting for something other than a core.
    pub blocked: f64,
    /// Thread-seconds in which it could have run but was stopped.
    pub stopped: f64,
    /// Thread-seconds from the arrival to the end of each thread, or of the simulation.
    pub lifetime: f64,
}

/// A time span in which a thread was on a core or in its queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spell {
    /// The beginning, in seconds.
    pub start: f64,
    /// The end, in seconds.
    pub end: f64,
    /// The number of the core.
    pub core: usize,
    /// The job, as an index in the order given.
    pub job: usize,
    /// The number of the thread in its job.
    pub thread: usize,
    /// Whether the thread was running; if not, it was ready.
    pub ran: bool,
}

/// One slice. Jobs are indices in the order given.
#[derive(Debug, Clone, PartialEq)]
pub struct SliceRun {
    /// The beginning in seconds. It ends when the next slice begins.
    pub start: f64,
    /// The first jobs.
    pub first: Vec<usize>,
    /// The jobs that ran as fillers.
    pub fillers: Vec<usize>,
    /// The longest that each first job may have waited for the slice, in seconds: `Round::delay`.
    pub delays: Vec<f64>,
}
