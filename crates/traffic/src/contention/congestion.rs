//! Load per link: fast enough for every event of a month.

use std::collections::HashMap;
use std::sync::Arc;

use topolane_fabric::Routing;

use super::Contention;
use crate::flows::Flows;
use crate::loads::Loads;

/// A channel that is wanted more than once over is shared in proportion to what each job wants of
/// it when alone. A job is slowed by its worst channel:
///
/// max(1, max over its c of the sum over all jobs of u(c)).
#[derive(Debug)]
pub struct Congestion {
    loads: Loads,
    jobs: HashMap<u64, Present>,
    /// Jobs on whose channels something has changed since the last `settle`.
    touched: Vec<u64>,
}

#[derive(Debug)]
struct Present {
    flows: Arc<Flows>,
    slowdown: f64,
    touched: bool,
}

impl Congestion {
    /// Nobody on any channel of a routing.
    pub fn new(routing: &dyn Routing) -> Self {
        Congestion { loads: Loads::new(routing), jobs: HashMap::new(), touched: Vec::new() }
    }

    /// The load of every channel.
    pub fn loads(&self) -> &Loads {
        &self.loads
    }

    /// Notes everybody who shares a channel with the job, the job included.
    fn touch_neighbours(&mut self, job: u64) {
        for want in self.loads.wants(job) {
            let users = self.loads.users_in_units(want.channel);
            if users.len() < 2 {
                continue;
            }
            for (user, _) in users {
                if let Some(present) = self.jobs.get_mut(user).filter(|present| !present.touched) {
                    present.touched = true;
                    self.touched.push(*user);
                }
            }
        }
    }

    fn slowdown(&self, job: u64) -> f64 {
        let wants = self.loads.wants(job).iter();
        wants.map(|&want| self.loads.load(want.channel)).fold(1.0, f64::max)
    }
}

impl Contention for Congestion {
    fn name(&self) -> &'static str {
        "congestion"
    }

    fn enter(&mut self, job: u64, flows: Arc<Flows>) {
        self.loads.add(job, &flows);
        self.jobs.insert(job, Present { flows, slowdown: 1.0, touched: false });
        self.touch_neighbours(job);
    }

    fn leave(&mut self, job: u64) {
        self.touch_neighbours(job);
        self.loads.remove(job);
        self.jobs.remove(&job);
    }

    fn settle(&mut self) -> Vec<(u64, f64)> {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        let mut changed = Vec::new();
        for job in touched {
            let slowdown = self.slowdown(job);
            let Some(present) = self.jobs.get_mut(&job) else { continue };
            present.touched = false;
            if present.slowdown.to_bits() != slowdown.to_bits() {
                present.slowdown = slowdown;
                changed.push((job, slowdown));
            }
        }
        changed
    }

    fn time(&mut self, job: u64) -> f64 {
        self.loads.time_alone(job) * self.slowdown(job)
    }

    fn rates(&mut self, job: u64) -> Vec<f64> {
        let Some(present) = self.jobs.get(&job) else { return Vec::new() };
        let flows = &present.flows;
        let alone = self.loads.time_alone(job);
        let wants = self.loads.wants(job);
        let rate = |flow: usize| {
            let stretch = |channel: &u32| {
                let place = wants.binary_search_by_key(channel, |want| want.channel);
                place.map_or(1.0, |index| self.loads.load(wants[index].channel).max(1.0))
            };
            let stretch = flows.channels(flow).iter().map(stretch).fold(0.0, f64::max);
            if stretch > 0.0 { flows.bytes(flow) / (alone * stretch) } else { f64::INFINITY }
        };
        (0..flows.len()).map(rate).collect()
    }
}
