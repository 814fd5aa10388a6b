//! Asks the queue `slurm` about every recorded start, for Python.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use topolane_fabric::{Fabric, InputError};
use topolane_scheduler::queues::Slurm;
use topolane_scheduler::queues::slurm::{
    Because, By, RecordedStart, Retrace, RetraceAnswer, RetraceQuestion, SlurmConfig,
};
use topolane_simulator::{RunOptions, simulate as run_events};

use crate::error::{bad_input, input_error};
use crate::machine::Machine;
use crate::policy::policy_on;
use crate::workload::Workload;

/// A recorded start: index in the workload, time, nodes, and the scheduler that started it, if known.
type StartRow = (u64, f64, Vec<u32>, Option<String>);
/// An answer of the queue: the time of the question, the scheduler, the recorded starts with answers, and other jobs
/// that it would start.
type Row = (f64, &'static str, Vec<(u64, &'static str)>, Vec<u64>);

/// Follows the recorded starts of a workload. Before each, asks the queue `slurm` what it would have started.
#[pyfunction]
pub fn retrace(
    py: Python<'_>,
    workload: &Bound<'_, Workload>,
    machine: &Bound<'_, Machine>,
    policy: &Bound<'_, PyAny>,
    queue_config: (String, String),
    starts: Vec<StartRow>,
) -> PyResult<Vec<Row>> {
    let (policy, raised) = policy_on(&machine.get().fabric, policy, 0)?;
    let (file, text) = queue_config;
    let jobs = Arc::clone(&workload.get().jobs);
    let fabric = Arc::clone(&machine.get().fabric);
    let slurm = SlurmConfig::parse(&text).and_then(|config| Slurm::new(config, &fabric));
    let slurm = slurm.map_err(|error| input_error(error.in_file(file)))?;
    let start = |(id, at, nodes, by): StartRow| {
        let by = by.as_deref().map(by_named).transpose()?;
        if !at.is_finite() || !are_nodes(&nodes, &fabric) {
            return Err(bad_input(format!(
                "start {id} at {at}: {nodes:?} must be different nodes of the machine, and the time a number"
            )));
        }
        Ok((id, RecordedStart { at, nodes, by }))
    };
    let starts: HashMap<u64, RecordedStart> =
        starts.into_iter().map(start).collect::<PyResult<_>>()?;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let queue = Box::new(Retrace::new(slurm, starts, Arc::clone(&asked)));
    let ran = raised.asking(py, move || -> Result<_, InputError> {
        run_events(&jobs, &fabric, &policy, queue, &RunOptions::default(), &mut |_| Ok(()))
    })?;
    ran.map_err(input_error)?;
    let asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(asked.iter().map(row).collect())
}

/// Whether these are distinct nodes of the machine.
fn are_nodes(nodes: &[u32], fabric: &Fabric) -> bool {
    let different: HashSet<u32> = nodes.iter().copied().collect();
    different.len() == nodes.len() && different.iter().all(|&node| node < fabric.nodes())
}

const SCHEDULERS: [(&str, By); 2] = [("main", By::Main), ("backfill", By::Backfill)];

fn by_named(name: &str) -> PyResult<By> {
    let found = SCHEDULERS.iter().find(|(known, _)| *known == name);
    found.map(|&(_, by)| by).ok_or_else(|| {
        bad_input(format!("unknown scheduler {name:?}; there are main and backfill"))
    })
}

fn row(asked: &RetraceQuestion) -> Row {
    let by = if asked.by == By::Main { "main" } else { "backfill" };
    let recorded = asked.recorded.iter().map(|&(id, answer)| (id, word(answer))).collect();
    (asked.time, by, recorded, asked.more.clone())
}

fn word(answer: RetraceAnswer) -> &'static str {
    match answer {
        RetraceAnswer::Same(true) => "same",
        RetraceAnswer::Same(false) => "other nodes",
        RetraceAnswer::Not(Because::Unknown) => "not eligible",
        RetraceAnswer::Not(Because::Limit) => "limit",
        RetraceAnswer::Not(Because::Nodes) => "no nodes",
        RetraceAnswer::Not(Because::Others) => "behind others",
    }
}
