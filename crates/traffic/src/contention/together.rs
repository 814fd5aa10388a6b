//! Several models at once: each flow gets the least of its rates.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::max_min::slowest;
use super::{Contention, is_news};
use crate::flows::Flows;

/// Every flow gets the least of the rates that the parts give it.
pub struct Together {
    name: &'static str,
    parts: Vec<Box<dyn Contention>>,
    /// The same parts without jobs, to see a job alone.
    empty: Vec<Box<dyn Contention>>,
    jobs: BTreeMap<u64, Present>,
    changed: bool,
}

struct Present {
    flows: Arc<Flows>,
    time_alone: f64,
    reported: f64,
}

impl Together {
    /// The parts that `build` makes.
    pub fn new(name: &'static str, build: impl Fn() -> Vec<Box<dyn Contention>>) -> Self {
        let (parts, empty) = (build(), build());
        Together { name, parts, empty, jobs: BTreeMap::new(), changed: false }
    }
}

/// The least rates of a job over the parts.
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
        self.jobs.insert(job, Present { flows, time_alone, reported: 1.0 });
        self.changed = true;
    }

    fn leave(&mut self, job: u64) {
        for part in &mut self.parts {
            part.leave(job);
        }
        self.jobs.remove(&job);
        self.changed = true;
    }

    /// Asks all jobs as soon as one has come or gone: a flow's rate may change where it is not the
    /// slowest of a part, and the part then reports nothing.
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
