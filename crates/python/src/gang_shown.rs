//! What is shown of the Linux agent of gangs to Python.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pyo3::prelude::*;
use topolane_gang::JobId;
use topolane_gang::linux::{Agent, Driver, Entry, Means, Ranking, State, Switch, seconds};

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
    /// From one barrier to the next, where that is counted.
    barrier: Option<f64>,
    /// CPU numbers.
    cores: Vec<usize>,
    /// How it is stopped: freeze, freezer, signals or pause.
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

/// A switch. Times in seconds of `CLOCK_MONOTONIC`. Immutable.
#[pyclass(frozen, get_all, module = "topolane._engine")]
pub struct GangSwitch {
    /// When it was due.
    deadline: f64,
    /// When it began.
    began: f64,
    /// When all calls to the kernel had been made.
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
    /// freeze, freezer, signals or pause
    stopping: &'static str,
    /// cpuset, affinity or pool
    pinning: &'static str,
    /// group, threads or nothing
    ranking: &'static str,
    /// Whether single threads can be moved into groups of the agent's own and stopped there.
    stops_threads: bool,
    /// Whether it has real-time priority.
    real_time: bool,
    /// What is missing and what is done instead: a sentence each.
    missing: Vec<String>,
    /// Its own control groups; those of jobs are below.
    groups: Vec<PathBuf>,
}

/// A job of a driver.
pub fn job(entry: &Entry, driver: &Driver) -> GangHeld {
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
        ready: used.ready.max(0.0),
        blocked: (used.given - used.ran - used.ready).max(0.0),
        cpu: entry.cpu,
        barrier: entry.barriers.map(|barriers| barriers.interval),
        cores: held.map_or_else(Vec::new, |held| held.cores.clone()),
        stopping: held.map(|held| held.control.stopping().name()),
    }
}

/// The slices of a driver.
pub fn round(driver: &Driver) -> GangRound {
    let real = |cores: &Vec<usize>| cores.iter().map(|&core| driver.cores[core]).collect();
    let slices = driver.round.slices.iter();
    GangRound {
        slices: slices.map(|one| (one.seconds, one.first.clone(), one.fillers.clone())).collect(),
        cores: driver.round.cores.iter().map(|(&id, cores)| (id, real(cores))).collect(),
        gangs: driver.round.gangs.clone(),
        now: (driver.slice.first.clone(), driver.slice.fillers.clone()),
    }
}

/// What an agent works with.
pub fn means(agent: &Agent) -> GangMeans {
    let Means { stopping, ranking, hierarchies, missing, xen } = agent.means();
    let mut missing = missing.clone();
    if !agent.real_time() {
        let why = "no real-time priority (CAP_SYS_NICE): under load switches come late";
        missing.push(why.to_owned());
    }
    GangMeans {
        stopping: stopping.name(),
        pinning: match (xen, hierarchies.cpuset) {
            (Some(_), _) => "pool",
            (None, Some(_)) => "cpuset",
            (None, None) => "affinity",
        },
        ranking: match ranking {
            Ranking::Group => "group",
            Ranking::Threads => "threads",
            Ranking::Nothing => "nothing",
        },
        stops_threads: hierarchies.freezer.is_some(),
        real_time: agent.real_time(),
        missing,
        groups: hierarchies.all.iter().map(|one| one.own.clone()).collect(),
    }
}

/// A switch of a driver.
pub fn switch(one: Switch) -> GangSwitch {
    GangSwitch {
        deadline: seconds(one.deadline),
        began: seconds(one.began),
        ended: seconds(one.ended),
        seconds: one.seconds,
        slice: one.slice,
        first: one.first,
        fillers: one.fillers,
    }
}
