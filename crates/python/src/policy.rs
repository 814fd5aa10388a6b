//! Policies by name, and policies written in Python.

use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use topolane_fabric::{Fabric, NodeIndex};
use topolane_placement::{
    Choice, FreeSlots, Gives, JobTraffic, Occupancy, POLICIES, Policy, Refusal, Request, Traits,
    policy,
};
use topolane_scheduler::QUEUES;

use crate::answering::answering;
use crate::error::bad_input;
use crate::machine::Machine;
use crate::views::{RequestView, StateView};

/// (name, summary) of every built-in policy.
#[pyfunction]
pub fn policies() -> Vec<(&'static str, &'static str)> {
    POLICIES.iter().map(|info| (info.name, info.summary)).collect()
}

/// The names of the built-in policies that isolate jobs.
#[pyfunction]
pub fn isolating_policies() -> Vec<&'static str> {
    let isolating = POLICIES.iter().filter(|info| (info.build)(0).traits().isolates);
    isolating.map(|info| info.name).collect()
}

/// The names of the built-in policies that dedicate links, and whether each uses a request's minimum bandwidth share.
#[pyfunction]
pub fn linking_policies() -> Vec<(&'static str, bool)> {
    let linking = POLICIES.iter().filter(|info| info.gives != Gives::Nodes);
    linking.map(|info| (info.name, info.gives == Gives::LinksByShare)).collect()
}

/// The names of the built-in policies that read what jobs send.
#[pyfunction]
pub fn traffic_policies() -> Vec<&'static str> {
    let reading = POLICIES.iter().filter(|info| (info.build)(0).reads_traffic());
    reading.map(|info| info.name).collect()
}

/// The pattern that is assumed for a job whose traffic is unknown, and the share of its time, 0 to 1, for which it is
/// assumed to communicate.
#[pyfunction]
pub fn assumed_traffic() -> (&'static str, f64) {
    (JobTraffic::ASSUMED, JobTraffic::ASSUMED_COMMUNICATION)
}

/// (name, summary) of every queue discipline.
#[pyfunction]
pub fn queues() -> Vec<(&'static str, &'static str)> {
    QUEUES.iter().map(|info| (info.name, info.summary)).collect()
}

/// The names of the queue disciplines, for an error message.
pub fn queue_names() -> String {
    QUEUES.iter().map(|info| info.name).collect::<Vec<_>>().join(", ")
}

/// The first exception raised by a Python policy, because `choose` itself can only refuse. Empty for a built-in policy.
#[derive(Clone, Default)]
pub struct Raised(Option<Arc<Mutex<Option<PyErr>>>>);

impl Raised {
    /// Whether the policy is written in Python.
    pub fn is_python(&self) -> bool {
        self.0.is_some()
    }

    /// The exception, if there was one.
    pub fn take(&self) -> Option<PyErr> {
        self.0.as_ref()?.lock().ok().and_then(|mut first| first.take())
    }

    /// Raises the exception, if there was one.
    pub fn check(&self) -> PyResult<()> {
        self.take().map_or(Ok(()), Err)
    }

    /// Runs `work`, which asks the policy, and raises what the policy raised. A built-in policy may take long, so this
    /// thread handles signals. A Python policy handles signals itself, and its thread must not outlive the interpreter.
    pub fn asking<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> PyResult<T> {
        let made = if self.is_python() { work() } else { answering(py, work)? };
        self.check()?;
        Ok(made)
    }
}

/// Returns the policy for a Python argument, as [`policy_from`] does, on a machine.
///
/// # Errors
/// Those of `policy_from`, and a policy that does not work on a machine of this kind.
pub fn policy_on(
    fabric: &Fabric,
    policy_or_name: &Bound<'_, PyAny>,
    seed: u64,
) -> PyResult<(Arc<dyn Policy>, Raised)> {
    let (policy, raised) = policy_from(policy_or_name, seed)?;
    policy.check_wiring(fabric).map_err(|refusal| {
        bad_input(format!("policy {} on {}: {refusal}", policy.name(), fabric.name()))
    })?;
    Ok((policy, raised))
}

/// Checks that a live system can keep what a policy promises on a machine.
///
/// # Errors
/// It cannot, in a sentence; those of `policy_from`.
#[pyfunction]
pub fn check_live(machine: &Machine, policy: &Bound<'_, PyAny>) -> PyResult<()> {
    let (policy, _) = policy_from(policy, 0)?;
    policy.check_live(&machine.fabric).map_err(|why| {
        bad_input(format!("policy {} on {}: {why}", policy.name(), machine.fabric.name()))
    })
}

/// Returns the policy for a Python argument: a name, or an object with `choose(request, state)`.
fn policy_from(
    policy_or_name: &Bound<'_, PyAny>,
    seed: u64,
) -> PyResult<(Arc<dyn Policy>, Raised)> {
    if let Ok(name) = policy_or_name.extract::<String>() {
        let found = policy(&name, seed).ok_or_else(|| {
            let names: Vec<&str> = POLICIES.iter().map(|info| info.name).collect();
            bad_input(format!(
                "unknown policy {name:?}; there are {}, or module:Class",
                names.join(", ")
            ))
        })?;
        return Ok((Arc::from(found), Raised::default()));
    }
    let flag = |name: &str| -> PyResult<bool> {
        policy_or_name.getattr_opt(name)?.map_or(Ok(false), |value| value.extract())
    };
    let name = match policy_or_name.getattr_opt("name")? {
        Some(name) => name.extract()?,
        None => policy_or_name.get_type().name()?.to_string(),
    };
    let raised = Arc::default();
    let policy = PythonPolicy {
        isolates: flag("isolates")?,
        count_only: flag("count_only")?,
        object: policy_or_name.clone().unbind(),
        name,
        raised: Arc::clone(&raised),
    };
    Ok((Arc::new(policy), Raised(Some(raised))))
}

/// A policy whose `choose` is a Python method.
struct PythonPolicy {
    name: String,
    isolates: bool,
    count_only: bool,
    object: Py<PyAny>,
    raised: Arc<Mutex<Option<PyErr>>>,
}

impl PythonPolicy {
    fn ask(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> PyResult<Option<Vec<NodeIndex>>> {
        Python::attach(|py| {
            let request_view = RequestView::of(request, occupancy.fabric());
            let state = StateView::of(py, free, occupancy)?;
            let answer = self
                .object
                .call_method1(py, "choose", (request_view, state))
                .map_err(|error| in_one_sentence(py, &self.name, error))?;
            let nodes: Option<Vec<NodeIndex>> =
                answer.extract(py).map_err(|_| no_nodes(&self.name, answer.bind(py)))?;
            if let Some(nodes) = &nodes {
                check_answer(&self.name, nodes, request, free)?;
            }
            Ok(nodes)
        })
    }
}

/// Converts an exception of a policy to bad input, with the position where it was raised and the exception as its
/// cause.
fn in_one_sentence(py: Python<'_>, name: &str, error: PyErr) -> PyErr {
    if error.is_instance_of::<PyKeyboardInterrupt>(py) {
        return error;
    }
    let text = error.to_string();
    let place = raised_at(py, &error).map_or_else(|_| String::new(), |place| format!(" ({place})"));
    let own =
        bad_input(format!("policy {name} raised {}{place}", text.lines().next().unwrap_or("")));
    own.set_cause(py, Some(error));
    own
}

/// The file and line of the innermost frame.
fn raised_at(py: Python<'_>, error: &PyErr) -> PyResult<String> {
    let mut trace = error.traceback(py).into_pyobject(py)?.into_any();
    loop {
        let next = trace.getattr("tb_next")?;
        if next.is_none() {
            break;
        }
        trace = next;
    }
    let file = trace.getattr("tb_frame")?.getattr("f_code")?.getattr("co_filename")?;
    Ok(format!("{file}:{}", trace.getattr("tb_lineno")?))
}

/// The error for an answer of the wrong type.
fn no_nodes(name: &str, answer: &Bound<'_, PyAny>) -> PyErr {
    let shown: String = answer.repr().map_or_else(|_| String::new(), |text| text.to_string());
    let shown: String = shown.lines().next().unwrap_or("").chars().take(60).collect();
    bad_input(format!("policy {name} must answer with a list of node indices or None, not {shown}"))
}

/// Checks that a policy named free slots, and exactly the number that was requested.
fn check_answer(
    name: &str,
    nodes: &[NodeIndex],
    request: &Request,
    free: &FreeSlots<'_>,
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
        let (node, times) = (same[0], same.len());
        let free = if node < free.fabric().nodes() { free.count(0, node) } else { 0 };
        if (free as usize) < times {
            return Err(bad_input(format!(
                "policy {name} named node {node} for {times} of the request's slots, where {free} are free"
            )));
        }
    }
    Ok(())
}

impl Policy for PythonPolicy {
    fn name(&self) -> &str {
        &self.name
    }

    fn traits(&self) -> Traits {
        let Self { isolates, count_only, .. } = *self;
        let counting = if count_only { Traits::COUNT_ONLY } else { Traits::NONE };
        Traits { isolates, ..counting }
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<Choice, Refusal> {
        let refusal = Refusal::NotNow { wanted: request.nodes, free: free.total() };
        // After its first exception, a policy is not asked again, because the run is about to end.
        if self.raised.lock().is_ok_and(|first| first.is_some()) {
            return Err(refusal);
        }
        let answer = self.ask(request, free, occupancy).unwrap_or_else(|error| {
            if let Ok(mut first) = self.raised.lock() {
                first.get_or_insert(error);
            }
            None
        });
        answer.map(Choice::nodes).ok_or(refusal)
    }
}
