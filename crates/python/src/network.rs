//! Contention for Python: between given jobs, and in a run.

use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use topolane_fabric::{Fabric, InputError, Splits};
use topolane_traffic::{Filling, Flows, Loads, MODELS, ModelInfo, Patterned, pattern};

use crate::answering::answering;
use crate::error::{bad_input, input_error};
use crate::rank_k::cores_from;
use crate::routing::{Routing, laid, sending};
use crate::traffic::Traffic;

/// (name, summary) of every contention model.
#[pyfunction]
pub fn models() -> Vec<(&'static str, &'static str)> {
    MODELS.iter().map(|info| (info.name, info.summary)).collect()
}

/// `topolane.Network` in which every name of a file has given way to what the file says. Its defaults are there.
#[derive(FromPyObject)]
pub struct Network<'py> {
    model: String,
    routing: Ways<'py>,
    communication: f64,
    patterns: Vec<Bound<'py, PyAny>>,
    kill_at_walltime: bool,
    cores_per_node: Option<String>,
}

/// Routes by the name of their rule, or themselves.
#[derive(FromPyObject)]
enum Ways<'py> {
    Named(String),
    These(Bound<'py, Routing>),
}

impl Network<'_> {
    /// The network as the simulator takes it. The seed is for routings that draw.
    pub fn on(&self, fabric: &Arc<Fabric>, seed: u64) -> PyResult<topolane_simulator::Network> {
        check_share("the communication fraction", self.communication)?;
        if self.patterns.is_empty() {
            return Err(bad_input("name at least one pattern of communication"));
        }
        let model = model_named(&self.model)?;
        if !model.of_links {
            let text =
                "says nothing of links, so jobs on nodes of their own do not slow each other";
            return Err(bad_input(format!("model {} {text}", model.name)));
        }
        let routing = match &self.routing {
            Ways::Named(name) => Routing::named(fabric, name, seed)?.routing,
            Ways::These(ways) => Arc::clone(&ways.get().routing),
        };
        if !Arc::ptr_eq(routing.fabric(), fabric) {
            return Err(bad_input("the network's routing is another machine's"));
        }
        let patterns: PyResult<_> = self.patterns.iter().map(patterned).collect();
        Ok(topolane_simulator::Network {
            routing,
            model,
            communication: self.communication,
            patterns: patterns?,
            kill_at_walltime: self.kill_at_walltime,
            cores_per_node: self.cores_per_node.as_deref().map(cores_from).transpose()?,
        })
    }
}

/// Parses a pattern: a name, or (name, Traffic) for a matrix.
fn patterned(given: &Bound<'_, PyAny>) -> PyResult<Patterned> {
    if let Ok(text) = given.extract::<String>() {
        return pattern(&text).map_err(input_error);
    }
    let (name, matrix): (String, Bound<'_, Traffic>) = given.extract()?;
    Ok(Patterned::measured(name, Arc::clone(&matrix.get().matrix)))
}

/// Checks that a value is a share, from 0 to 1.
pub fn check_share(what: &str, value: f64) -> PyResult<()> {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    Err(bad_input(format!("{what} must be from 0 to 1, not {value}")))
}

fn model_named(name: &str) -> PyResult<&'static ModelInfo> {
    MODELS.iter().find(|info| info.name == name).ok_or_else(|| {
        let names: Vec<&str> = MODELS.iter().map(|info| info.name).collect();
        bad_input(format!("unknown model {name:?}; there are {}", names.join(", ")))
    })
}

/// How given jobs slow each other down. Arrays are float64, one value per job.
#[pyclass(frozen, get_all, module = "topolane._engine")]
pub struct Contended {
    /// Seconds of communication per iteration while the other jobs communicate.
    times: Py<PyArray1<f64>>,
    /// Communication time on the same nodes without other jobs.
    times_alone: Py<PyArray1<f64>>,
    /// The slowdown of communication while the other jobs communicate.
    slowdowns: Py<PyArray1<f64>>,
    /// For every job, the rate of each of its flows in bytes per second.
    rates: Vec<Py<PyArray1<f64>>>,
    /// For every channel, the share of it that jobs want.
    loads: Py<PyArray1<f64>>,
}

type LoadColumns = (Vec<f64>, Vec<f64>, Vec<f64>, Vec<Vec<f64>>);

/// Computes the contention of jobs that run at the same time. Each is given as (node of every rank, traffic).
#[pyfunction]
pub fn contend(
    py: Python<'_>,
    routing: &Routing,
    model: &str,
    jobs: Vec<(Vec<u32>, Py<Traffic>)>,
) -> PyResult<Contended> {
    let model = model_named(model)?;
    let (routing, jobs) = (Arc::clone(&routing.routing), sending(jobs));
    let contended = answering(py, move || -> Result<(LoadColumns, Vec<f64>), InputError> {
        let build = || (model.build)(&*routing);
        let mut all = build();
        let mut loads = Loads::new(&*routing);
        let flows = laid(&*routing, &jobs)?;
        let mut times_alone = Vec::with_capacity(flows.len());
        for (job, flows) in flows.iter().enumerate() {
            let mut alone = build();
            alone.enter(job as u64, Arc::clone(flows));
            times_alone.push(alone.time(job as u64));
            loads.add(job as u64, flows);
            all.enter(job as u64, Arc::clone(flows));
        }
        let mut slowdowns = vec![1.0; flows.len()];
        for (job, slowdown) in all.settle() {
            slowdowns[job as usize] = slowdown;
        }
        let jobs = 0..flows.len() as u64;
        let times = jobs.clone().map(|job| all.time(job)).collect();
        let rates = jobs.zip(&flows).map(|(job, flows)| all.rates(job, flows)).collect();
        let loads = (0..loads.channels()).map(|channel| loads.load(channel)).collect();
        Ok(((times, times_alone, slowdowns, rates), loads))
    })?;
    let ((times, times_alone, slowdowns, rates), loads) = contended.map_err(input_error)?;
    let array = |values: Vec<f64>| values.into_pyarray(py).unbind();
    Ok(Contended {
        times: array(times),
        times_alone: array(times_alone),
        slowdowns: array(slowdowns),
        rates: rates.into_iter().map(array).collect(),
        loads: array(loads),
    })
}

/// The max-min fair rates of flows over given routes: `channels[first[i]:first[i + 1]]` are the channels of flow i.
/// Arrays are float64, uint32, uint32. Returns float64, one rate per flow; infinite for a flow without channels.
#[pyfunction]
pub fn max_min<'py>(
    py: Python<'py>,
    capacity: PyReadonlyArray1<'py, f64>,
    first: PyReadonlyArray1<'py, u32>,
    channels: PyReadonlyArray1<'py, u32>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let contiguous = |_| bad_input("arrays must be contiguous");
    let capacity = capacity.as_slice().map_err(|error| contiguous(error.to_string()))?;
    let first = first.as_slice().map_err(|error| contiguous(error.to_string()))?;
    let channels = channels.as_slice().map_err(|error| contiguous(error.to_string()))?;
    if let Some(value) = capacity.iter().find(|value| !(value.is_finite() && **value > 0.0)) {
        return Err(bad_input(format!("a capacity must be above 0, not {value}")));
    }
    let whole = first.first() == Some(&0) && first.last() == Some(&(channels.len() as u32));
    if !whole || !first.is_sorted() {
        return Err(bad_input("first must rise from 0 to the number of channels"));
    }
    if let Some(channel) = channels.iter().find(|&&channel| channel as usize >= capacity.len()) {
        return Err(bad_input(format!("there is no channel {channel}")));
    }
    let (capacity, first, channels) = (capacity.to_vec(), first.to_vec(), channels.to_vec());
    let rates = answering(py, move || {
        let paths = first.windows(2).map(|ends| &channels[ends[0] as usize..ends[1] as usize]);
        let flows = Flows::of_paths(paths.map(|path| ((0, 0), 1.0, path)), Splits::default());
        Filling::new(capacity.into()).rates(&[&flows])
    })?;
    Ok(rates.into_pyarray(py))
}
