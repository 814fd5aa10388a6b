//! How the jobs of a run communicate: the routes, the model of contention and the patterns.

use std::sync::Arc;

use topolane_fabric::{Routing, scramble};
use topolane_placement::rank_k::CoresPerNode;
use topolane_traffic::{ModelInfo, Patterned};

use crate::workload::Job;

/// How the jobs of a run meet on the network.
#[derive(Clone)]
pub struct Network {
    /// The ways between nodes.
    pub routing: Arc<dyn Routing>,
    /// The model of contention.
    pub model: &'static ModelInfo,
    /// The part of its run time alone that a job communicates, 0 to 1.
    pub communication: f64,
    /// The patterns; each job draws one of them. Never empty.
    pub patterns: Vec<Patterned>,
    /// Whether a job ends at its walltime though only contention has kept it so long.
    pub kill_at_walltime: bool,
    /// How many cores of each node a job takes; `None`: the nodes of the log, whole.
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
    /// What a pattern is called: its name, with its parameters where another has that name too.
    pub fn pattern_name(&self, pattern: usize) -> String {
        let Some(own) = self.patterns.get(pattern) else { return String::new() };
        let same = self.patterns.iter().filter(|other| other.name() == own.name());
        if same.count() > 1 { own.to_string() } else { own.name().to_owned() }
    }

    /// Which pattern a job has: drawn from its number and the seed alone, so that it is the same
    /// in every run.
    pub fn pattern_of(&self, job: &Job, seed: u64) -> usize {
        let draw = scramble(scramble(!seed) ^ job.id);
        ((u128::from(draw) * self.patterns.len() as u128) >> 64) as usize
    }
}
