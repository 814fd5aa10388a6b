//! Setups for the tests of the simulated hypervisor.
#![allow(clippy::unwrap_used, dead_code)]

use topolane_gang::hypervisor::{
    GangOutcome, Length, Setup, SwitchCosts, Task, ThreadWorkload, simulate,
};
use topolane_gang::{SliceLimits, gang_policy};

/// The outcome of a setup under the policy of that name.
pub fn run(setup: &Setup, policy: &str) -> GangOutcome {
    simulate(setup, gang_policy(policy).unwrap().as_mut()).unwrap()
}

/// A setup with these jobs, cores and seconds, a timeline, and nothing unusual.
pub fn setup(jobs: Vec<Task>, cores: usize, seconds: f64) -> Setup {
    Setup {
        jobs,
        cores,
        seconds,
        limits: SliceLimits::default(),
        costs: SwitchCosts::default(),
        background: 0.0,
        seed: 1,
        timeline: true,
    }
}

/// A job that is present from the start.
pub fn task(threads: usize, workload: ThreadWorkload, length: Length) -> Task {
    Task { threads, weight: 1.0, arrival: 0.0, delays: Vec::new(), workload, length, seed: 0 }
}

/// A job that outlives every test.
pub fn endless(threads: usize, workload: ThreadWorkload) -> Task {
    task(threads, workload, Length::Seconds(1e5))
}

/// Threads that do equal work between barriers.
pub fn barrier(interval: f64, spin: bool) -> ThreadWorkload {
    ThreadWorkload::Barrier { interval, spin, imbalance: 0.0 }
}
