//! Node failures: what happens to their jobs, and spare nodes.

use std::collections::HashSet;
use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp};
use topolane_fabric::{Fabric, NodeIndex};
use topolane_placement::{Placement, Share};
use topolane_scheduler::Scheduler;

/// Seconds that a job needs to start again after a failure.
pub(crate) const RESTART: f64 = 600.0;

/// The failure of a node. Times are in seconds since the workload's epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Failure {
    /// The node that fails.
    pub node: NodeIndex,
    /// When the node fails.
    pub from: f64,
    /// When the node is back.
    pub until: f64,
}

/// How often nodes fail, and for how long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FailureRate {
    /// Failures per node and day.
    pub per_node_day: f64,
    /// Mean time to repair in seconds; exponentially distributed.
    pub repair: f64,
}

impl FailureRate {
    /// Draws failures of all nodes between two times. Each node fails independently, at exponential intervals.
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

/// The effects of failures in a run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FailureCount {
    /// The number of node failures.
    pub failures: u64,
    /// The number of interruptions of jobs.
    pub interruptions: u64,
    /// Interruptions after which the job continued at once, on a spare node of the same domain.
    pub absorbed: u64,
    /// Node-seconds spent on restarts and on work that was lost and done again.
    pub node_seconds_lost: f64,
    /// Node-seconds for which spare nodes were reserved.
    pub node_seconds_spare: f64,
}

/// A change of a node: the time, whether it fails, and the node.
type Change = (f64, bool, NodeIndex);

/// The number of nodes that a placement holds. Parts of nodes count by their cores.
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

/// Applies failures during a run, and manages the spare nodes.
pub(crate) struct Failing {
    changes: Vec<Change>,
    next: usize,
    /// For each node, the number of failures that keep it out.
    out: Vec<u32>,
    spares: Spares,
}

impl Failing {
    /// Starts with the failures of a run that begins at `first`, and reserves the spare nodes.
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

    /// The time at which a node next fails or comes back.
    pub fn next(&self) -> Option<f64> {
        self.changes.get(self.next).map(|change| change.0)
    }

    /// The next change due by `now` that really takes a node out or brings it back.
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

    /// The spare nodes.
    pub fn spares(&mut self) -> &mut Spares {
        &mut self.spares
    }
}

/// The spare nodes, which are kept free.
pub(crate) struct Spares {
    groups: Groups,
    /// The number of spare nodes wanted in each group.
    wanted: u32,
    kept: HashSet<NodeIndex>,
    since: f64,
    node_seconds: f64,
}

/// Whether spare nodes are kept per domain or per leaf.
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

    /// Takes in a node that is back: as a spare node if its domain needs one, otherwise for use by jobs.
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

    /// Removes a node from the spare nodes.
    pub fn take(&mut self, node: NodeIndex, now: f64) {
        self.count(now);
        self.kept.remove(&node);
    }

    /// The lowest spare node that can replace a node in some placements: in the same domain, and on the same leaf if a
    /// placement owns links.
    pub fn substitute(
        &self,
        node: NodeIndex,
        placements: &[(u64, Arc<Placement>)],
        fabric: &Fabric,
    ) -> Option<NodeIndex> {
        let keeps_links = placements.iter().any(|(_, placement)| {
            placement.is_isolated()
                || placement.is_isolated_between_groups()
                || !placement.links().is_empty()
        });
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

    /// Node-seconds for which spare nodes were reserved until `now`.
    pub fn node_seconds(&mut self, now: f64) -> f64 {
        self.count(now);
        self.node_seconds
    }
}

/// The remaining work of an interrupted job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RemainingWork {
    /// Seconds of work left; `None` if it starts from the beginning.
    pub run: Option<f64>,
    /// When the job was submitted again.
    pub submitted: f64,
}

/// The part of `done` seconds of work that is lost, with a checkpoint every `checkpoint` seconds.
pub(crate) fn lost(done: f64, checkpoint: f64) -> f64 {
    if checkpoint > 0.0 { done % checkpoint } else { 0.0 }
}

/// Returns the placement with one node replaced by another.
pub(crate) fn replaced(
    placement: &Placement,
    fabric: &Fabric,
    from: NodeIndex,
    to: NodeIndex,
) -> Placement {
    let nodes = placement.nodes().iter().map(|&node| if node == from { to } else { node });
    let other = Placement::new(fabric, nodes.collect(), placement.share().clone())
        .isolated_as(placement, fabric)
        .with_links(fabric, placement.links().to_vec(), placement.bandwidth_share());
    let spare = placement.spare().iter().map(|&node| if node == from { to } else { node });
    other.with_spare(spare.collect())
}
