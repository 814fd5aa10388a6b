//! What the running jobs send over the network at this moment.

use std::collections::HashMap;
use std::sync::Arc;

use topolane_fabric::Routing;
use topolane_traffic::{Congestion, Contention};

use crate::job_traffic::{LaidTraffic, Weight};

/// The flows of the running jobs over the channels of a machine, changed by every claim and release. What a job loses is
/// predicted by the model `congestion`.
#[derive(Debug, Clone)]
pub struct NetworkLoad {
    pub(crate) routing: Arc<dyn Routing>,
    pub(crate) present: Congestion,
    pub(crate) weights: HashMap<u64, Weight>,
    /// The time, seconds.
    pub(crate) now: f64,
}

impl NetworkLoad {
    /// No job on any channel of a routing.
    pub fn new(routing: Arc<dyn Routing>) -> Self {
        NetworkLoad {
            present: Congestion::new(&*routing),
            routing,
            weights: HashMap::new(),
            now: 0.0,
        }
    }

    /// A job begins. One that is there already stays as it is.
    pub(crate) fn enter(&mut self, laid: &LaidTraffic) {
        if self.weights.contains_key(&laid.job) {
            return;
        }
        self.weights.insert(laid.job, laid.weight);
        self.present.enter(laid.job, Arc::clone(&laid.flows));
        self.present.settle();
    }

    /// A job ends.
    pub(crate) fn leave(&mut self, laid: &LaidTraffic) {
        self.weights.remove(&laid.job);
        self.present.leave(laid.job);
        self.present.settle();
    }

    /// Changes when a job must have ended.
    pub(crate) fn set_end(&mut self, job: u64, end: f64) {
        if let Some(weight) = self.weights.get_mut(&job) {
            weight.end = end;
        }
    }

    pub(crate) fn set_time(&mut self, now: f64) {
        self.now = now;
    }

    /// The part of the time until `end` for which a job present runs, by its time limit; all of it if there is no `end`.
    pub(crate) fn overlap(&self, job: Weight, end: f64) -> f64 {
        let whole = end - self.now;
        let both = job.end.min(end) - job.start.max(self.now);
        if both >= whole || whole <= 0.0 || whole == f64::INFINITY {
            1.0
        } else {
            both.max(0.0) / whole
        }
    }

    /// The slowdowns of the jobs present while all communicate, by identity.
    pub fn slowdowns(&self) -> Vec<(u64, f64)> {
        let mut jobs: Vec<u64> = self.weights.keys().copied().collect();
        jobs.sort_unstable();
        jobs.into_iter().map(|job| (job, self.present.slowdown_of(job))).collect()
    }
}
