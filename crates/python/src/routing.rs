//! Routings between nodes, for Python.

use std::collections::BTreeMap;
use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use topolane_fabric::{Direction, Fabric, InputError, ROUTINGS, routing, routing_named};
use topolane_traffic::Flows;

use crate::error::{bad_input, input_error};
use crate::table::Table;
use crate::traffic::Traffic;

/// (name, summary) of every routing that needs no tables.
#[pyfunction]
pub fn routings() -> Vec<(&'static str, &'static str)> {
    ROUTINGS.iter().map(|info| (info.name, info.summary)).collect()
}

/// Refuses a machine that is not a tree, for `what` that only trees have yet.
pub fn needs_tree(fabric: &Fabric, what: &str) -> PyResult<()> {
    if fabric.wiring().is_tree() {
        return Ok(());
    }
    let (name, kind) = (fabric.name(), fabric.wiring().name());
    Err(bad_input(format!("{what} needs a tree, but {name} is a {kind}")))
}

/// The routing between the nodes of a machine. Immutable.
#[pyclass(frozen, module = "topolane._engine")]
pub struct Routing {
    pub routing: Arc<dyn topolane_fabric::Routing>,
}

impl Routing {
    /// Returns the routing of this name on a machine.
    pub fn named(fabric: &Arc<Fabric>, name: &str, seed: u64) -> PyResult<Routing> {
        let rule = routing(name, fabric, seed).map_err(input_error)?;
        Ok(Routing { routing: Arc::from(rule) })
    }

    /// Checks that there is a routing of this name, without building it.
    pub fn check_name(name: &str) -> PyResult<()> {
        routing_named(name).map(|_| ()).map_err(input_error)
    }

    fn check(&self, node: u32) -> PyResult<()> {
        let nodes = self.routing.fabric().nodes();
        if node < nodes {
            return Ok(());
        }
        Err(bad_input(format!("node {node} is not among the {nodes} nodes")))
    }
}

/// A running job: the node of every rank, and what the ranks send.
pub type Sending = (Vec<u32>, Arc<topolane_traffic::Traffic>);

/// Converts jobs from Python.
pub fn sending(jobs: Vec<(Vec<u32>, Py<Traffic>)>) -> Vec<Sending> {
    let job =
        |(nodes, traffic): (Vec<u32>, Py<Traffic>)| (nodes, Arc::clone(&traffic.get().matrix));
    jobs.into_iter().map(job).collect()
}

/// Returns the flows of each job over a routing.
///
/// # Errors
/// A node that does not exist, more ranks than nodes, or two nodes that communicate without a route between them.
pub fn laid(
    routing: &dyn topolane_fabric::Routing,
    jobs: &[Sending],
) -> Result<Vec<Arc<Flows>>, InputError> {
    let fabric = routing.fabric();
    let lay = |(job, (nodes, traffic)): (usize, &Sending)| {
        for &node in nodes {
            if node >= fabric.nodes() {
                let nodes = fabric.nodes();
                return Err(InputError::whole(format!(
                    "node {node} is not among the {nodes} nodes"
                )));
            }
        }
        let ranks = traffic.ranks();
        if ranks as usize > nodes.len() {
            return Err(InputError::whole(format!(
                "the traffic of job {job} has {ranks} ranks, but the job has {}",
                nodes.len()
            )));
        }
        let flows = Flows::new(traffic, nodes, routing);
        flows.map(Arc::new).map_err(|error| InputError::whole(error.on(fabric)))
    };
    jobs.iter().enumerate().map(lay).collect()
}

#[pymethods]
impl Routing {
    #[getter]
    fn name(&self) -> &str {
        self.routing.name()
    }

    /// The number of channels.
    #[getter]
    fn channels(&self) -> u32 {
        self.routing.channels()
    }

    /// Bandwidth of every channel in bytes per second.
    #[getter]
    fn capacity<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        let channels = 0..self.routing.channels();
        channels.map(|channel| self.routing.capacity(channel)).collect::<Vec<_>>().into_pyarray(py)
    }

    /// The channels from one node to another, with the part of the bytes on each, ascending.
    fn parts(&self, a: u32, b: u32) -> PyResult<Vec<(u32, f64)>> {
        let splits = self.routing.splits();
        let mut parts: BTreeMap<u32, f64> = BTreeMap::new();
        for entry in self.path(a, b)? {
            splits.each(entry, |channel, part| *parts.entry(channel).or_default() += part);
        }
        Ok(parts.into_iter().collect())
    }

    /// The channels and splits from one node to another in order.
    fn path(&self, a: u32, b: u32) -> PyResult<Vec<u32>> {
        self.check(a)?;
        self.check(b)?;
        let mut path = Vec::new();
        self.routing
            .path(a, b, &mut path)
            .map_err(|error| bad_input(error.on(self.routing.fabric())))?;
        Ok(path)
    }

    /// Returns the table `links` of a run (docs/reference/outputs.md) with these loads, one per channel.
    fn loaded_links(&self, loads: Vec<f64>) -> PyResult<Table> {
        let channels = self.routing.channels();
        if loads.len() != channels as usize {
            return Err(bad_input(format!("{} loads for {channels} channels", loads.len())));
        }
        Ok(topolane_simulator::loaded_links(&*self.routing, loads.into_iter()).into())
    }

    /// The links of a channel: (cable, "up" or "down").
    fn links(&self, channel: u32) -> PyResult<Vec<(u32, &'static str)>> {
        if channel >= self.routing.channels() {
            return Err(bad_input(format!("there is no channel {channel}")));
        }
        let way = |direction| if direction == Direction::Up { "up" } else { "down" };
        let links = self.routing.links(channel);
        Ok(links.iter().map(|link| (link.cable, way(link.direction))).collect())
    }
}
