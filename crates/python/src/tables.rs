//! Forwarding tables, the names of links, and who uses which, for Python.

use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use topolane_fabric::Fabric;
use topolane_fabric::write::{LinkName, link_names};
use topolane_traffic::Loads as Shares;

use crate::answering::answering;
use crate::error::{bad_input, input_error};
use crate::routing::{Routing, laid, sending};
use crate::traffic::Traffic;

/// (lower end, its group, upper end, its group, which of parallel cables or None) of a link.
pub type LinkRow = (String, String, String, String, Option<u32>);

/// The names of all links by id.
pub fn link_rows(fabric: &Fabric) -> Vec<LinkRow> {
    let row = |link: LinkName| {
        (link.lower.name, link.lower.group, link.upper.name, link.upper.group, link.number)
    };
    link_names(fabric).into_iter().map(row).collect()
}

/// Who puts how much on every channel of a routing. Immutable.
#[pyclass(frozen, module = "topolane._engine")]
pub struct Loads {
    shares: Shares,
}

#[pymethods]
impl Loads {
    /// The loads of jobs, each the node of every rank and its traffic.
    #[new]
    fn new(
        py: Python<'_>,
        routing: &Routing,
        jobs: Vec<(Vec<u32>, Py<Traffic>)>,
    ) -> PyResult<Loads> {
        let (routing, jobs) = (Arc::clone(&routing.routing), sending(jobs));
        let shares = answering(py, move || {
            let mut shares = Shares::new(&*routing);
            for (job, flows) in (0..).zip(laid(&*routing, &jobs)?) {
                shares.add(job, &flows);
            }
            Ok(shares)
        })?;
        let shares = shares.map_err(input_error)?;
        Ok(Loads { shares })
    }

    /// Of every channel the share that is wanted, each job's as when it is alone: float64.
    #[getter]
    fn shares<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        let channels = 0..self.shares.channels();
        channels.map(|channel| self.shares.load(channel)).collect::<Vec<_>>().into_pyarray(py)
    }

    /// (index of the job, share it wants) of all who use a channel.
    fn users(&self, channel: u32) -> PyResult<Vec<(u64, f64)>> {
        if channel >= self.shares.channels() {
            return Err(bad_input(format!("there is no channel {channel}")));
        }
        Ok(self.shares.users(channel).collect())
    }

    /// Seconds of an iteration's communication of a job alone.
    fn time_alone(&self, job: u64) -> f64 {
        self.shares.time_alone(job)
    }
}
