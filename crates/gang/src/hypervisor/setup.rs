//! The input of a simulation.

use std::fmt;

use super::workload::{Length, ThreadWorkload};
use crate::limits::SliceLimits;

/// A job to simulate.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// The number of threads; at least one.
    pub threads: usize,
    /// The weight of the job when time is divided among jobs; above 0.
    pub weight: f64,
    /// The arrival time in seconds.
    pub arrival: f64,
    /// For each thread, when it begins, in seconds after the arrival. Threads without an entry begin at once.
    pub delays: Vec<f64>,
    /// What the job does.
    pub workload: ThreadWorkload,
    /// When the job ends.
    pub length: Length,
    /// The seed of its random numbers.
    pub seed: u64,
}

/// The costs of changing threads, in seconds of the core.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SwitchCosts {
    /// Switching between threads, by the scheduler.
    pub context_switch: f64,
    /// Switching between threads at the start of a slice; on Linux, freezing and thawing control groups.
    pub slice_switch: f64,
    /// The time from the event that a blocked thread waits for until the thread is ready.
    pub wake_up: f64,
}

impl Default for SwitchCosts {
    fn default() -> Self {
        SwitchCosts { context_switch: 5e-6, slice_switch: 1e-4, wake_up: 1e-5 }
    }
}

/// The input of a simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// The jobs.
    pub jobs: Vec<Task>,
    /// The number of cores, 1 to 256.
    pub cores: usize,
    /// The duration in seconds.
    pub seconds: f64,
    /// Limits for the policy; `switch` is replaced by the value in `costs`.
    pub limits: SliceLimits,
    /// The costs of changing threads.
    pub costs: SwitchCosts,
    /// The share of every core that the host's own work takes (Xen's dom0), in bursts at random times.
    pub background: f64,
    /// The seed for the clocks of the cores and for the host's work.
    pub seed: u64,
    /// Whether to keep `GangOutcome::spells` and `GangOutcome::slices`.
    pub timeline: bool,
}

/// The error for a value that cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupError(String);

impl fmt::Display for SetupError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for SetupError {}

/// The longest time in seconds: eleven days.
const LONGEST: f64 = 1e6;
/// The shortest iteration in seconds.
const SHORTEST: f64 = 1e-6;
/// The most threads of all jobs together.
const THREADS: usize = 1 << 16;

impl Setup {
    /// Checks that all values make sense.
    ///
    /// # Errors
    ///
    /// Names the first one that does not.
    pub fn check(&self) -> Result<(), SetupError> {
        if self.cores == 0 || self.cores > 256 {
            return refuse("cores", "a number from 1 to 256", self.cores);
        }
        within("seconds", self.seconds, SHORTEST, LONGEST)?;
        within("background", self.background, 0.0, 0.9)?;
        let costs = &self.costs;
        within("context_switch", costs.context_switch, 0.0, 1.0)?;
        within("slice_switch", costs.slice_switch, 0.0, 1.0)?;
        within("wake_up", costs.wake_up, 0.0, 1.0)?;
        self.limits.slice.map_or(Ok(()), |slice| within("slice", slice, SHORTEST, LONGEST))?;
        within("shortest", self.limits.shortest, SHORTEST, LONGEST)?;
        within("longest", self.limits.longest, self.limits.shortest, LONGEST)?;
        within("delay", self.limits.delay, SHORTEST, LONGEST)?;
        within("overhead", self.limits.overhead, SHORTEST, 1.0)?;
        if self.jobs.iter().map(|job| job.threads.min(THREADS)).sum::<usize>() > THREADS {
            return refuse("threads", "at most 65536 over all jobs", "more");
        }
        for (at, job) in self.jobs.iter().enumerate() {
            job.check().map_err(|SetupError(why)| SetupError(format!("job {at}: {why}")))?;
        }
        Ok(())
    }
}

impl Task {
    fn check(&self) -> Result<(), SetupError> {
        if self.threads == 0 {
            return refuse("threads", "at least 1", 0);
        }
        within("weight", self.weight, 1e-6, 1e6)?;
        within("arrival", self.arrival, 0.0, LONGEST)?;
        if self.delays.len() > self.threads {
            return refuse("delays", "at most one for each thread", self.delays.len());
        }
        for &delay in &self.delays {
            within("delay", delay, 0.0, LONGEST)?;
        }
        match self.length {
            Length::Iterations(0) => return refuse("iterations", "at least 1", 0),
            Length::Iterations(_) => {}
            Length::Seconds(seconds) => within("seconds", seconds, SHORTEST, LONGEST)?,
        }
        match self.workload {
            ThreadWorkload::Independent { iteration } => {
                within("iteration", iteration, SHORTEST, LONGEST)
            }
            ThreadWorkload::Barrier { interval, imbalance, .. } => {
                within("interval", interval, SHORTEST, LONGEST)?;
                within("imbalance", imbalance, 0.0, 1.0)
            }
            ThreadWorkload::Coevp { coarse, tasks, fine, spread, wait } => {
                within("coarse", coarse, 0.0, LONGEST)?;
                if tasks == 0 {
                    return refuse("tasks", "at least 1", 0);
                }
                within("fine", fine, SHORTEST, LONGEST)?;
                within("spread", spread, 0.0, 3.0)?;
                within("wait", wait, 0.0, LONGEST)
            }
        }
    }
}

fn within(what: &str, value: f64, least: f64, most: f64) -> Result<(), SetupError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    refuse(what, &format!("a number from {least} to {most}"), value)
}

fn refuse(what: &str, wanted: &str, value: impl fmt::Display) -> Result<(), SetupError> {
    Err(SetupError(format!("{what} must be {wanted}, not {value}")))
}
