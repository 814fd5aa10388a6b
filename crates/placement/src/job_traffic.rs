//! The traffic of a job, before it has nodes and after.

use std::sync::Arc;

use topolane_fabric::InputError;
use topolane_traffic::{Flows, Traffic, pattern};

/// The most entries of a matrix that a decision uses. A larger matrix is replaced by an even sample of this size.
pub(crate) const MOST_ENTRIES: usize = 4096;

/// What a job sends, before it has nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct JobTraffic {
    traffic: Arc<Traffic>,
    pub(crate) communication: f64,
    pub(crate) on_rails: bool,
}

impl JobTraffic {
    /// The traffic assumed for a job whose traffic is unknown: each node sends to four others, drawn at random.
    pub const ASSUMED: &'static str = "uniform(messages=4)";
    /// The share of its time for which such a job is assumed to communicate.
    pub const ASSUMED_COMMUNICATION: f64 = 0.3;

    /// Returns a job's traffic: `traffic` between its ranks, and the share of its time for which it communicates, 0 to
    /// 1. Ranks are spread evenly over the slots, in blocks.
    pub fn new(traffic: &Arc<Traffic>, communication: f64) -> Self {
        let traffic = if traffic.entries().len() > MOST_ENTRIES {
            Arc::new(traffic.thinned(MOST_ENTRIES))
        } else {
            Arc::clone(traffic)
        };
        JobTraffic { traffic, communication, on_rails: true }
    }

    /// With `true`, a slot sends on the rails of its GPUs ([`rails_of`](crate::rails_of)), which is the default;
    /// otherwise on the rails that the routing prefers.
    #[must_use]
    pub fn on_rails(self, on_rails: bool) -> Self {
        JobTraffic { on_rails, ..self }
    }

    /// Returns the traffic assumed for a job on `slots` slots whose traffic is unknown.
    ///
    /// # Errors
    /// There are more slots than a matrix may have ranks.
    pub fn assumed(slots: u32) -> Result<Self, InputError> {
        let traffic = pattern(JobTraffic::ASSUMED)?.traffic(slots, 0)?;
        Ok(JobTraffic::new(&Arc::new(traffic), JobTraffic::ASSUMED_COMMUNICATION))
    }

    /// Returns the traffic between `slots` slots.
    pub(crate) fn between(&self, slots: u32) -> Arc<Traffic> {
        if self.traffic.ranks() <= slots {
            return Arc::clone(&self.traffic);
        }
        // Folding only reduces the ranks, so it cannot fail here.
        self.traffic.folded(slots).map_or_else(|_| Arc::clone(&self.traffic), Arc::new)
    }
}

/// The flows of a job on the nodes that it got.
#[derive(Debug, Clone, PartialEq)]
pub struct LaidTraffic {
    pub(crate) job: u64,
    pub(crate) flows: Arc<Flows>,
    pub(crate) weight: Weight,
}

impl LaidTraffic {
    /// The id of the job.
    pub fn job(&self) -> u64 {
        self.job
    }

    /// Returns the same flows for a job that must have ended at time `end`, in seconds.
    #[must_use]
    pub fn until(mut self, end: f64) -> Self {
        self.weight.end = end;
        self
    }
}

/// How much a lost second of a job counts, and the times, in seconds, between which the job runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Weight {
    pub(crate) slots: f64,
    pub(crate) communication: f64,
    /// The start of the job. It is in the future if the job was promised its nodes for a later time.
    pub(crate) start: f64,
    /// The end of the job by its time limit.
    pub(crate) end: f64,
}
