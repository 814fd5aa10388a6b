//! The Linux agent of gangs, for Python. Whatever waits lets go of the interpreter.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{PoisonError, RwLock};

use pyo3::prelude::*;
use topolane_gang::JobId;
use topolane_gang::linux::{Agent, Driver, Entry, Means, Ranking, State, Stopping, Who, seconds};

use crate::error::bad_input;
use crate::gang::{GangLimits, policy_of};

/// Runs gangs of real processes. The methods raise `InputError` for what cannot be done.
#[pyclass(frozen, module = "topolane._engine")]
pub struct GangAgent {
    agent: RwLock<Option<Agent>>,
}

/// A job, as it is. Times in seconds, of all its threads together.
#[pyclass(frozen, get_all, module = "topolane._engine")]
pub struct GangHeld {
    id: JobId,
    name: String,
    threads: usize,
    weight: f64,
    /// running, filling, stopped, released, ended or lost
    state: &'static str,
    /// Why it is lost.
    reason: Option<String>,
    /// Threads times seconds of the slices that were measured, in which it was a first job.
    given: f64,
    /// Of those, on a core.
    ran: f64,
    /// Of those, ready without a core.
    ready: f64,
    /// Of those, neither.
    blocked: f64,
    /// On a core, all in all.
    cpu: f64,
    /// CPU numbers.
    cores: Vec<usize>,
    /// How it is stopped: freeze, freezer or signals.
    stopping: Option<&'static str>,
}

/// The slices now. Immutable.
#[pyclass(frozen, get_all, module = "topolane._engine")]
pub struct GangRound {
    /// (seconds, first jobs, fillers) of every slice.
    slices: Vec<(f64, Vec<JobId>, Vec<JobId>)>,
    /// CPU numbers of every job.
    cores: BTreeMap<JobId, Vec<usize>>,
    /// Jobs whose threads are kept together.
    gangs: Vec<JobId>,
    /// (first jobs, fillers) that run now.
    now: (Vec<JobId>, Vec<JobId>),
}

/// A switch. Times in seconds of CLOCK_MONOTONIC. Immutable.
#[pyclass(frozen, get_all, module = "topolane._engine")]
pub struct GangSwitch {
    /// When it was due.
    deadline: f64,
    /// When it began.
    began: f64,
    /// When the kernel had been told all.
    ended: f64,
    /// How long the slice is.
    seconds: f64,
    /// Its place in the round.
    slice: usize,
    /// Its first jobs.
    first: Vec<JobId>,
    /// Its fillers.
    fillers: Vec<JobId>,
}

/// What the agent works with. Immutable.
#[pyclass(frozen, get_all, module = "topolane._engine")]
pub struct GangMeans {
    /// freeze, freezer or signals
    stopping: &'static str,
    /// cpuset or affinity
    pinning: &'static str,
    /// group, threads or nothing
    ranking: &'static str,
    /// Whether it has real-time priority.
    real_time: bool,
    /// What is missing and what is done instead: a sentence each.
    missing: Vec<String>,
    /// Its own control groups; those of jobs are below.
    groups: Vec<PathBuf>,
}

#[pymethods]
impl GangAgent {
    #[new]
    #[pyo3(signature = (policy, cores, limits, *, switch_by=None, alive=None))]
    fn new(
        py: Python<'_>,
        policy: &str,
        cores: Vec<usize>,
        limits: &GangLimits,
        switch_by: Option<&str>,
        alive: Option<PathBuf>,
    ) -> PyResult<Self> {
        let policy = policy_of(policy)?;
        let way = |name: &str| {
            let known = Stopping::ALL.into_iter().find(|way| way.name() == name);
            known.ok_or_else(|| {
                bad_input(format!("{name:?} is no way to switch: freeze, freezer or signals"))
            })
        };
        let stopping = switch_by.map(way).transpose()?;
        let limits = limits.into();
        let agent = py.detach(|| {
            let means = Means::find(stopping, cores.len())?;
            Agent::start(policy, limits, cores, means, alive)
        });
        Ok(GangAgent { agent: RwLock::new(Some(agent.map_err(bad_input)?)) })
    }

    /// Takes processes, with all that descend from them, or single threads. Returns the job's number.
    #[pyo3(signature = (name, *, processes=None, tids=None, threads=1, weight=1.0))]
    fn add(
        &self,
        py: Python<'_>,
        name: &str,
        processes: Option<Vec<i32>>,
        tids: Option<Vec<i32>>,
        threads: usize,
        weight: f64,
    ) -> PyResult<JobId> {
        if threads == 0 || threads > 1 << 20 {
            let why = format!("job {name}: threads must be from 1 to 1048576, not {threads}");
            return Err(bad_input(why));
        }
        if !(weight > 0.0 && weight.is_finite()) {
            let why = format!("job {name}: weight must be a number above 0, not {weight}");
            return Err(bad_input(why));
        }
        let who = match (processes, tids) {
            (Some(processes), None) => Who::Processes(processes),
            (None, Some(tids)) => Who::Threads(tids),
            _ => return Err(bad_input(format!("job {name}: give either processes or threads"))),
        };
        let taken = self.with(py, |agent| agent.add(name, &who, threads, weight));
        taken.map_err(|why| bad_input(format!("job {name}: {why}")))
    }

    /// Lets a job run outside all slices from now on.
    fn release(&self, py: Python<'_>, id: JobId) -> PyResult<()> {
        self.with(py, |agent| agent.release(id)).map_err(bad_input)
    }

    /// Sends a signal to all processes of a job.
    fn signal(&self, py: Python<'_>, id: JobId, number: i32) -> PyResult<()> {
        self.with(py, |agent| agent.signal(id, number)).map_err(bad_input)
    }

    /// Lets a job run, removes its groups and forgets it.
    fn forget(&self, py: Python<'_>, id: JobId) -> PyResult<()> {
        self.with(py, |agent| agent.forget(id)).map_err(bad_input)
    }

    /// All jobs that were not forgotten.
    fn jobs(&self, py: Python<'_>) -> PyResult<Vec<GangHeld>> {
        let shown =
            |driver: &mut Driver| driver.jobs.values().map(|entry| job(entry, driver)).collect();
        self.with(py, |agent| agent.ask(shown)).map_err(bad_input)
    }

    /// The slices now.
    fn round(&self, py: Python<'_>) -> PyResult<GangRound> {
        self.with(py, |agent| agent.ask(|driver| round(driver))).map_err(bad_input)
    }

    /// The last switches, the latest at the end.
    #[pyo3(signature = (most=4096))]
    fn switches(&self, py: Python<'_>, most: usize) -> PyResult<Vec<GangSwitch>> {
        let last = self.with(py, |agent| agent.ask(move |driver| driver.switches.last(most)));
        let shown = |one: topolane_gang::linux::Switch| GangSwitch {
            deadline: seconds(one.deadline),
            began: seconds(one.began),
            ended: seconds(one.ended),
            seconds: one.seconds,
            slice: one.slice,
            first: one.first,
            fillers: one.fillers,
        };
        Ok(last.map_err(bad_input)?.into_iter().map(shown).collect())
    }

    /// What it works with.
    fn means(&self, py: Python<'_>) -> PyResult<GangMeans> {
        self.with(py, |agent| Ok(means(agent))).map_err(bad_input)
    }

    /// Ends: all jobs run from now on as if it had never been.
    fn close(&self, py: Python<'_>) {
        let agent = || self.agent.write().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(agent()));
    }
}

impl GangAgent {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        action: impl FnOnce(&Agent) -> Result<T, String> + Send,
    ) -> Result<T, String> {
        py.detach(|| {
            let agent = self.agent.read().unwrap_or_else(PoisonError::into_inner);
            action(agent.as_ref().ok_or("the agent has ended")?)
        })
    }
}

fn job(entry: &Entry, driver: &Driver) -> GangHeld {
    let used = entry.used;
    let held = entry.held.as_ref();
    let state = match &entry.state {
        State::Scheduled if held.is_none_or(|held| held.stopped) => "stopped",
        State::Scheduled if driver.slice.fillers.contains(&entry.id) => "filling",
        State::Scheduled => "running",
        State::Released => "released",
        State::Ended => "ended",
        State::Lost(_) => "lost",
    };
    let reason = match &entry.state {
        State::Lost(reason) => Some(reason.clone()),
        _ => None,
    };
    GangHeld {
        id: entry.id,
        name: entry.name.clone(),
        threads: entry.threads,
        weight: entry.weight,
        state,
        reason,
        given: used.given,
        ran: used.ran,
        ready: used.ready,
        blocked: (used.given - used.ran - used.ready).max(0.0),
        cpu: entry.cpu,
        cores: held.map_or_else(Vec::new, |held| held.cores.clone()),
        stopping: held.map(|held| held.stopping().name()),
    }
}

fn round(driver: &Driver) -> GangRound {
    let real = |cores: &Vec<usize>| cores.iter().map(|&core| driver.cores[core]).collect();
    let slices = driver.round.slices.iter();
    GangRound {
        slices: slices.map(|one| (one.seconds, one.first.clone(), one.fillers.clone())).collect(),
        cores: driver.round.cores.iter().map(|(&id, cores)| (id, real(cores))).collect(),
        gangs: driver.round.gangs.clone(),
        now: (driver.slice.first.clone(), driver.slice.fillers.clone()),
    }
}

fn means(agent: &Agent) -> GangMeans {
    let Means { stopping, ranking, hierarchies, missing } = agent.means();
    let mut missing = missing.clone();
    if !agent.real_time() {
        let why = "no real-time priority (CAP_SYS_NICE): under load switches come late";
        missing.push(why.to_owned());
    }
    GangMeans {
        stopping: stopping.name(),
        pinning: if hierarchies.cpuset.is_some() { "cpuset" } else { "affinity" },
        ranking: match ranking {
            Ranking::Group => "group",
            Ranking::Threads => "threads",
            Ranking::Nothing => "nothing",
        },
        real_time: agent.real_time(),
        missing,
        groups: hierarchies.all.iter().map(|one| one.own.clone()).collect(),
    }
}
