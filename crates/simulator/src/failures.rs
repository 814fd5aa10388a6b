//! Nodes that fail for a time, what becomes of their jobs, and spare nodes.

use std::collections::HashSet;
use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp};
use topolane_fabric::{Fabric, NodeIndex};
use topolane_placement::{Placement, Share};
use topolane_scheduler::Scheduler;

/// A node that fails. Times in seconds since the workload's epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Failure {
    /// The node.
    pub node: NodeIndex,
    /// When it fails.
    pub from: f64,
    /// When it is back.
    pub until: f64,
}

/// How often nodes fail, and for how long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FailureRate {
    /// Failures of a node in a day.
    pub per_node_day: f64,
    /// Mean time until it is back, seconds; exponential.
    pub repair: f64,
}

impl FailureRate {
    /// Failures of the nodes of a machine from one time to another: each node by itself, at exponential distances.
    pub fn draw(self, fabric: &Fabric, from: f64, until: f64, seed: u64) -> Vec<Failure> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let (Ok(gaps), Ok(repairs)) =
            (Exp::new(self.per_node_day / 86_400.0), Exp::new(1.0 / self.repair))
        else {
            return Vec::new();
        };
        let mut failures = Vec::new();
        for node in 0..fabric.nodes() {
            let mut now = from;
            loop {
                now += gaps.sample(&mut random);
                if now >= until || self.per_node_day <= 0.0 {
                    break;
                }
                let back = now + repairs.sample(&mut random).max(1.0);
                failures.push(Failure { node, from: now, until: back });
                now = back;
            }
        }
        failures
    }
}

/// What a failure costs a job, and how many nodes stand by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recovery {
    /// Idle nodes kept back in each domain (on each leaf of a machine without domains), to take the place of one that fails.
    pub spares: u32,
    /// Seconds of work between two checkpoints of a job: what it has done since the last one is lost.
    pub checkpoint: f64,
    /// Seconds that a job needs to start again.
    pub restart: f64,
}

impl Default for Recovery {
    fn default() -> Self {
        Recovery { spares: 0, checkpoint: 3_600.0, restart: 600.0 }
    }
}

/// What failures did in a run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FailureCount {
    /// Nodes that failed.
    pub failures: u64,
    /// Interruptions of jobs.
    pub interruptions: u64,
    /// Those after which the job went on at once, with a spare node of the same domain.
    pub absorbed: u64,
    /// Node-seconds of work that was lost and done again, and of starting again.
    pub node_seconds_lost: f64,
    /// Node-seconds for which spare nodes stood by.
    pub node_seconds_spare: f64,
}

/// A change of a node: when, whether it fails, and which.
type Change = (f64, bool, NodeIndex);

/// Nodes that a placement takes, parts of nodes by their cores.
pub(crate) fn nodes_held(fabric: &Fabric, placement: &Placement) -> f64 {
    match placement.share() {
        Share::Whole => placement.nodes().len() as f64,
        Share::Part(amounts) => {
            let part = |&node: &NodeIndex| {
                amounts.cores() as f64 / f64::from(fabric.kind(node).cores().max(1))
            };
            placement.nodes().iter().map(part).sum()
        }
    }
}

/// Follows failures through a run, and keeps the spare nodes.
pub(crate) struct Failing {
    changes: Vec<Change>,
    next: usize,
    /// By how many failures a node is out.
    out: Vec<u32>,
    spares: Spares,
}

impl Failing {
    /// Those of a run that begins at `first`; keeps the spare nodes back.
    pub fn new(
        failures: &[Failure],
        spares: u32,
        first: f64,
        fabric: &Fabric,
        scheduler: &mut Scheduler,
    ) -> Self {
        let mut changes: Vec<Change> = Vec::new();
        for failure in failures.iter().filter(|failure| failure.until > first) {
            changes.push((failure.from.max(first), true, failure.node));
            if failure.until.is_finite() {
                changes.push((failure.until, false, failure.node));
            }
        }
        changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)).then(a.2.cmp(&b.2)));
        let out = vec![0; if changes.is_empty() { 0 } else { fabric.nodes() as usize }];
        let spares = Spares::keep(spares, first, fabric, scheduler);
        Failing { changes, next: 0, out, spares }
    }

    /// When a node fails or comes back next.
    pub fn next(&self) -> Option<f64> {
        self.changes.get(self.next).map(|change| change.0)
    }

    /// The next change due by `now`, if a node really goes out or comes back by it.
    pub fn pop(&mut self, now: f64) -> Option<(NodeIndex, bool)> {
        while let Some(&(time, fails, node)) = self.changes.get(self.next)
            && time <= now
        {
            self.next += 1;
            let out = &mut self.out[node as usize];
            *out = if fails { *out + 1 } else { *out - 1 };
            if *out == u32::from(fails) {
                return Some((node, fails));
            }
        }
        None
    }

    /// Spare nodes.
    pub fn spares(&mut self) -> &mut Spares {
        &mut self.spares
    }
}

/// The nodes that are kept back.
pub(crate) struct Spares {
    groups: Groups,
    /// How many are wanted in each group.
    wanted: u32,
    kept: HashSet<NodeIndex>,
    since: f64,
    node_seconds: f64,
}

/// Whether spare nodes are kept by domain or by leaf.
enum Groups {
    Domains,
    Leaves,
}

impl Spares {
    fn keep(wanted: u32, now: f64, fabric: &Fabric, scheduler: &mut Scheduler) -> Self {
        let groups = if fabric.domains() > 0 { Groups::Domains } else { Groups::Leaves };
        let mut spares =
            Spares { groups, wanted, kept: HashSet::new(), since: now, node_seconds: 0.0 };
        for node in (0..fabric.nodes()).rev() {
            spares.give_back(node, now, fabric, scheduler);
        }
        spares
    }

    fn are_together(&self, fabric: &Fabric, a: NodeIndex, b: NodeIndex) -> bool {
        match self.groups {
            Groups::Domains => fabric.domain(a).is_some() && fabric.domain(a) == fabric.domain(b),
            Groups::Leaves => fabric.group(1, a) == fabric.group(1, b),
        }
    }

    /// A node is there (again): it is kept back if its domain lacks a spare node, and may be used otherwise.
    pub fn give_back(
        &mut self,
        node: NodeIndex,
        now: f64,
        fabric: &Fabric,
        scheduler: &mut Scheduler,
    ) {
        let has_domain = match self.groups {
            Groups::Domains => fabric.domain(node).is_some(),
            Groups::Leaves => true,
        };
        let together = self.kept.iter().filter(|&&kept| self.are_together(fabric, kept, node));
        let is_wanted = has_domain && self.wanted > 0 && (together.count() as u32) < self.wanted;
        if is_wanted {
            self.count(now);
            self.kept.insert(node);
            scheduler.set_in_service(node, false);
        } else if self.wanted == 0 || !self.kept.contains(&node) {
            scheduler.set_in_service(node, true);
        }
    }

    /// A node is no spare one any longer.
    pub fn take(&mut self, node: NodeIndex, now: f64) {
        self.count(now);
        self.kept.remove(&node);
    }

    /// A spare node that can take the place of another in some placements: of the same domain, and of the same leaf if links
    /// are at stake. The lowest one.
    pub fn substitute(
        &self,
        node: NodeIndex,
        placements: &[(u64, Arc<Placement>)],
        fabric: &Fabric,
    ) -> Option<NodeIndex> {
        let keeps_links = placements
            .iter()
            .any(|(_, placement)| placement.is_isolated() || !placement.links().is_empty());
        let fits = |&spare: &NodeIndex| {
            self.are_together(fabric, spare, node)
                && (!keeps_links || fabric.group(1, spare) == fabric.group(1, node))
                && fabric.kind_index(spare) == fabric.kind_index(node)
        };
        self.kept.iter().copied().filter(fits).min()
    }

    fn count(&mut self, now: f64) {
        self.node_seconds += self.kept.len() as f64 * (now - self.since);
        self.since = now;
    }

    /// Node-seconds for which spare nodes stood by, until `now`.
    pub fn node_seconds(&mut self, now: f64) -> f64 {
        self.count(now);
        self.node_seconds
    }
}

/// What a job that is interrupted still has to do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Left {
    /// Seconds that it still needs; `None` if it starts from the beginning.
    pub run: Option<f64>,
    /// When it was submitted again.
    pub submitted: f64,
}

/// What of `done` seconds of work is lost, if it is saved every `checkpoint` seconds.
pub(crate) fn lost(done: f64, checkpoint: f64) -> f64 {
    if checkpoint > 0.0 { done % checkpoint } else { 0.0 }
}

/// The placement with one node in the place of another.
pub(crate) fn replaced(
    placement: &Placement,
    fabric: &Fabric,
    from: NodeIndex,
    to: NodeIndex,
) -> Placement {
    let nodes = placement.nodes().iter().map(|&node| if node == from { to } else { node });
    let other = Placement::new(fabric, nodes.collect(), placement.share().clone())
        .isolated(placement.is_isolated())
        .with_links(placement.links().to_vec(), placement.bandwidth_share());
    let spare = placement.spare().iter().map(|&node| if node == from { to } else { node });
    other.with_spare(spare.collect())
}
