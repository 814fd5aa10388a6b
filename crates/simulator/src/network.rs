//! How the jobs of a run communicate: routing, contention model and patterns.

use std::sync::Arc;

use topolane_fabric::{Routing, scramble};
use topolane_placement::rank_k::CoresPerNode;
use topolane_traffic::{ModelInfo, Patterned};

use crate::workload::Job;

/// The network of a run, and how jobs use it.
#[derive(Clone)]
pub struct Network {
    /// The routing between nodes.
    pub routing: Arc<dyn Routing>,
    /// The contention model.
    pub model: &'static ModelInfo,
    /// The share of its run time alone for which a job communicates, 0 to 1.
    pub communication: f64,
    /// The communication patterns, from which each job draws one. Never empty.
    pub patterns: Vec<Patterned>,
    /// Whether a job is ended at its walltime even if only contention has slowed it down.
    pub kill_at_walltime: bool,
    /// How the cores per node of each job are chosen; `None`: whole nodes, as in the log.
    pub cores_per_node: Option<CoresPerNode>,
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network")
            .field("routing", &self.routing.name())
            .field("model", &self.model.name)
            .field("communication", &self.communication)
            .field("patterns", &self.patterns)
            .finish_non_exhaustive()
    }
}

impl Network {
    /// The name of a pattern, with its parameters if another pattern has the same name.
    pub fn pattern_name(&self, pattern: usize) -> String {
        let Some(own) = self.patterns.get(pattern) else { return String::new() };
        let same = self.patterns.iter().filter(|other| other.name() == own.name());
        if same.count() > 1 { own.to_string() } else { own.name().to_owned() }
    }

    /// The index of a job's pattern. It depends only on the job's number and the seed, so it is the same in every run.
    pub fn pattern_of(&self, job: &Job, seed: u64) -> usize {
        let draw = scramble(scramble(!seed) ^ job.id);
        ((u128::from(draw) * self.patterns.len() as u128) >> 64) as usize
    }
}
