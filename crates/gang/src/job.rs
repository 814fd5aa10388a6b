//! Jobs, as gang policies see them.

/// The number of a job. Jobs that arrived earlier have lower numbers.
pub type JobId = u64;

/// A job whose threads should run at the same time.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedJob {
    /// The number of the job.
    pub id: JobId,
    /// The number of computing threads; at least one.
    pub threads: usize,
    /// The weight of the job when time is divided among jobs; above 0.
    pub weight: f64,
    /// Whether the job can run behind other jobs, as a filler.
    pub fills: bool,
    /// What was measured of it so far.
    pub seen: Observation,
}

/// What a driver has measured of a job. `None`: not known yet, or cannot be measured.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Observation {
    /// The share of time for which its threads were blocked while the job was allowed to run, 0 to 1. Time in which
    /// they were ready without a core is not counted, so that the share does not depend on other jobs.
    pub blocked: Option<f64>,
    /// The barriers of the job.
    pub barriers: Option<Barriers>,
}

/// The barriers of a job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Barriers {
    /// Seconds between two barriers, while the job was allowed to run.
    pub interval: f64,
    /// The median time in seconds from the first thread's arrival to the last one's.
    pub skew: f64,
}
