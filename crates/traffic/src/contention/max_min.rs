//! Max-min fair rates: the most accurate model, which must solve for all flows that share channels.

use std::collections::BTreeMap;
use std::sync::Arc;

use topolane_fabric::{Channel, Routing};

use super::{Contention, Filling, is_news};
use crate::flows::Flows;

/// Every flow gets its max-min fair rate: no rate per weight (see [`Flows::weight`]) can grow without reducing one that
/// is not larger. Jobs that share channels, directly or through other jobs, are solved together.
#[derive(Debug)]
pub struct MaxMin {
    name: &'static str,
    filling: Filling,
    /// The jobs by id, so that the order of solving does not depend on the order of events.
    jobs: BTreeMap<u64, MaxMinJob>,
    /// The jobs on every channel, ascending.
    users: Vec<Vec<u64>>,
    /// Jobs that started, and neighbours of jobs that ended, since the last solution.
    unsolved: Vec<u64>,
}

#[derive(Debug)]
struct MaxMinJob {
    flows: Arc<Flows>,
    /// The channels that it uses, ascending.
    channels: Box<[Channel]>,
    alone: Arc<[f64]>,
    time_alone: f64,
    rates: Arc<[f64]>,
    slowdown: f64,
    /// The slowdown that `settle` last reported.
    reported: f64,
}

impl MaxMin {
    /// Returns a model without jobs, for a routing.
    pub fn new(routing: &dyn Routing) -> Self {
        let channels = routing.channels();
        MaxMin {
            name: "max-min",
            filling: Filling::new((0..channels).map(|channel| routing.capacity(channel)).collect()),
            jobs: BTreeMap::new(),
            users: vec![Vec::new(); channels as usize],
            unsolved: Vec::new(),
        }
    }

    /// Returns the model with equal weights for all flows, as for connections that share fairly with each other.
    pub fn of_flows(routing: &dyn Routing) -> Self {
        let weighted = MaxMin::new(routing);
        MaxMin { name: "max-min-flows", filling: weighted.filling.alike(), ..weighted }
    }

    fn solve(&mut self) {
        let mut unsolved = std::mem::take(&mut self.unsolved);
        unsolved.sort_unstable();
        let mut solved: Vec<u64> = Vec::new();
        for job in unsolved {
            if !solved.contains(&job) && self.jobs.contains_key(&job) {
                let together = self.connected(job);
                self.solve_together(&together);
                solved.extend(together);
            }
        }
    }

    /// The jobs that share channels with `job`, directly or through other jobs, and `job` itself; ascending.
    fn connected(&self, job: u64) -> Vec<u64> {
        let mut found = std::collections::BTreeSet::from([job]);
        let mut next = vec![job];
        while let Some(job) = next.pop() {
            for &channel in self.jobs.get(&job).into_iter().flat_map(|job| &job.channels) {
                for &user in &self.users[channel as usize] {
                    if found.insert(user) {
                        next.push(user);
                    }
                }
            }
        }
        found.into_iter().collect()
    }

    fn solve_together(&mut self, together: &[u64]) {
        if let [job] = together {
            // A job that shares no channel must get exactly the rates that it has alone.
            if let Some(present) = self.jobs.get_mut(job) {
                present.rates = Arc::clone(&present.alone);
                present.slowdown = 1.0;
            }
            return;
        }
        let flows: Vec<Arc<Flows>> = together
            .iter()
            .filter_map(|job| Some(Arc::clone(&self.jobs.get(job)?.flows)))
            .collect();
        let refs: Vec<&Flows> = flows.iter().map(|flows| &**flows).collect();
        let rates = self.filling.rates(&refs);
        let mut rates = rates.as_slice();
        for job in together {
            let Some(present) = self.jobs.get_mut(job) else { continue };
            let (own, others) = rates.split_at(present.flows.len());
            rates = others;
            present.rates = own.into();
            let time = slowest(&present.flows, own);
            let stretch = if present.time_alone > 0.0 { time / present.time_alone } else { 1.0 };
            present.slowdown = stretch.max(1.0);
        }
    }
}

/// Seconds until the last flow has sent its bytes.
pub(super) fn slowest(flows: &Flows, rates: &[f64]) -> f64 {
    rates.iter().enumerate().map(|(flow, rate)| flows.bytes(flow) / rate).fold(0.0, f64::max)
}

impl Contention for MaxMin {
    fn name(&self) -> &'static str {
        self.name
    }

    fn enter(&mut self, job: u64, flows: Arc<Flows>) {
        let channels: Box<[Channel]> =
            flows.per_channel().iter().map(|&(channel, _)| channel).collect();
        for &channel in &channels {
            let users = &mut self.users[channel as usize];
            users.insert(users.partition_point(|&user| user < job), job);
        }
        let alone: Arc<[f64]> = self.filling.rates(&[&*flows]).into();
        let present = MaxMinJob {
            time_alone: slowest(&flows, &alone),
            rates: Arc::clone(&alone),
            flows,
            channels,
            alone,
            slowdown: 1.0,
            reported: 1.0,
        };
        self.jobs.insert(job, present);
        self.unsolved.push(job);
    }

    fn leave(&mut self, job: u64) {
        let Some(gone) = self.jobs.remove(&job) else { return };
        for &channel in &gone.channels {
            let users = &mut self.users[channel as usize];
            users.retain(|&user| user != job);
            self.unsolved.extend_from_slice(users);
        }
        self.unsolved.sort_unstable();
        self.unsolved.dedup();
    }

    fn settle(&mut self) -> Vec<(u64, f64)> {
        self.solve();
        let mut changed = Vec::new();
        for (&job, present) in &mut self.jobs {
            if is_news(&mut present.reported, present.slowdown) {
                changed.push((job, present.slowdown));
            }
        }
        changed
    }

    fn time(&mut self, job: u64) -> f64 {
        self.solve();
        self.jobs.get(&job).map_or(0.0, |present| slowest(&present.flows, &present.rates))
    }

    fn rates(&mut self, job: u64, _: &Flows) -> Vec<f64> {
        self.solve();
        self.jobs.get(&job).map_or_else(Vec::new, |present| present.rates.to_vec())
    }
}
