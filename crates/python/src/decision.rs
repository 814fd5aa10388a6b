//! Decisions for Python: nodes with everything that belongs to them, or a refusal.

use std::sync::Arc;

use pyo3::prelude::*;
use topolane_fabric::Fabric;
use topolane_placement::{Explanation, Missing, Placement, Quality, Refusal as Reason, Request};

/// A request's nodes, links and GPUs. Immutable.
#[pyclass(frozen, module = "topolane._engine")]
pub struct Decision {
    fabric: Arc<Fabric>,
    decision: topolane_placement::Decision,
}

impl Decision {
    pub fn of(fabric: &Arc<Fabric>, decision: topolane_placement::Decision) -> Self {
        Decision { fabric: Arc::clone(fabric), decision }
    }

    /// Returns the decision of a request of which only the id matters.
    pub fn placed(fabric: &Arc<Fabric>, id: u64, placement: Arc<Placement>) -> Self {
        let request = Box::new(Request { id, ..Request::default() });
        Decision::of(fabric, topolane_placement::Decision { request, placement })
    }

    fn hops(&self) -> Quality {
        self.decision.hops(&self.fabric)
    }
}

#[pymethods]
impl Decision {
    /// The id of the request.
    #[getter]
    fn id(&self) -> u64 {
        self.decision.id()
    }

    /// The nodes in rank order, once per slot.
    #[getter]
    fn nodes(&self) -> Vec<u32> {
        self.decision.nodes().to_vec()
    }

    /// The cables between switches that no other job uses, ascending.
    #[getter]
    fn links(&self) -> Vec<u32> {
        self.decision.links().to_vec()
    }

    /// The share of full bandwidth on these links.
    #[getter]
    fn bandwidth_share(&self) -> f64 {
        self.decision.bandwidth_share()
    }

    /// The share of each cable between its groups that other jobs leave to this one, whatever they send; None if nothing
    /// is promised, or no message takes a detour.
    #[getter]
    fn kept_share(&self) -> Option<f64> {
        self.decision.kept_share(&self.fabric)
    }

    /// Nodes that the job holds and does not use.
    #[getter]
    fn spare(&self) -> Vec<u32> {
        self.decision.spare().to_vec()
    }

    /// The GPUs of every slot, in the order of `nodes`; empty for whole nodes and if no GPU is taken.
    #[getter]
    fn gpus(&self) -> Vec<Vec<usize>> {
        let slots = self.decision.placement.gpus().iter().take(self.decision.nodes().len());
        slots.map(|gpus| gpus.iter().collect()).collect()
    }

    /// (block, nodes in rank order) of every segment of the request; None without segments, or if the policy ignores
    /// them.
    #[getter]
    fn segments(&self) -> Option<Vec<(&str, Vec<u32>)>> {
        let segments = self.decision.segments(&self.fabric)?;
        Some(
            segments
                .into_iter()
                .map(|(block, nodes)| (self.fabric.block_name(block), nodes))
                .collect(),
        )
    }

    /// Average pairwise hops between the nodes.
    #[getter]
    fn aph(&self) -> f64 {
        self.hops().aph
    }

    /// Sum of hops over pairs of nodes: the hop-bytes of one byte between every pair.
    #[getter]
    fn hop_bytes(&self) -> f64 {
        self.hops().pair_hops
    }

    fn __repr__(&self) -> String {
        let names = self.decision.nodes().iter().map(|&node| self.fabric.node_name(node));
        let nodes = topolane_fabric::compress(names);
        let links = match self.decision.links().len() {
            0 => String::new(),
            count => format!(", links={count}"),
        };
        format!("Decision(id={}, nodes={nodes:?}{links})", self.decision.id())
    }
}

/// Why a request is not placed, and what stands in its way. Immutable.
#[pyclass(frozen, module = "topolane._engine")]
pub struct Refusal {
    explanation: Explanation,
}

impl From<Reason> for Refusal {
    fn from(refusal: Reason) -> Self {
        Refusal::from(Explanation { refusal, within: None, obstacles: Vec::new() })
    }
}

impl From<Explanation> for Refusal {
    fn from(explanation: Explanation) -> Self {
        Refusal { explanation }
    }
}

/// A group that keeps a request from being placed. Immutable.
#[pyclass(frozen, get_all, module = "topolane._engine")]
pub struct Obstacle {
    /// The level of the group; leaves are level 1.
    level: usize,
    /// The index of the group in its level.
    index: u32,
    /// The name of the group.
    name: String,
    /// Slots in the group that the request could use if it needed only slots.
    free: u32,
    /// The number of missing uplinks if `uplinks` is a number, otherwise of missing slots.
    missing: u32,
    /// The number of uplinks of the group; None if slots are missing.
    uplinks: Option<u32>,
    /// The jobs that hold what is missing, ascending.
    jobs: Vec<u64>,
}

impl From<&topolane_placement::Obstacle> for Obstacle {
    fn from(of: &topolane_placement::Obstacle) -> Self {
        let (missing, uplinks) = match of.missing {
            Missing::Slots(missing) => (missing, None),
            Missing::Uplinks { missing, of } => (missing, Some(of)),
        };
        Obstacle {
            level: of.level,
            index: of.group,
            name: of.name.clone(),
            free: of.free,
            missing,
            uplinks,
            jobs: of.jobs.clone(),
        }
    }
}

#[pymethods]
impl Refusal {
    /// `not-now`, `never`, `would-share-links` or `cannot-isolate`.
    #[getter]
    fn name(&self) -> &'static str {
        self.explanation.refusal.name()
    }

    /// The reason in a sentence.
    #[getter]
    fn why(&self) -> String {
        self.explanation.refusal.to_string()
    }

    /// The kind of group (`leaf`, `pod`, ...) of which one must hold the request; None if there is only one.
    #[getter]
    fn within(&self) -> Option<&str> {
        self.explanation.within.as_deref()
    }

    /// The groups that stand in the way; those with most free slots come first.
    #[getter]
    fn obstacles(&self) -> Vec<Obstacle> {
        self.explanation.obstacles.iter().map(Obstacle::from).collect()
    }

    fn __str__(&self) -> String {
        self.why()
    }

    fn __repr__(&self) -> String {
        format!("Refusal({:?}, {:?})", self.name(), self.why())
    }
}

/// A placement or a refusal.
#[derive(IntoPyObject)]
pub enum Answer {
    Decision(Decision),
    Refusal(Refusal),
}
