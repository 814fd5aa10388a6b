//! `Workload`: jobs for Python.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use topolane_placement::Share;
use topolane_simulator::{FailureRate, workload};

use crate::answering::answering;
use crate::error::{bad_input, input_error};
use crate::machine::Machine;

/// Partition, whether held, reserved, limited.
type DetailsRow = (String, bool, bool, bool);

/// Jobs in order of submission, and what the reader skipped. Immutable.
#[pyclass(frozen, module = "topolane._engine")]
pub struct Workload {
    pub jobs: Arc<workload::Workload>,
}

#[pymethods]
impl Workload {
    /// Reads a log: SWF, CSV, the output of `sacct -P` or a trace of GPU jobs, plain or gzipped.
    #[staticmethod]
    #[pyo3(signature = (path, *, cores_per_node=None, partition=None, shared=false, gpus_per_node=None))]
    fn read(
        py: Python<'_>,
        path: String,
        cores_per_node: Option<u32>,
        partition: Option<String>,
        shared: bool,
        gpus_per_node: Option<u32>,
    ) -> PyResult<Workload> {
        let options = workload::ReadOptions { cores_per_node, gpus_per_node, partition, shared };
        let jobs = answering(py, move || workload::read(&path, &options))?.map_err(input_error)?;
        Ok(Workload { jobs: Arc::new(jobs) })
    }

    /// Generates a month from the name of a preset (see `workload_presets`) and a seed.
    #[staticmethod]
    fn generate(py: Python<'_>, name: String, seed: u64) -> PyResult<Workload> {
        let jobs = answering(py, move || workload::preset(&name, seed))?.map_err(input_error)?;
        Ok(Workload { jobs: Arc::new(jobs) })
    }

    /// Returns the workload changed for a machine with this number of nodes (None: any width fits, and no load can be
    /// set). In this order: keep the first days; widen jobs and skip those wider than the machine; keep the first
    /// `limit` jobs; scale the interarrival times, by a factor or to a load; shorten run times by a random share up to
    /// `jitter`, drawn from the seed.
    #[pyo3(signature = (machine_nodes, *, days=None, nodes_x=None, squeeze=None, load=None, limit=None, jitter=None, seed=0))]
    #[allow(clippy::too_many_arguments)]
    fn shaped(
        &self,
        py: Python<'_>,
        machine_nodes: Option<u32>,
        days: Option<f64>,
        nodes_x: Option<f64>,
        squeeze: Option<f64>,
        load: Option<f64>,
        limit: Option<usize>,
        jitter: Option<f64>,
        seed: u64,
    ) -> PyResult<Workload> {
        let whole = Arc::clone(&self.jobs);
        let shape = workload::Shape { days, nodes_x, limit, squeeze, load, jitter, seed };
        if machine_nodes.is_none() && load.is_some() {
            return Err(bad_input("a load is one of a machine: name it with --machine"));
        }
        let shaped = answering(py, move || {
            let nodes = machine_nodes.unwrap_or(u32::MAX);
            // A log may take hundreds of megabytes: one that stays as it is does so once.
            if shape.changes_nothing(&whole, nodes) {
                return Ok(whole);
            }
            let mut jobs = workload::Workload::clone(&whole);
            workload::apply(&mut jobs, &shape, nodes).map(|_| Arc::new(jobs))
        })?;
        Ok(Workload { jobs: shaped.map_err(input_error)? })
    }

    /// Returns the workload as text: "swf" or "csv".
    fn to(&self, py: Python<'_>, format: &str) -> PyResult<String> {
        let write = match format {
            "swf" => workload::to_swf,
            "csv" => workload::to_csv,
            _ => {
                let what = format!("unknown workload format {format:?}; there are swf, csv");
                return Err(bad_input(what));
            }
        };
        let jobs = Arc::clone(&self.jobs);
        answering(py, move || write(&jobs))?.map_err(input_error)
    }

    #[getter]
    fn name(&self) -> &str {
        &self.jobs.name
    }

    /// Unix time of second 0; 0 if unknown.
    #[getter]
    fn epoch(&self) -> f64 {
        self.jobs.epoch
    }

    /// The cores per node used to convert processors to nodes.
    #[getter]
    fn cores_per_node(&self) -> u32 {
        self.jobs.cores_per_node
    }

    fn __len__(&self) -> usize {
        self.jobs.jobs.len()
    }

    /// The number of jobs without a requested walltime.
    #[getter]
    fn without_walltime(&self) -> usize {
        self.jobs.without_walltime()
    }

    /// Records skipped, by reason.
    #[getter]
    fn left_out(&self) -> BTreeMap<String, u64> {
        self.jobs.left_out.clone()
    }

    /// Jobs that the reader changed, by what was wrong and what was done.
    #[getter]
    fn changed(&self) -> BTreeMap<String, u64> {
        self.jobs.changed.clone()
    }

    /// Assumptions that change results, because the log has no number; a sentence each.
    #[getter]
    fn assumed(&self) -> Vec<String> {
        self.jobs.assumed.clone()
    }

    /// Checks, as `simulate` does, that no job ends later than the longest simulated time. Raises `InputError`.
    fn check_times(&self) -> PyResult<()> {
        self.jobs.check_times().map_err(input_error)
    }

    /// The number of nodes that the log names, and how many of them a machine does not have.
    fn strangers(&self, py: Python<'_>, machine: &Machine) -> (usize, usize) {
        let (jobs, fabric) = (Arc::clone(&self.jobs), Arc::clone(&machine.fabric));
        py.detach(|| jobs.strangers(&fabric))
    }

    /// Returns the workload without the names of the nodes on which its jobs ran.
    fn without_hosts(&self) -> Workload {
        let mut jobs = workload::Workload::clone(&self.jobs);
        for recorded in jobs.jobs.iter_mut().filter_map(|job| job.recorded.as_mut()) {
            recorded.hosts.clear();
        }
        Workload { jobs: Arc::new(jobs) }
    }

    /// Seconds from the first submission to the last.
    #[getter]
    fn span(&self) -> f64 {
        self.jobs.span()
    }

    /// Whether the log names the nodes of its jobs.
    #[getter]
    fn names_nodes(&self) -> bool {
        self.jobs.jobs.iter().any(|job| job.recorded.as_ref().is_some_and(|r| !r.hosts.is_empty()))
    }

    /// The offered load: sum of nodes x run time, divided by (machine nodes x span).
    fn load(&self, machine_nodes: u32) -> f64 {
        self.jobs.load(machine_nodes)
    }

    /// Returns the workload with new holds and priorities, in the order of its jobs. `held_until` has the end of each
    /// job's hold (NaN: no hold).
    #[pyo3(signature = (*, held_until=None, priority=None))]
    fn arranged(
        &self,
        held_until: Option<Vec<f64>>,
        priority: Option<Vec<f64>>,
    ) -> PyResult<Workload> {
        let mut jobs = workload::Workload::clone(&self.jobs);
        for values in [&held_until, &priority].into_iter().flatten() {
            if values.len() != jobs.jobs.len() {
                return Err(bad_input(format!(
                    "{} values for {} jobs",
                    values.len(),
                    jobs.jobs.len()
                )));
            }
        }
        for (job, time) in jobs.jobs.iter_mut().zip(held_until.unwrap_or_default()) {
            job.held_until = Some(time).filter(|time| time.is_finite());
        }
        for (job, priority) in jobs.jobs.iter_mut().zip(priority.unwrap_or_default()) {
            job.priority = priority;
        }
        Ok(Workload { jobs: Arc::new(jobs) })
    }

    /// The columns id, submit, run, walltime, start (as recorded), nodes, and cores per node; times in seconds, NaN if
    /// missing.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let jobs = &self.jobs.jobs;
        let floats = |value: &dyn Fn(&workload::Job) -> f64| -> Bound<'py, PyArray1<f64>> {
            jobs.iter().map(value).collect::<Vec<f64>>().into_pyarray(py)
        };
        let columns = PyDict::new(py);
        let ids: Vec<u64> = jobs.iter().map(|job| job.id).collect();
        let nodes: Vec<u32> = jobs.iter().map(|job| job.nodes).collect();
        columns.set_item("id", ids.into_pyarray(py))?;
        columns.set_item("submit", floats(&|job| job.submit))?;
        columns.set_item("run", floats(&|job| job.run))?;
        columns.set_item("walltime", floats(&|job| job.walltime.unwrap_or(f64::NAN)))?;
        columns.set_item("nodes", nodes.into_pyarray(py))?;
        let start =
            |job: &workload::Job| job.recorded.as_ref().map_or(f64::NAN, |found| found.start);
        columns.set_item("start", floats(&start))?;
        let cores = |job: &workload::Job| match &job.share {
            Share::Whole => f64::NAN,
            Share::Part(amounts) => amounts.cores() as f64,
        };
        columns.set_item("cores", floats(&cores))?;
        Ok(columns)
    }

    /// Earlier runs of jobs that were ended, after which the jobs ran again: `job` (its index in the columns), `start`,
    /// `run` and `nodes` of each.
    fn earlier_runs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let runs: Vec<(u64, &workload::EarlierRun)> = (0..)
            .zip(&self.jobs.jobs)
            .filter_map(|(place, job)| Some((place, job.recorded.as_ref()?)))
            .flat_map(|(place, found)| found.earlier.iter().map(move |run| (place, run)))
            .collect();
        let floats = |value: &dyn Fn(&workload::EarlierRun) -> f64| {
            runs.iter().map(|(_, run)| value(run)).collect::<Vec<f64>>().into_pyarray(py)
        };
        let columns = PyDict::new(py);
        let places: Vec<u64> = runs.iter().map(|(place, _)| *place).collect();
        columns.set_item("job", places.into_pyarray(py))?;
        columns.set_item("start", floats(&|run| run.start))?;
        columns.set_item("run", floats(&|run| run.run))?;
        columns.set_item("nodes", floats(&|run| f64::from(run.nodes)))?;
        Ok(columns)
    }

    /// What the log says of its jobs that decides nothing: of each job a place in a list, 0 if nothing is said; and that list of
    /// (partition, whether it was held, had a reservation, waited for a limit).
    fn details<'py>(&self, py: Python<'py>) -> (Bound<'py, PyArray1<u32>>, Vec<DetailsRow>) {
        let (mut rows, mut places) = (vec![DetailsRow::default()], HashMap::new());
        let mut place = |job: &workload::Job| {
            let Some(of) = &job.details else { return 0 };
            *places.entry(Arc::clone(of)).or_insert_with(|| {
                rows.push((of.partition.to_string(), of.is_held, of.is_reserved, of.is_limited));
                rows.len() as u32 - 1
            })
        };
        let found: Vec<u32> = self.jobs.jobs.iter().map(&mut place).collect();
        (found.into_pyarray(py), rows)
    }

    /// Failures per node and day on the machine of the log, and the mean time to repair in seconds; None if unknown.
    #[getter]
    fn failure_rate(&self) -> Option<(f64, f64)> {
        self.jobs.failures.map(|rate| (rate.per_node_day, rate.repair))
    }

    /// Draws failures of a machine's nodes, at this rate, from the first submission to one day after the last: (node,
    /// from, until). The same seed gives the same failures.
    fn draw_failures(
        &self,
        machine: &Machine,
        per_node_day: f64,
        repair: f64,
        seed: u64,
    ) -> PyResult<Vec<(u32, f64, f64)>> {
        let is_sound = (0.0..=1_000.0).contains(&per_node_day) && (1.0..1e9).contains(&repair);
        if !is_sound {
            return Err(bad_input(format!(
                "{per_node_day} failures of a node in a day (0 to 1000) and {repair} s of repair (1 or more) are no rate"
            )));
        }
        let first = self.jobs.jobs.first().map_or(0.0, |job| job.submit);
        let rate = FailureRate { per_node_day, repair };
        let failures = rate.draw(&machine.fabric, first, first + self.jobs.span() + 86_400.0, seed);
        Ok(failures.into_iter().map(|one| (one.node, one.from, one.until)).collect())
    }
}

/// (name, summary) of every workload that can be generated.
#[pyfunction]
pub fn workload_presets() -> Vec<(&'static str, &'static str)> {
    workload::PRESETS.to_vec()
}
