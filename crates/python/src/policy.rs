//! Policies by name, and policies written in Python.

use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use topolane_fabric::NodeIndex;
use topolane_placement::{Occupancy, POLICIES, Policy, Refusal, Request, Room, Share, policy};
use topolane_scheduler::QUEUES;

use crate::error::bad_input;
use crate::state::{RequestView, StateView};

/// (name, summary) of every policy built in.
#[pyfunction]
pub fn policies() -> Vec<(&'static str, &'static str)> {
    POLICIES.iter().map(|info| (info.name, info.summary)).collect()
}

/// (name, summary) of every queue discipline.
#[pyfunction]
pub fn queues() -> Vec<(&'static str, &'static str)> {
    QUEUES.iter().map(|info| (info.name, info.summary)).collect()
}

/// The first exception that a Python policy raised: `choose` itself can only refuse.
pub type Raised = Arc<Mutex<Option<PyErr>>>;

/// The policy a Python caller means: a name, or an object with `choose(request, state)`.
pub fn policy_from(
    policy_or_name: &Bound<'_, PyAny>,
    seed: u64,
) -> PyResult<(Arc<dyn Policy>, Raised)> {
    let raised = Raised::default();
    if let Ok(name) = policy_or_name.extract::<String>() {
        let found = policy(&name, seed).ok_or_else(|| {
            let names: Vec<&str> = POLICIES.iter().map(|info| info.name).collect();
            bad_input(format!(
                "unknown policy {name:?}; there are {}, or module:Class",
                names.join(", ")
            ))
        })?;
        return Ok((Arc::from(found), raised));
    }
    let flag = |name: &str| -> PyResult<bool> {
        policy_or_name.getattr_opt(name)?.map_or(Ok(false), |value| value.extract())
    };
    let name = match policy_or_name.getattr_opt("name")? {
        Some(name) => name.extract()?,
        None => policy_or_name.get_type().name()?.to_string(),
    };
    let policy = PythonPolicy {
        isolates: flag("isolates")?,
        object: policy_or_name.clone().unbind(),
        name,
        raised: Arc::clone(&raised),
    };
    Ok((Arc::new(policy), raised))
}

/// A policy whose rule is a Python method.
struct PythonPolicy {
    name: String,
    isolates: bool,
    object: Py<PyAny>,
    raised: Raised,
}

impl PythonPolicy {
    fn ask(
        &self,
        request: &Request,
        room: &Room<'_>,
        occupancy: &Occupancy,
    ) -> PyResult<Option<Vec<NodeIndex>>> {
        Python::attach(|py| {
            let request_view = RequestView::of(request);
            let state = StateView::of(py, room, occupancy)?;
            let answer = self.object.call_method1(py, "choose", (request_view, state))?;
            let nodes: Option<Vec<NodeIndex>> = answer.extract(py)?;
            if let Some(nodes) = &nodes {
                check_answer(&self.name, nodes, request, room)?;
            }
            Ok(nodes)
        })
    }
}

/// A policy must name as many free slots as were asked for.
fn check_answer(
    name: &str,
    nodes: &[NodeIndex],
    request: &Request,
    room: &Room<'_>,
) -> PyResult<()> {
    if nodes.len() != request.nodes as usize {
        return Err(bad_input(format!(
            "policy {name} named {} nodes for a request of {}",
            nodes.len(),
            request.nodes
        )));
    }
    let mut sorted = nodes.to_vec();
    sorted.sort_unstable();
    for same in sorted.chunk_by(|a, b| a == b) {
        if same[0] >= room.fabric().nodes() || room.count(0, same[0]) < same.len() as u32 {
            return Err(bad_input(format!(
                "policy {name} named node {} {} times, which has not that many free slots",
                same[0],
                same.len()
            )));
        }
    }
    Ok(())
}

impl Policy for PythonPolicy {
    fn name(&self) -> &str {
        &self.name
    }

    fn choose(
        &self,
        request: &Request,
        room: &Room<'_>,
        occupancy: &Occupancy,
    ) -> Result<Vec<NodeIndex>, Refusal> {
        let free = room.total();
        let answer = self.ask(request, room, occupancy).unwrap_or_else(|error| {
            if let Ok(mut first) = self.raised.lock() {
                first.get_or_insert(error);
            }
            None
        });
        answer.ok_or(Refusal::NotNow { wanted: request.nodes, free })
    }

    fn isolates(&self) -> bool {
        self.isolates
    }
}

/// (cores, memory) of a share; None for whole nodes.
pub fn share_view(share: Share) -> Option<(u32, u64)> {
    match share {
        Share::Whole => None,
        Share::Part { cores, memory } => Some((cores, memory)),
    }
}
