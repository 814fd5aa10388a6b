//! `simulate` and its outcome for Python.

use std::sync::Arc;
use std::time::Instant;

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use topolane_fabric::{Fabric, InputError};
use topolane_placement::Policy;
use topolane_scheduler::Queue;
use topolane_simulator::{
    Metrics, RunOptions, Summary, into_tables, simulate as run_events, tables,
};

use crate::answering::{BETWEEN_LOOKS, answering, reporting};
use crate::error::{RunError, bad_input, input_error};
use crate::machine::Machine;
use crate::other_network::OtherNetwork;
use crate::policy::policy_on;
use crate::run_settings::{Down, Settings};
use crate::table::Table;
use crate::workload::Workload;

/// By job: links shared, share of bandwidth alone; the mean of the latter.
type UseRow = (Vec<u32>, Vec<Option<f64>>, Option<f64>);

/// What happened in a run, and its measures.
#[pyclass(module = "topolane._engine")]
pub struct Outcome {
    workload: Py<Workload>,
    machine_nodes: u32,
    run: Arc<EndedRun>,
}

/// A run that has ended.
#[derive(Clone, Default)]
struct EndedRun {
    options: RunOptions,
    outcome: topolane_simulator::Outcome,
    metrics: Metrics,
}

/// Runs a workload on a machine. `out_of_service` are nodes that take no new jobs for a time. `progress`, if given, is called now
/// and then with the share of jobs that have ended.
#[pyfunction]
#[pyo3(signature = (workload, machine, settings, *, out_of_service=vec![], progress=None))]
pub fn simulate(
    py: Python<'_>,
    workload: &Bound<'_, Workload>,
    machine: &Bound<'_, Machine>,
    settings: Settings<'_>,
    out_of_service: Vec<Down>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Outcome> {
    let jobs = Arc::clone(&workload.get().jobs);
    let fabric = Arc::clone(&machine.get().fabric);
    let (policy, raised) = policy_on(&fabric, &settings.policy, settings.seed)?;
    let queue = settings.queue_on(&fabric)?;
    let options = settings.options(&fabric, out_of_service)?;
    let run = PreparedRun { jobs, fabric, policy, queue, options };
    let tell = |py: Python<'_>, share: f64| {
        py.check_signals()?;
        progress.as_ref().map_or(Ok(()), |call| call.call1(py, (share,)).map(drop))
    };
    let made = if raised.is_python() {
        // A policy in Python answers to signals itself, and its thread must not outlive the interpreter.
        let made = py.detach(|| {
            run.here(&mut |share| {
                if let Some(error) = raised.take() {
                    return Err(RunError::Raised(error));
                }
                Python::attach(|py| tell(py, share)).map_err(RunError::Raised)
            })
        });
        made.map_err(PyErr::from)
    } else {
        run.on_a_thread(py, tell)
    };
    let run = Arc::new(made?);
    Ok(Outcome {
        workload: workload.clone().unbind(),
        machine_nodes: machine.get().fabric.nodes(),
        run,
    })
}

/// A run that is about to begin.
struct PreparedRun {
    jobs: Arc<topolane_simulator::workload::Workload>,
    fabric: Arc<Fabric>,
    policy: Arc<dyn Policy>,
    queue: Box<dyn Queue>,
    options: RunOptions,
}

/// Why a run on a thread of its own ends without an outcome.
enum Halt {
    Input(InputError),
    /// The call has ended.
    Abandoned,
}

impl From<InputError> for Halt {
    fn from(error: InputError) -> Self {
        Halt::Input(error)
    }
}

impl PreparedRun {
    /// Runs the simulation. Calls `report` now and then with the share of the jobs that has ended; `report` may end the run.
    fn here<E: From<InputError>>(
        self,
        report: &mut dyn FnMut(f64) -> Result<(), E>,
    ) -> Result<EndedRun, E> {
        let PreparedRun { jobs, fabric, policy, queue, options } = self;
        let mut last = Instant::now();
        let mut seldom = |share: f64| {
            if share < 1.0 && last.elapsed() < BETWEEN_LOOKS {
                return Ok(());
            }
            last = Instant::now();
            report(share)
        };
        let outcome = run_events(&jobs, &fabric, &policy, queue, &options, &mut seldom)?;
        let metrics = Metrics::of(&jobs, &fabric, &outcome);
        Ok(EndedRun { options, outcome, metrics })
    }

    /// Runs the simulation on a thread of its own, while this one answers to signals: one pass of a queue may take minutes. What `tell` raises
    /// ends the call at once; the thread then ends after its pass, or with the process. So it must not need Python.
    fn on_a_thread(
        self,
        py: Python<'_>,
        tell: impl Fn(Python<'_>, f64) -> PyResult<()>,
    ) -> PyResult<EndedRun> {
        let made = reporting(
            py,
            |sender| self.here(&mut |share| sender.send(share).map_err(|_| Halt::Abandoned)),
            tell,
        )?;
        made.map_err(|halt| match halt {
            Halt::Input(error) => input_error(error),
            Halt::Abandoned => bad_input("the run was left"),
        })
    }
}

fn by_name<'py>(
    py: Python<'py>,
    tables: Vec<(&'static str, topolane_simulator::Table)>,
) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    for (name, table) in tables {
        found.set_item(name, Table::from(table).into_pyobject(py)?)?;
    }
    Ok(found)
}

#[pymethods]
impl Outcome {
    /// The tables of the run by name: jobs, utilization, and links, job-links, head-waits, moves and failures if the run has them.
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (jobs, nodes) = (Arc::clone(&self.workload.get().jobs), self.machine_nodes);
        let run = Arc::clone(&self.run);
        let made =
            answering(py, move || tables(&jobs, nodes, &run.outcome, &run.metrics, &run.options))?;
        by_name(py, made)
    }

    /// The same, and the outcome is empty afterwards: it has no jobs any more. With a million jobs this takes several hundred
    /// megabytes less.
    fn take_tables<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (jobs, nodes) = (Arc::clone(&self.workload.get().jobs), self.machine_nodes);
        let options = self.run.options.clone();
        let run =
            std::mem::replace(&mut self.run, Arc::new(EndedRun { options, ..EndedRun::default() }));
        // Another call may still look at it.
        let run = Arc::try_unwrap(run).unwrap_or_else(|run| EndedRun::clone(&run));
        by_name(
            py,
            answering(py, move || {
                into_tables(&jobs, nodes, run.outcome, run.metrics, &run.options)
            })?,
        )
    }

    /// The nodes of every job, in the order of the table `jobs`: a list of uint32 arrays in rank order.
    fn placements<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let nodes = self.run.outcome.jobs.iter().map(|job| job.placement.nodes());
        PyList::new(py, nodes.map(|nodes| nodes.to_vec().into_pyarray(py)))
    }

    /// What the jobs do on another network of the machine: for every job of the table `jobs` the links where another may meet it,
    /// and the share of its ends' bandwidth that it has alone (None without servers); and the mean of that by node-seconds.
    fn on_network(
        &self,
        py: Python<'_>,
        machine: &Machine,
        network: &OtherNetwork,
    ) -> PyResult<UseRow> {
        let nodes = network.nodes_of(machine);
        if nodes.len() != self.machine_nodes as usize {
            return Err(bad_input("the run is another machine's"));
        }
        let (network, run) = (network.clone(), Arc::clone(&self.run));
        let used = answering(py, move || {
            let (fabric, servers) = (&network.fabric, &network.servers[..]);
            let network = topolane_simulator::OtherNetwork { fabric, nodes: &nodes, servers };
            network.used_by(&run.outcome)
        })?;
        let used = used.map_err(input_error)?;
        Ok((used.links_shared, used.bandwidth_alone, used.mean_bandwidth_alone))
    }

    /// The run in a few figures.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (jobs, nodes) = (Arc::clone(&self.workload.get().jobs), self.machine_nodes);
        let run = Arc::clone(&self.run);
        let text = answering(py, move || {
            let EndedRun { options, outcome, metrics } = &*run;
            serde_json::to_string(&Summary::of(&jobs, nodes, outcome, metrics, options))
        })?
        .map_err(|error| bad_input(format!("a summary that cannot be written: {error}")))?;
        py.import("json")?.call_method1("loads", (text,))
    }
}
