//! What a job sends: before it has nodes, and on its nodes.

use std::sync::Arc;

use topolane_fabric::InputError;
use topolane_traffic::{Flows, Traffic, pattern};

/// The most entries of a matrix that a decision looks at. A larger one is represented by this number of its entries, drawn evenly.
pub(crate) const MOST_ENTRIES: usize = 4096;

/// What a job sends, as far as it is known before the job has nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct JobTraffic {
    traffic: Arc<Traffic>,
    pub(crate) communication: f64,
    pub(crate) on_rails: bool,
}

impl JobTraffic {
    /// What a job whose traffic is not known is taken to send: each node to as many others, drawn at random.
    pub const ASSUMED: &'static str = "uniform(messages=4)";
    /// And the part of its time for which it is taken to do so.
    pub const ASSUMED_COMMUNICATION: f64 = 0.3;

    /// The traffic between the ranks of a job, and the part of its time for which it communicates, 0 to 1. The ranks lie on
    /// its slots evenly and in blocks.
    pub fn new(traffic: &Arc<Traffic>, communication: f64) -> Self {
        let traffic = if traffic.entries().len() > MOST_ENTRIES {
            Arc::new(traffic.thinned(MOST_ENTRIES))
        } else {
            Arc::clone(traffic)
        };
        JobTraffic { traffic, communication, on_rails: true }
    }

    /// The same, sent on the rails of the job's GPUs ([`rails_of`](crate::rails_of)), which is the rule, or as the routing
    /// prefers.
    #[must_use]
    pub fn on_rails(self, on_rails: bool) -> Self {
        JobTraffic { on_rails, ..self }
    }

    /// The traffic of a job on `slots` slots of which nothing is known.
    ///
    /// # Errors
    /// More slots than a matrix may have ranks.
    pub fn assumed(slots: u32) -> Result<Self, InputError> {
        let traffic = pattern(JobTraffic::ASSUMED)?.traffic(slots, 0)?;
        Ok(JobTraffic::new(&Arc::new(traffic), JobTraffic::ASSUMED_COMMUNICATION))
    }

    /// The traffic between `slots` slots.
    pub(crate) fn between(&self, slots: u32) -> Arc<Traffic> {
        if self.traffic.ranks() <= slots {
            return Arc::clone(&self.traffic);
        }
        // No more ranks than before, so no matrix is refused.
        self.traffic.folded(slots).map_or_else(|_| Arc::clone(&self.traffic), Arc::new)
    }
}

/// The flows of a job on its nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct LaidTraffic {
    pub(crate) job: u64,
    pub(crate) flows: Arc<Flows>,
    pub(crate) weight: Weight,
}

impl LaidTraffic {
    /// The identity of the job.
    pub fn job(&self) -> u64 {
        self.job
    }

    /// The same of a job that must have ended at that time, seconds.
    #[must_use]
    pub fn until(mut self, end: f64) -> Self {
        self.weight.end = end;
        self
    }
}

/// What a second of a job counts for, and the time within which it runs, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Weight {
    pub(crate) slots: f64,
    pub(crate) communication: f64,
    /// When its nodes were chosen; later than now for a job that is promised its nodes for a later time.
    pub(crate) start: f64,
    /// By its time limit.
    pub(crate) end: f64,
}
