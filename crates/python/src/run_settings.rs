//! The settings of a run, as `topolane.Settings` has them and as the simulator takes them.

use std::sync::Arc;

use pyo3::prelude::*;
use topolane_fabric::Fabric;
use topolane_scheduler::queues::Slurm;
use topolane_scheduler::queues::slurm::SlurmConfig;
use topolane_scheduler::{Defrag, Queue};
use topolane_simulator::{Failure, Outage, RunOptions};

use crate::error::{bad_input, input_error};
use crate::network::Network;
use crate::policy::queue_names;
use crate::state::{min_bandwidth_from, within_from};

/// `topolane.Settings` in which every name of a file has given way to what the file says. Its defaults are there.
#[derive(FromPyObject)]
pub struct Settings<'py> {
    pub policy: Bound<'py, PyAny>,
    queue: String,
    /// The name of the file and its text.
    queue_config: Option<(String, String)>,
    scenario: String,
    pub seed: u64,
    default_walltime: Option<f64>,
    min_bandwidth: Option<f64>,
    within: Option<String>,
    segment: Option<u32>,
    defrag: Option<Moves>,
    outages: Option<Vec<CableOutage>>,
    failures: Option<Vec<Down>>,
    spares: u32,
    checkpoint: f64,
    network: Option<Network<'py>>,
}

/// `topolane.run.Defrag`.
#[derive(FromPyObject)]
struct Moves {
    most: u32,
    per_start: f64,
    pause: f64,
}

/// `topolane.outages.Outage`.
#[derive(FromPyObject)]
struct CableOutage {
    cables: Vec<u32>,
    start: f64,
    end: f64,
}

/// `topolane.failures.Failure`.
#[derive(FromPyObject)]
pub struct Down {
    node: u32,
    start: f64,
    end: f64,
}

impl Settings<'_> {
    /// The queue, with its configuration if it is one that reads it.
    pub fn queue_on(&self, fabric: &Fabric) -> PyResult<Box<dyn Queue>> {
        let name = &*self.queue;
        if let Some((file, text)) = self.queue_config.as_ref().filter(|_| name == "slurm") {
            let queue = SlurmConfig::parse(text).and_then(|config| Slurm::new(config, fabric));
            return Ok(Box::new(queue.map_err(|error| input_error(error.in_file(file)))?));
        }
        topolane_scheduler::queue(name).ok_or_else(|| {
            bad_input(format!("unknown queue {name:?}; there are {}", queue_names()))
        })
    }

    /// What the simulator takes. `out_of_service` are nodes that take no new jobs for a time.
    pub fn options(self, fabric: &Arc<Fabric>, out_of_service: Vec<Down>) -> PyResult<RunOptions> {
        if self.default_walltime.is_some_and(|walltime| !(walltime.is_finite() && walltime > 0.0)) {
            return Err(bad_input("the default walltime must be above 0 seconds"));
        }
        if self.segment == Some(0) {
            return Err(bad_input("a segment has at least 1 node, not 0"));
        }
        if !(self.checkpoint.is_finite() && self.checkpoint >= 0.0) {
            return Err(bad_input(format!(
                "hours between checkpoints must be 0 or more, not {}",
                self.checkpoint
            )));
        }
        let outages = self.outages.unwrap_or_default().into_iter();
        Ok(RunOptions {
            scenario: self.scenario.parse().map_err(input_error)?,
            seed: self.seed,
            default_walltime: self.default_walltime,
            min_bandwidth: min_bandwidth_from(self.min_bandwidth)?,
            within: within_from(self.within.as_deref(), fabric)?,
            moving: self.defrag.map(Moves::checked).transpose()?,
            segment: self.segment,
            network: self.network.map(|network| network.on(fabric, self.seed)).transpose()?,
            outages: outages.map(|cut| cut.on(fabric)).collect::<PyResult<_>>()?,
            failures: down_on(self.failures.unwrap_or_default(), fabric)?,
            out_of_service: down_on(out_of_service, fabric)?,
            spares: self.spares,
            checkpoint: 3_600.0 * self.checkpoint,
        })
    }
}

impl Moves {
    fn checked(self) -> PyResult<Defrag> {
        if !(self.per_start >= 0.0 && self.pause >= 0.0) {
            return Err(bad_input("moves per job started and seconds of pause must be 0 or more"));
        }
        Ok(Defrag::new(self.most, self.per_start, self.pause))
    }
}

impl CableOutage {
    fn on(self, fabric: &Fabric) -> PyResult<Outage> {
        let CableOutage { cables, start, end } = self;
        if let Some(cable) = cables.iter().find(|&&cable| fabric.cable_place(cable).is_none()) {
            return Err(bad_input(format!("an outage of cable {cable}: there is none in a tree")));
        }
        check_span("an outage", start, end)?;
        Ok(Outage { cables, from: start, until: end })
    }
}

fn down_on(down: Vec<Down>, fabric: &Fabric) -> PyResult<Vec<Failure>> {
    let failure = |Down { node, start, end }| {
        if node >= fabric.nodes() {
            return Err(bad_input(format!("node {node} fails, but is not on the machine")));
        }
        check_span("a failure", start, end)?;
        Ok(Failure { node, from: start, until: end })
    };
    down.into_iter().map(failure).collect()
}

fn check_span(what: &str, start: f64, end: f64) -> PyResult<()> {
    if start.is_nan() || end.is_nan() || end <= start {
        return Err(bad_input(format!("{what} cannot be from {start} s until {end} s")));
    }
    Ok(())
}
