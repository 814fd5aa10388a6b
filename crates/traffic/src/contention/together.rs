//! Combines several models: each flow gets the smallest of its rates.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::max_min::slowest;
use super::{Contention, is_news};
use crate::flows::Flows;

/// Every flow gets the smallest of the rates that the parts give it.
pub struct Together {
    name: &'static str,
    parts: Vec<Box<dyn Contention>>,
    /// The same parts without jobs, used to compute a job alone.
    empty: Vec<Box<dyn Contention>>,
    jobs: BTreeMap<u64, TogetherJob>,
    changed: bool,
}

struct TogetherJob {
    flows: Arc<Flows>,
    time_alone: f64,
    reported: f64,
}

impl Together {
    /// Returns a combination of the parts that `build` creates.
    pub fn new(name: &'static str, build: impl Fn() -> Vec<Box<dyn Contention>>) -> Self {
        let (parts, empty) = (build(), build());
        Together { name, parts, empty, jobs: BTreeMap::new(), changed: false }
    }
}

/// The smallest rate of each flow of a job over all parts.
fn least(parts: &mut [Box<dyn Contention>], job: u64, flows: &Flows) -> Vec<f64> {
    let mut least = vec![f64::INFINITY; flows.len()];
    for part in parts {
        for (least, rate) in least.iter_mut().zip(part.rates(job, flows)) {
            *least = least.min(rate);
        }
    }
    least
}

impl Contention for Together {
    fn name(&self) -> &'static str {
        self.name
    }

    fn enter(&mut self, job: u64, flows: Arc<Flows>) {
        for part in &mut self.empty {
            part.enter(job, Arc::clone(&flows));
        }
        let time_alone = slowest(&flows, &least(&mut self.empty, job, &flows));
        for part in &mut self.empty {
            part.leave(job);
        }
        for part in &mut self.parts {
            part.enter(job, Arc::clone(&flows));
        }
        self.jobs.insert(job, TogetherJob { flows, time_alone, reported: 1.0 });
        self.changed = true;
    }

    fn leave(&mut self, job: u64) {
        for part in &mut self.parts {
            part.leave(job);
        }
        self.jobs.remove(&job);
        self.changed = true;
    }

    /// Recomputes all jobs as soon as one was added or removed. The rate of a flow may change even if it does not
    /// determine its job's slowdown in any part, and then the part reports nothing.
    fn settle(&mut self) -> Vec<(u64, f64)> {
        let mut news = Vec::new();
        if !std::mem::take(&mut self.changed) {
            return news;
        }
        for part in &mut self.parts {
            part.settle();
        }
        let parts = &mut self.parts;
        for (&job, present) in &mut self.jobs {
            let time = slowest(&present.flows, &least(parts, job, &present.flows));
            let slowdown =
                if present.time_alone > 0.0 { (time / present.time_alone).max(1.0) } else { 1.0 };
            if is_news(&mut present.reported, slowdown) {
                news.push((job, slowdown));
            }
        }
        news
    }

    fn time(&mut self, job: u64) -> f64 {
        let Some(present) = self.jobs.get(&job) else { return 0.0 };
        slowest(&present.flows, &least(&mut self.parts, job, &present.flows))
    }

    fn rates(&mut self, job: u64, flows: &Flows) -> Vec<f64> {
        if self.jobs.contains_key(&job) { least(&mut self.parts, job, flows) } else { Vec::new() }
    }
}
