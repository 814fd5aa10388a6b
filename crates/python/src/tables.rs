//! Forwarding tables, link names and link loads, for Python.

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

/// A link: (lower end, its group, upper end, its group, number among parallel cables or None).
pub type LinkRow = (String, String, String, String, Option<u32>);

/// The names of all links, by id.
pub fn link_rows(fabric: &Fabric) -> Vec<LinkRow> {
    let row = |link: LinkName| {
        (link.lower.name, link.lower.group, link.upper.name, link.upper.group, link.number)
    };
    link_names(fabric).into_iter().map(row).collect()
}

/// How much of every channel of a routing each job wants. Immutable.
#[pyclass(frozen, module = "topolane._engine")]
pub struct Loads {
    shares: Shares,
}

#[pymethods]
impl Loads {
    /// Computes the loads of jobs, each given by the node of every rank and its traffic.
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

    /// For every channel, the total share that jobs want, each as if alone: float64.
    #[getter]
    fn shares<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        let channels = 0..self.shares.channels();
        channels.map(|channel| self.shares.load(channel)).collect::<Vec<_>>().into_pyarray(py)
    }

    /// (index of the job, share that it wants) of all jobs on a channel.
    fn users(&self, channel: u32) -> PyResult<Vec<(u64, f64)>> {
        if channel >= self.shares.channels() {
            return Err(bad_input(format!("there is no channel {channel}")));
        }
        Ok(self.shares.users(channel).collect())
    }

    /// Seconds of communication per iteration of a job alone.
    fn time_alone(&self, job: u64) -> f64 {
        self.shares.time_alone(job)
    }
}
