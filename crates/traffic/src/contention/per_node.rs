//! Code shared by the models of the inside of nodes: the jobs on each node, and the slowdown of each job.

use std::collections::BTreeMap;
use std::sync::Arc;

use topolane_fabric::{Fabric, NodeIndex};

use super::max_min::slowest;
use super::{Contention, is_news};
use crate::flows::Flows;

/// A rule for the rates of flows that share nodes.
pub trait NodeRule: Send {
    /// The name of the rule.
    fn name(&self) -> &'static str;

    /// Adds the flows of a job (`present`), or removes them.
    fn count(&mut self, flows: &Flows, present: bool);

    /// The rate of a flow that was added, in bytes per second; infinite if the rule does not limit it.
    fn rate(&self, ends: (NodeIndex, NodeIndex)) -> f64;
}

/// The present jobs under a rule.
pub struct PerNode<R> {
    rule: R,
    jobs: BTreeMap<u64, PerNodeJob>,
    /// The number of jobs on every node.
    on: Vec<u32>,
    changed: bool,
}

struct PerNodeJob {
    flows: Arc<Flows>,
    /// The nodes on which its flows begin or end.
    nodes: Box<[NodeIndex]>,
    time_alone: f64,
    /// The slowdown that `settle` last reported.
    reported: f64,
}

impl<R: NodeRule> PerNode<R> {
    /// Returns a model without jobs; `rule` must not have any flows yet.
    pub fn new(fabric: &Fabric, rule: R) -> Self {
        let on = vec![0; fabric.nodes() as usize];
        PerNode { rule, jobs: BTreeMap::new(), on, changed: false }
    }

    fn all_rates(&self, flows: &Flows) -> Vec<f64> {
        (0..flows.len()).map(|flow| self.rule.rate(flows.ends(flow))).collect()
    }

    /// The slowdown of a job. Exactly 1 if the job shares no node, because other nodes do not affect it.
    fn slowdown(&self, present: &PerNodeJob) -> f64 {
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
        self.jobs.insert(job, PerNodeJob { flows, nodes, time_alone, reported: 1.0 });
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
        let seconds =
            |present: &PerNodeJob| slowest(&present.flows, &self.all_rates(&present.flows));
        self.jobs.get(&job).map_or(0.0, seconds)
    }

    fn rates(&mut self, job: u64, flows: &Flows) -> Vec<f64> {
        if self.jobs.contains_key(&job) { self.all_rates(flows) } else { Vec::new() }
    }
}

/// The distinct nodes on which a job's flows begin or end, ascending.
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
