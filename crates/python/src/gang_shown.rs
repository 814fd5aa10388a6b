//! The state of the Linux agent of gangs, as shown to Python.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pyo3::prelude::*;
use topolane_gang::JobId;
use topolane_gang::linux::{
    Agent, Driver, JobRecord, JobState, Means, Ranking, SliceSwitch, seconds,
};

/// A job of the agent. Times are in seconds, summed over its threads.
#[pyclass(frozen, get_all, module = "topolane._engine")]
pub struct GangHeld {
    id: JobId,
    name: String,
    threads: usize,
    weight: f64,
    /// running, filling, stopped, released, ended or lost.
    state: &'static str,
    /// Why the job is lost; None if it is not.
    reason: Option<String>,
    /// Threads times seconds of the measured slices in which it was a first job.
    given: f64,
    /// The part of `given` on a core.
    ran: f64,
    /// The part of `given` ready for a core.
    ready: f64,
    /// The part of `given` in which it was neither.
    blocked: f64,
    /// Total time on cores.
    cpu: f64,
    /// The time between two barriers; None if they are not counted.
    barrier: Option<f64>,
    /// The CPU numbers to which it is restricted.
    cores: Vec<usize>,
    /// The method to stop it: freeze, freezer, signals or pause.
    stopping: Option<&'static str>,
}

/// The current round of slices. Immutable.
#[pyclass(frozen, get_all, module = "topolane._engine")]
pub struct GangRound {
    /// (seconds, first jobs, fillers) of every slice.
    slices: Vec<(f64, Vec<JobId>, Vec<JobId>)>,
    /// The CPU numbers of every job.
    cores: BTreeMap<JobId, Vec<usize>>,
    /// Jobs whose threads are kept together.
    gangs: Vec<JobId>,
    /// The jobs that run now: (first jobs, fillers).
    now: (Vec<JobId>, Vec<JobId>),
}

/// A switch between slices. Times are in seconds of `CLOCK_MONOTONIC`. Immutable.
#[pyclass(frozen, get_all, module = "topolane._engine")]
pub struct GangSwitch {
    /// When the switch was due.
    deadline: f64,
    /// When the switch began.
    began: f64,
    /// When all system calls of the switch had returned.
    ended: f64,
    /// The length of the slice.
    seconds: f64,
    /// The index of the slice in the round.
    slice: usize,
    /// The first jobs of the slice.
    first: Vec<JobId>,
    /// The fillers of the slice.
    fillers: Vec<JobId>,
}

/// How the agent stops jobs, keeps them on cores and ranks fillers. Immutable.
#[pyclass(frozen, get_all, module = "topolane._engine")]
pub struct GangMeans {
    /// The method to stop jobs: freeze, freezer, signals or pause.
    stopping: &'static str,
    /// The method to restrict jobs to cores: cpuset, affinity or pool.
    pinning: &'static str,
    /// The method to rank fillers: group, threads or nothing.
    ranking: &'static str,
    /// Whether single threads can be moved into groups of the agent and stopped there.
    stops_threads: bool,
    /// Whether the agent has real-time priority.
    real_time: bool,
    /// What is missing and what is done instead, a sentence each.
    missing: Vec<String>,
    /// The agent's own control groups; those of jobs are below them.
    groups: Vec<PathBuf>,
}

/// Returns a job of a driver for Python.
pub fn job(entry: &JobRecord, driver: &Driver) -> GangHeld {
    let used = entry.used;
    let held = entry.held.as_ref();
    let state = match &entry.state {
        JobState::Scheduled if held.is_none_or(|held| held.stopped) => "stopped",
        JobState::Scheduled if driver.slice.fillers.contains(&entry.id) => "filling",
        JobState::Scheduled => "running",
        JobState::Released => "released",
        JobState::Ended => "ended",
        JobState::Lost(_) => "lost",
    };
    let reason = match &entry.state {
        JobState::Lost(reason) => Some(reason.clone()),
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

/// Returns the round of a driver for Python.
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

/// Returns the methods of an agent for Python.
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

/// Returns a switch of a driver for Python.
pub fn switch(one: SliceSwitch) -> GangSwitch {
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
