//! What is simulated.

use std::fmt;

use super::workload::{Length, Workload};
use crate::limits::Limits;

/// A job to simulate.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Its threads, at least one.
    pub threads: usize,
    /// Its share of the time against the other jobs', more than 0.
    pub weight: f64,
    /// When it comes, seconds.
    pub arrival: f64,
    /// When each thread begins, seconds after that; threads without one begin at once.
    pub delays: Vec<f64>,
    /// What it does.
    pub workload: Workload,
    /// When it ends.
    pub length: Length,
    /// For what it draws at random.
    pub seed: u64,
}

/// What changing threads costs, in seconds of the core that changes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// From one thread to another, by the scheduler.
    pub context_switch: f64,
    /// From one thread to another, at the start of a slice: on Linux, freezing and thawing control groups.
    pub slice_switch: f64,
    /// From the event that a blocked thread waits for until it is ready.
    pub wake_up: f64,
}

impl Default for Costs {
    fn default() -> Self {
        Costs { context_switch: 5e-6, slice_switch: 1e-4, wake_up: 1e-5 }
    }
}

/// A simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// The jobs.
    pub jobs: Vec<Task>,
    /// Cores, 1 to 256.
    pub cores: usize,
    /// How long, seconds.
    pub seconds: f64,
    /// For the policy; `switch` is taken from `costs`.
    pub limits: Limits,
    /// Of changing threads.
    pub costs: Costs,
    /// Share of every core that work of the host itself takes (Xen's dom0), in bursts at random times.
    pub background: f64,
    /// For the clocks of the cores, and the host's work.
    pub seed: u64,
    /// Whether `Outcome::spells` and `Outcome::slices` are kept.
    pub timeline: bool,
}

/// A value that cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupError(String);

impl fmt::Display for SetupError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for SetupError {}

/// The longest time there may be, in seconds: eleven days.
const LONGEST: f64 = 1e6;
/// The shortest iteration, in seconds.
const SHORTEST: f64 = 1e-6;
/// The most threads of all jobs.
const THREADS: usize = 1 << 16;

impl Setup {
    /// Whether all values make sense.
    ///
    /// # Errors
    ///
    /// Names the first that does not.
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
            Workload::Independent { iteration } => {
                within("iteration", iteration, SHORTEST, LONGEST)
            }
            Workload::Barrier { interval, imbalance, .. } => {
                within("interval", interval, SHORTEST, LONGEST)?;
                within("imbalance", imbalance, 0.0, 1.0)
            }
            Workload::Coevp { coarse, tasks, fine, spread, wait } => {
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
