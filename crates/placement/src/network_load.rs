//! The traffic of the running jobs on the network at this moment.

use std::collections::HashMap;
use std::sync::Arc;

use topolane_fabric::Routing;
use topolane_traffic::{Congestion, Contention};

use crate::job_traffic::{LaidTraffic, Weight};

/// The flows of the running jobs on the channels of a machine. Every claim and release updates them. The model
/// `congestion` predicts how much each job slows down.
#[derive(Debug, Clone)]
pub struct NetworkLoad {
    pub(crate) routing: Arc<dyn Routing>,
    pub(crate) present: Congestion,
    pub(crate) weights: HashMap<u64, Weight>,
    /// The time, seconds.
    pub(crate) now: f64,
}

impl NetworkLoad {
    /// Returns a load without jobs for a routing.
    pub fn new(routing: Arc<dyn Routing>) -> Self {
        NetworkLoad {
            present: Congestion::new(&*routing),
            routing,
            weights: HashMap::new(),
            now: 0.0,
        }
    }

    /// Adds a job's flows. Does nothing if the job is already present.
    pub(crate) fn enter(&mut self, laid: &LaidTraffic) {
        if self.weights.contains_key(&laid.job) {
            return;
        }
        self.weights.insert(laid.job, laid.weight);
        self.present.enter(laid.job, Arc::clone(&laid.flows));
        self.present.settle();
    }

    /// Removes a job's flows.
    pub(crate) fn leave(&mut self, laid: &LaidTraffic) {
        self.weights.remove(&laid.job);
        self.present.leave(laid.job);
        self.present.settle();
    }

    /// Changes the time by which a job must have ended.
    pub(crate) fn set_end(&mut self, job: u64, end: f64) {
        if let Some(weight) = self.weights.get_mut(&job) {
            weight.end = end;
        }
    }

    pub(crate) fn set_time(&mut self, now: f64) {
        self.now = now;
    }

    /// The share of the time from now to `end` for which a job runs, by its time limit; 1 if `end` is infinite or not
    /// after now.
    pub(crate) fn overlap(&self, job: Weight, end: f64) -> f64 {
        let whole = end - self.now;
        let both = job.end.min(end) - job.start.max(self.now);
        if both >= whole || whole <= 0.0 || whole == f64::INFINITY {
            1.0
        } else {
            both.max(0.0) / whole
        }
    }

    /// The slowdown of every present job if all of them communicate, by job id.
    pub fn slowdowns(&self) -> Vec<(u64, f64)> {
        let mut jobs: Vec<u64> = self.weights.keys().copied().collect();
        jobs.sort_unstable();
        jobs.into_iter().map(|job| (job, self.present.slowdown_of(job))).collect()
    }
}
