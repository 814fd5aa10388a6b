//! The simulated hypervisor, for Python.

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use topolane_gang::hypervisor::{self as engine, Length, Setup, SwitchCosts, Task, ThreadWorkload};
use topolane_gang::{GANG_POLICIES, SliceLimits, gang_policy};

use crate::answering::answering;
use crate::error::bad_input;

/// A job for `simulate_gangs`. Immutable.
#[pyclass(frozen, from_py_object, module = "topolane._engine")]
#[derive(Clone)]
pub struct GangJob {
    task: Task,
}

#[pymethods]
impl GangJob {
    #[new]
    #[pyo3(signature = (kind, threads, *, iterations=None, seconds=None, iteration=0.1, interval=1e-3, spin=false, imbalance=0.0, coarse=0.01, tasks=16, fine=0.01, spread=0.0, wait=0.0, weight=1.0, arrival=0.0, delays=Vec::new(), seed=0))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        kind: &str,
        threads: usize,
        iterations: Option<u64>,
        seconds: Option<f64>,
        iteration: f64,
        interval: f64,
        spin: bool,
        imbalance: f64,
        coarse: f64,
        tasks: u32,
        fine: f64,
        spread: f64,
        wait: f64,
        weight: f64,
        arrival: f64,
        delays: Vec<f64>,
        seed: u64,
    ) -> PyResult<Self> {
        let workload = match kind {
            "independent" => ThreadWorkload::Independent { iteration },
            "barrier" => ThreadWorkload::Barrier { interval, spin, imbalance },
            "coevp" => ThreadWorkload::Coevp { coarse, tasks, fine, spread, wait },
            _ => {
                let kinds = "there are independent, barrier, coevp";
                return Err(bad_input(format!("no workload is called {kind:?}; {kinds}")));
            }
        };
        let length = match (iterations, seconds) {
            (Some(iterations), None) => Length::Iterations(iterations),
            (None, Some(seconds)) => Length::Seconds(seconds),
            _ => return Err(bad_input("a job needs one of iterations and seconds")),
        };
        Ok(GangJob { task: Task { threads, weight, arrival, delays, workload, length, seed } })
    }
}

/// The results of a simulation of gangs.
#[pyclass(frozen, module = "topolane._engine")]
pub struct GangOutcome {
    outcome: engine::GangOutcome,
}

/// The results of one job.
#[pyclass(frozen, module = "topolane._engine")]
pub struct GangJobOutcome {
    job: engine::GangJobOutcome,
}

#[pymethods]
impl GangOutcome {
    /// The results of the jobs, in the order given.
    #[getter]
    fn jobs(&self) -> Vec<GangJobOutcome> {
        self.outcome.jobs.iter().map(|job| GangJobOutcome { job: job.clone() }).collect()
    }

    /// The simulated seconds.
    #[getter]
    fn seconds(&self) -> f64 {
        self.outcome.seconds
    }

    /// The number of switches between slices that changed which jobs may run.
    #[getter]
    fn switches(&self) -> u64 {
        self.outcome.switches
    }

    /// (start, end, core, job, thread) of every time span on a core.
    #[getter]
    fn timeline(&self) -> Vec<(f64, f64, usize, usize, usize)> {
        let ran = self.outcome.spells.iter().filter(|spell| spell.ran);
        ran.map(|spell| (spell.start, spell.end, spell.core, spell.job, spell.thread)).collect()
    }

    /// (start, first jobs, fillers) of every slice.
    #[getter]
    fn slices(&self) -> Vec<(f64, Vec<usize>, Vec<usize>)> {
        self.outcome
            .slices
            .iter()
            .map(|run| (run.start, run.first.clone(), run.fillers.clone()))
            .collect()
    }
}

#[pymethods]
impl GangJobOutcome {
    /// When the last thread of the job ended; None if it has not.
    #[getter]
    fn finished(&self) -> Option<f64> {
        self.job.finished
    }

    /// For each thread, when each iteration ended.
    #[getter]
    fn ends<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyArray1<f64>>> {
        self.job.ends.iter().map(|ends| ends.clone().into_pyarray(py)).collect()
    }

    /// The number of iterations of the slowest thread.
    #[getter]
    fn iterations(&self) -> usize {
        self.job.ends.iter().map(Vec::len).min().unwrap_or(0)
    }

    /// Thread-seconds on a core.
    #[getter]
    fn ran(&self) -> f64 {
        self.job.ran
    }

    /// Thread-seconds ready for a core.
    #[getter]
    fn ready(&self) -> f64 {
        self.job.ready
    }

    /// Thread-seconds blocked.
    #[getter]
    fn blocked(&self) -> f64 {
        self.job.blocked
    }

    /// Thread-seconds stopped.
    #[getter]
    fn stopped(&self) -> f64 {
        self.job.stopped
    }
}

/// (name, summary) of every built-in gang policy.
#[pyfunction]
pub fn gang_policies() -> Vec<(&'static str, &'static str)> {
    GANG_POLICIES.iter().map(|info| (info.name, info.summary)).collect()
}

/// Simulates jobs on cores under a gang policy.
#[pyfunction]
#[pyo3(signature = (jobs, cores, policy, seconds, *, slice=None, shortest=None, longest=None, delay=None, overhead=None, context_switch=None, slice_switch=None, wake_up=None, background=0.0, seed=0, timeline=false))]
#[allow(clippy::too_many_arguments)]
pub fn simulate_gangs(
    py: Python<'_>,
    jobs: Vec<GangJob>,
    cores: usize,
    policy: &str,
    seconds: f64,
    slice: Option<f64>,
    shortest: Option<f64>,
    longest: Option<f64>,
    delay: Option<f64>,
    overhead: Option<f64>,
    context_switch: Option<f64>,
    slice_switch: Option<f64>,
    wake_up: Option<f64>,
    background: f64,
    seed: u64,
    timeline: bool,
) -> PyResult<GangOutcome> {
    let names = || GANG_POLICIES.iter().map(|info| info.name).collect::<Vec<_>>().join(", ");
    let mut policy = gang_policy(policy).ok_or_else(|| {
        bad_input(format!("no gang policy is called {policy:?}; there are {}", names()))
    })?;
    let usual = SliceLimits::default();
    let limits = SliceLimits {
        slice,
        shortest: shortest.unwrap_or(usual.shortest),
        longest: longest.unwrap_or(usual.longest),
        delay: delay.unwrap_or(usual.delay),
        overhead: overhead.unwrap_or(usual.overhead),
        ..usual
    };
    let usual = SwitchCosts::default();
    let costs = SwitchCosts {
        context_switch: context_switch.unwrap_or(usual.context_switch),
        slice_switch: slice_switch.unwrap_or(usual.slice_switch),
        wake_up: wake_up.unwrap_or(usual.wake_up),
    };
    let jobs = jobs.into_iter().map(|job| job.task).collect();
    let setup = Setup { jobs, cores, seconds, limits, costs, background, seed, timeline };
    let outcome = answering(py, move || engine::simulate(&setup, policy.as_mut()))?;
    let outcome = outcome.map_err(|error| bad_input(error.to_string()))?;
    Ok(GangOutcome { outcome })
}
