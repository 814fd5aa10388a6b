//! What a simulation says.

/// What became of the jobs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// In the order given.
    pub jobs: Vec<JobOutcome>,
    /// Seconds that were simulated: less than asked for where all jobs ended before.
    pub seconds: f64,
    /// Switches from one slice to another that changed who may run.
    pub switches: u64,
    /// When threads were on a core or ready for one, by their ends; kept when asked for. The host's own
    /// work is not among them.
    pub spells: Vec<Spell>,
    /// The slices that ran, in order of time; kept when asked for.
    pub slices: Vec<SliceRun>,
}

/// What became of a job.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobOutcome {
    /// When its last thread ended, seconds; `None` where it had not.
    pub finished: Option<f64>,
    /// When each of its threads ended each iteration, seconds.
    pub ends: Vec<Vec<f64>>,
    /// Thread-seconds on a core, costs of switching included.
    pub ran: f64,
    /// Thread-seconds ready for a core while the job was let run.
    pub ready: f64,
    /// Thread-seconds waiting for something other than a core.
    pub blocked: f64,
    /// Thread-seconds that it could have run but was not let.
    pub stopped: f64,
    /// Thread-seconds from arrival to the ends of its threads, or of the simulation.
    pub lifetime: f64,
}

/// A thread on a core, or in its queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spell {
    /// Its start, seconds.
    pub start: f64,
    /// Its end, seconds.
    pub end: f64,
    /// The core.
    pub core: usize,
    /// The job, by its place in the order given.
    pub job: usize,
    /// The thread's number in its job.
    pub thread: usize,
    /// Whether it ran; else it was ready.
    pub ran: bool,
}

/// A slice that ran. Jobs by their place in the order given.
#[derive(Debug, Clone, PartialEq)]
pub struct SliceRun {
    /// Its start, seconds; its end is the next one's start.
    pub start: f64,
    /// Who ran.
    pub first: Vec<usize>,
    /// Who ran behind them.
    pub fillers: Vec<usize>,
    /// The longest that each first job may have waited for it, seconds: `Round::delay`.
    pub delays: Vec<f64>,
}
