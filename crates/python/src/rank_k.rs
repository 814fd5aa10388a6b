//! Chooses cores per node, for Python.

use std::sync::Arc;

use pyo3::prelude::*;
use topolane_fabric::{Fabric, NodeSet};
use topolane_placement::rank_k::{self as engine, CoresPerNode, PredictionSetting, RankKRequest};
use topolane_placement::{Occupancy, Policy, Request};
use topolane_traffic::{MODELS, PhaseKind, contention, pattern};

use crate::answering::answering;
use crate::decision::Decision;
use crate::error::{bad_input, input_error};
use crate::policy::{Raised, policy_on};
use crate::routing::{Routing, laid, sending};
use crate::state::State;
use crate::traffic::Traffic;

/// A program with its number of processes, and what it computes, stores and sends. Immutable.
#[pyclass(frozen, module = "topolane._engine")]
pub struct Profile {
    profile: Arc<engine::Profile>,
}

#[pymethods]
impl Profile {
    /// Returns the profile of a program. `traffic` is what it sends per iteration: a pattern by name, or a matrix.
    /// Messages of a matrix are those of collective operations if `collective`.
    #[new]
    #[pyo3(signature = (processes, traffic, *, iterations=1.0, core_seconds=0.0, memory_traffic=0.0, memory=0, collective=true, seed=0))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        processes: u32,
        traffic: &Bound<'_, PyAny>,
        iterations: f64,
        core_seconds: f64,
        memory_traffic: f64,
        memory: u64,
        collective: bool,
        seed: u64,
    ) -> PyResult<Self> {
        if processes == 0 {
            return Err(bad_input("a program has at least 1 process, not 0"));
        }
        let amounts = [
            ("iterations", iterations),
            ("core_seconds", core_seconds),
            ("memory_traffic", memory_traffic),
        ];
        for (what, amount) in amounts {
            if !(amount.is_finite() && amount >= 0.0) {
                return Err(bad_input(format!("{what} must be a number from 0, not {amount}")));
            }
        }
        let mut profile = if let Ok(text) = traffic.extract::<String>() {
            let made = answering(py, move || {
                let pattern = pattern(&text)?;
                engine::Profile::of(&pattern, processes, iterations, seed)
            })?;
            made.map_err(input_error)?
        } else {
            let matrix = &traffic.cast::<Traffic>()?.get().matrix;
            if matrix.ranks() != processes {
                return Err(bad_input(format!(
                    "the traffic has {} ranks, but the program {processes} processes",
                    matrix.ranks()
                )));
            }
            let kind = if collective { PhaseKind::Collective } else { PhaseKind::PointToPoint };
            engine::Profile::of_traffic((**matrix).clone(), kind, iterations)
        };
        profile.core_seconds = core_seconds;
        profile.memory_traffic = memory_traffic;
        profile.memory = memory;
        Ok(Profile { profile: Arc::new(profile) })
    }

    /// The number of processes.
    #[getter]
    fn processes(&self) -> u32 {
        self.profile.processes()
    }
}

/// One k and its outcome: nodes and seconds, or a refusal with its reason.
#[pyclass(frozen, get_all, module = "topolane._engine")]
pub struct Rank {
    /// The number of cores per node.
    k: u32,
    /// The nodes that it would get; None if this k is not possible.
    decision: Option<Py<Decision>>,
    /// Predicted seconds in total.
    total: Option<f64>,
    /// Seconds of computation.
    computation: Option<f64>,
    /// Seconds of collective operations.
    collective: Option<f64>,
    /// Seconds of messages between two ranks.
    point_to_point: Option<f64>,
    /// Seconds that other jobs lose meanwhile, divided by the fewest nodes that the program may have. Computed for
    /// policies that read traffic, and not part of `total`. The k with the smallest sum of both is chosen.
    neighbours: Option<f64>,
    /// The name of the refusal: "cores", "memory", "not-now", ...
    refusal: Option<&'static str>,
    /// The refusal in a sentence.
    why: Option<String>,
    /// Whether this k is the best one.
    chosen: bool,
}

/// Predicts a program's run time for every k, on the nodes that a policy would choose now, while other jobs
/// communicate: each is (node of every rank, traffic).
#[pyfunction]
#[pyo3(signature = (state, routing, policy, profile, *, cores="auto", model="full", jobs=vec![], shared=false, id=0, eligible=None, seed=0))]
#[allow(clippy::too_many_arguments)]
pub fn rank_k(
    py: Python<'_>,
    state: &State,
    routing: &Routing,
    policy: &Bound<'_, PyAny>,
    profile: &Profile,
    cores: &str,
    model: &str,
    jobs: Vec<(Vec<u32>, Py<Traffic>)>,
    shared: bool,
    id: u64,
    eligible: Option<Vec<u32>>,
    seed: u64,
) -> PyResult<Vec<Rank>> {
    let (policy, raised) = policy_on(state.occupancy.fabric(), policy, seed)?;
    let request = Request { id, walltime: f64::INFINITY, ..Request::default() };
    let arguments = RankKArguments { profile, cores, model, jobs, shared, request, eligible };
    arguments.of(py, &state.occupancy, policy, &raised, routing)
}

/// The arguments of [`rank_k`] without the state, the policy and the routing.
pub struct RankKArguments<'a> {
    pub profile: &'a Profile,
    pub cores: &'a str,
    pub model: &'a str,
    pub jobs: Vec<(Vec<u32>, Py<Traffic>)>,
    pub shared: bool,
    /// The request; its nodes and share are ignored.
    pub request: Request,
    pub eligible: Option<Vec<u32>>,
}

impl RankKArguments<'_> {
    pub fn of(
        self,
        py: Python<'_>,
        occupancy: &Arc<Occupancy>,
        policy: Arc<dyn Policy>,
        raised: &Raised,
        routing: &Routing,
    ) -> PyResult<Vec<Rank>> {
        let fabric = occupancy.fabric();
        if !Arc::ptr_eq(fabric, routing.routing.fabric()) {
            return Err(bad_input("the routing is of another machine than the state"));
        }
        let cores_per_node = cores_from(self.cores)?;
        let mut model = contention(self.model, &*routing.routing).ok_or_else(|| {
            let names: Vec<&str> = MODELS.iter().map(|info| info.name).collect();
            bad_input(format!("unknown model {:?}; there are {}", self.model, names.join(", ")))
        })?;
        if let Some(node) = self.eligible.iter().flatten().find(|&&node| node >= fabric.nodes()) {
            return Err(bad_input(format!("eligible node {node} is not on the machine")));
        }
        let eligible = self.eligible.map(|nodes| Arc::new(NodeSet::of(fabric.nodes(), nodes)));
        let request = Request { nodes: 1, eligible, ..self.request };
        let (id, shared, profile) = (request.id, self.shared, Arc::clone(&self.profile.profile));
        let (occupancy, routing) = (Arc::clone(occupancy), Arc::clone(&routing.routing));
        let mut jobs = sending(self.jobs);
        let ranks = raised.asking(py, move || {
            engine::thin(&mut jobs);
            for (job, flows) in laid(&*routing, &jobs)?.into_iter().enumerate() {
                model.enter(job as u64, flows);
            }
            let wanted = RankKRequest { request: &request, profile: &profile, shared };
            let setting =
                PredictionSetting { occupancy: &occupancy, policy: &*policy, routing: &*routing };
            Ok(engine::rank_k(wanted, setting, &mut *model, cores_per_node))
        })?;
        let ranks = ranks.map_err(input_error)?;
        let best = engine::best(&ranks).map(|rank| rank.k);
        ranks.into_iter().map(|rank| view(py, fabric, (id, rank), best)).collect()
    }
}

/// Parses `auto`, `fixed:k` or a number.
pub fn cores_from(text: &str) -> PyResult<CoresPerNode> {
    CoresPerNode::parse(text).ok_or_else(|| {
        bad_input(format!("cores per node: {text:?} is neither auto, fixed:k nor a number from 1"))
    })
}

fn view(
    py: Python<'_>,
    fabric: &Arc<Fabric>,
    (id, rank): (u64, engine::Rank),
    best: Option<u32>,
) -> PyResult<Rank> {
    let (k, chosen) = (rank.k, best == Some(rank.k));
    Ok(match rank.outcome {
        Ok((placement, prediction)) => Rank {
            k,
            decision: Some(Py::new(py, Decision::placed(fabric, id, Arc::new(placement)))?),
            total: Some(prediction.total()),
            computation: Some(prediction.computation),
            collective: Some(prediction.collective),
            point_to_point: Some(prediction.point_to_point),
            neighbours: Some(prediction.neighbours),
            refusal: None,
            why: None,
            chosen,
        },
        Err(misfit) => Rank {
            k,
            decision: None,
            total: None,
            computation: None,
            collective: None,
            point_to_point: None,
            neighbours: None,
            refusal: Some(misfit.name()),
            why: Some(misfit.to_string()),
            chosen,
        },
    })
}
