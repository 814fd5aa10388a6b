//! What the models of the inside of nodes share: who is on which node, and each job's slowdown.

use std::collections::BTreeMap;
use std::sync::Arc;

use topolane_fabric::{Fabric, NodeIndex};

use super::max_min::slowest;
use super::{Contention, is_news};
use crate::flows::Flows;

/// A rule that gives flows their rates from the flows that share their nodes.
pub trait NodeRule: Send {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Counts a job's flows in (`present`), or out.
    fn count(&mut self, flows: &Flows, present: bool);

    /// Bytes per second of a flow that is counted in; infinite for what the rule does not limit.
    fn rate(&self, ends: (NodeIndex, NodeIndex)) -> f64;
}

/// The jobs present under a rule of nodes.
pub struct PerNode<R> {
    rule: R,
    jobs: BTreeMap<u64, Present>,
    /// Jobs on every node.
    on: Vec<u32>,
    changed: bool,
}

struct Present {
    flows: Arc<Flows>,
    /// The nodes its flows begin or end on.
    nodes: Box<[NodeIndex]>,
    time_alone: f64,
    /// What `settle` last reported.
    reported: f64,
}

impl<R: NodeRule> PerNode<R> {
    /// No job on any node; `rule` has counted nothing yet.
    pub fn new(fabric: &Fabric, rule: R) -> Self {
        let on = vec![0; fabric.nodes() as usize];
        PerNode { rule, jobs: BTreeMap::new(), on, changed: false }
    }

    fn all_rates(&self, flows: &Flows) -> Vec<f64> {
        (0..flows.len()).map(|flow| self.rule.rate(flows.ends(flow))).collect()
    }

    /// Exactly 1 for a job that shares no node: what happens elsewhere does not reach it.
    fn slowdown(&self, present: &Present) -> f64 {
        let meets = present.nodes.iter().any(|&node| self.on[node as usize] > 1);
        if !meets || present.time_alone <= 0.0 {
            return 1.0;
        }
        let time = slowest(&present.flows, &self.all_rates(&present.flows));
        (time / present.time_alone).max(1.0)
    }
}

impl<R: NodeRule> Contention for PerNode<R> {
    fn name(&self) -> &'static str {
        self.rule.name()
    }

    fn enter(&mut self, job: u64, flows: Arc<Flows>) {
        let others: Vec<Arc<Flows>> = self
            .jobs
            .values()
            .filter(|other| meet(&other.nodes, &flows))
            .map(|other| Arc::clone(&other.flows))
            .collect();
        for other in &others {
            self.rule.count(other, false);
        }
        self.rule.count(&flows, true);
        let time_alone = slowest(&flows, &self.all_rates(&flows));
        for other in &others {
            self.rule.count(other, true);
        }
        let nodes = nodes_of(&flows);
        for &node in &nodes {
            self.on[node as usize] += 1;
        }
        self.jobs.insert(job, Present { flows, nodes, time_alone, reported: 1.0 });
        self.changed = true;
    }

    fn leave(&mut self, job: u64) {
        let Some(gone) = self.jobs.remove(&job) else { return };
        self.rule.count(&gone.flows, false);
        for &node in &gone.nodes {
            self.on[node as usize] -= 1;
        }
        self.changed = true;
    }

    fn settle(&mut self) -> Vec<(u64, f64)> {
        let mut news = Vec::new();
        if !std::mem::take(&mut self.changed) {
            return news;
        }
        let now: Vec<(u64, f64)> =
            self.jobs.iter().map(|(&job, present)| (job, self.slowdown(present))).collect();
        for (job, slowdown) in now {
            let Some(present) = self.jobs.get_mut(&job) else { continue };
            if is_news(&mut present.reported, slowdown) {
                news.push((job, slowdown));
            }
        }
        news
    }

    fn time(&mut self, job: u64) -> f64 {
        let seconds = |present: &Present| slowest(&present.flows, &self.all_rates(&present.flows));
        self.jobs.get(&job).map_or(0.0, seconds)
    }

    fn rates(&mut self, job: u64, flows: &Flows) -> Vec<f64> {
        if self.jobs.contains_key(&job) { self.all_rates(flows) } else { Vec::new() }
    }
}

/// The nodes that a job's flows begin or end on, ascending, each once.
fn nodes_of(flows: &Flows) -> Box<[NodeIndex]> {
    let mut nodes: Vec<NodeIndex> =
        (0..flows.len()).flat_map(|flow| <[NodeIndex; 2]>::from(flows.ends(flow))).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes.into()
}

fn meet(nodes: &[NodeIndex], flows: &Flows) -> bool {
    let on = |node: NodeIndex| nodes.binary_search(&node).is_ok();
    (0..flows.len()).any(|flow| {
        let (from, to) = flows.ends(flow);
        on(from) || on(to)
    })
}
