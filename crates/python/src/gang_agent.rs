//! The Linux agent of gangs, for Python. Every method that waits releases the interpreter lock.

use std::path::PathBuf;
use std::sync::{PoisonError, RwLock};

use pyo3::prelude::*;
use topolane_gang::linux::{Agent, Driver, JobMembers, Means, OwnGroup, Stopping};
use topolane_gang::{Barriers, JobId};

use crate::error::bad_input;
use crate::gang::{GangLimits, policy_of};
use crate::gang_shown::{GangHeld, GangMeans, GangRound, GangSwitch, job, means, round, switch};

/// Runs gangs of real processes. Methods raise `InputError` if something is not possible.
#[pyclass(frozen, module = "topolane._engine")]
pub struct GangAgent {
    agent: RwLock<Option<Agent>>,
}

#[pymethods]
impl GangAgent {
    #[new]
    #[pyo3(signature = (policy, cores, limits, *, switch_by=None, xen=None, alive=None))]
    fn new(
        py: Python<'_>,
        policy: &str,
        cores: Vec<usize>,
        limits: &GangLimits,
        switch_by: Option<&str>,
        xen: Option<&str>,
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
            let means = match xen {
                Some(library) => Means::of_xen(library)?,
                None => Means::find(stopping, cores.len())?,
            };
            Agent::start(policy, limits, cores, means, alive)
        });
        Ok(GangAgent { agent: RwLock::new(Some(agent.map_err(bad_input)?)) })
    }

    /// Takes over a job: processes with all their descendants, single threads, everything in control groups (their
    /// directories, and whether each was made for the agent), or a Xen domain (its number and UUID). Returns the job's
    /// number.
    #[pyo3(signature = (name, *, processes=None, tids=None, groups=None, domain=None, threads=1, weight=1.0))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn add(
        &self,
        py: Python<'_>,
        name: &str,
        processes: Option<Vec<i32>>,
        tids: Option<Vec<i32>>,
        groups: Option<Vec<(PathBuf, bool)>>,
        domain: Option<(u32, [u8; 16])>,
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
        let who = match (processes, tids, groups, domain) {
            (Some(processes), None, None, None) => JobMembers::Processes(processes),
            (None, Some(tids), None, None) => JobMembers::Threads(tids),
            (None, None, Some(groups), None) => {
                let own = |(directory, made)| OwnGroup { directory, made };
                JobMembers::Groups(groups.into_iter().map(own).collect())
            }
            (None, None, None, Some((number, uuid))) => JobMembers::Domain(number, uuid),
            _ => {
                let why = format!("job {name}: give one of processes, threads, groups and domain");
                return Err(bad_input(why));
            }
        };
        let taken = self.with(py, |agent| agent.add(name, &who, threads, weight));
        taken.map_err(|why| bad_input(format!("job {name}: {why}")))
    }

    /// Records how a job's threads meet: seconds between barriers, and seconds from the first thread's arrival to the
    /// last one's.
    fn met(&self, py: Python<'_>, id: JobId, interval: f64, skew: f64) -> PyResult<()> {
        if !(interval > 0.0 && interval.is_finite() && skew >= 0.0 && skew.is_finite()) {
            let why = format!("job {id}: cannot meet every {interval} s, {skew} s apart");
            return Err(bad_input(why));
        }
        self.with(py, |agent| agent.met(id, Barriers { interval, skew })).map_err(bad_input)
    }

    /// Lets a job run from now on, regardless of slices.
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

    /// The current round of slices.
    fn round(&self, py: Python<'_>) -> PyResult<GangRound> {
        self.with(py, |agent| agent.ask(|driver| round(driver))).map_err(bad_input)
    }

    /// The latest switches, at most `most`; the last one is at the end.
    #[pyo3(signature = (most=4096))]
    fn switches(&self, py: Python<'_>, most: usize) -> PyResult<Vec<GangSwitch>> {
        let last = self.with(py, |agent| agent.ask(move |driver| driver.switches.last(most)));
        Ok(last.map_err(bad_input)?.into_iter().map(switch).collect())
    }

    /// The methods with which the agent stops and ranks jobs.
    fn means(&self, py: Python<'_>) -> PyResult<GangMeans> {
        self.with(py, |agent| Ok(means(agent))).map_err(bad_input)
    }

    /// Ends the agent: all jobs run as before.
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
