//! Jobs as a gang policy sees them.

/// A job's number: lower ones came earlier.
pub type JobId = u64;

/// A job: threads that want to run at once.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Its number.
    pub id: JobId,
    /// Threads that compute, at least one.
    pub threads: usize,
    /// Its share of the time against the other jobs', more than 0.
    pub weight: f64,
    /// Whether it can run behind other jobs, as a filler.
    pub fills: bool,
    /// What was measured of it so far.
    pub seen: Observation,
}

/// What a driver measured of a job. `None` is "not known yet" or "cannot be known here".
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Observation {
    /// Share of the time that its threads were blocked while the job was let run, 0 to 1. Time in which they were
    /// ready without a core is not counted, so that the share does not depend on other jobs.
    pub blocked: Option<f64>,
    /// Its barriers.
    pub barriers: Option<Barriers>,
}

/// How a job's threads meet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Barriers {
    /// Seconds from one barrier to the next, while the job was let run.
    pub interval: f64,
    /// Seconds from the first thread's arrival to the last one's, the median.
    pub skew: f64,
}
