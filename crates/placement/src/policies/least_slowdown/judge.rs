//! Computes the cost of a set of nodes and keeps the cheapest set so far.

use topolane_fabric::NodeIndex;
use topolane_traffic::Outlook;

use crate::newcomer::Newcomer;
use crate::{FreeSlots, groups_crossed};

/// The approximate number of flows that a decision may evaluate. Every set of nodes costs as many flows as the job has.
const MOST_FLOWS: usize = 10_000;
/// The most sets of nodes that it tries. The first few, which other policies would choose, are always tried.
const MOST_TRIES: usize = 80;
const FEWEST_TRIES: usize = 4;
/// The same on other wirings than trees, where more policies choose.
const FEWEST_TRIES_WIRED: usize = 12;
/// The assumed loss of later jobs for each free node that remains in a group that the job crosses, in node-seconds per
/// second. It decides among sets of nodes on which no running job loses time.
const NEIGHBOUR: f64 = 0.001;
/// The assumed loss of later jobs for each group that the job crosses, in the same unit.
const CROSSED: f64 = 0.0001;

/// Tries sets of nodes and keeps the cheapest one, the first among equals.
pub(super) struct Judge<'a> {
    newcomer: &'a Newcomer<'a>,
    outlook: Outlook<'a>,
    free: &'a FreeSlots<'a>,
    best: Vec<NodeIndex>,
    least: f64,
    most: usize,
    seen: Vec<Vec<NodeIndex>>,
}

impl<'a> Judge<'a> {
    /// Tries the given sets of nodes, each in ascending order. `first` stays the best if none can be used.
    pub fn new(
        newcomer: &'a Newcomer<'a>,
        free: &'a FreeSlots<'a>,
        first: Vec<NodeIndex>,
        others: Vec<Vec<NodeIndex>>,
    ) -> Self {
        let is_tree = free.fabric().wiring().is_tree();
        let fewest = if is_tree { FEWEST_TRIES } else { FEWEST_TRIES_WIRED };
        let most = (MOST_FLOWS / newcomer.flows(&first).max(1)).clamp(fewest, MOST_TRIES);
        let mut seen: Vec<Vec<NodeIndex>> = vec![first];
        for nodes in others {
            if seen.len() < most && !seen.contains(&nodes) {
                seen.push(nodes);
            }
        }
        let mut judge = Judge {
            newcomer,
            outlook: newcomer.outlook(),
            free,
            best: seen[0].clone(),
            least: f64::INFINITY,
            most,
            seen,
        };
        judge.begin();
        judge
    }

    /// Finds the best of the given sets. It starts with the smallest estimated loss of later jobs, because that often
    /// rules out the other sets.
    fn begin(&mut self) {
        let mut order: Vec<(f64, usize)> =
            self.seen.iter().map(|nodes| self.later(nodes)).zip(0..).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut best = usize::MAX;
        let seen = std::mem::take(&mut self.seen);
        for (later, place) in order {
            // Among equals, keep the set that was given first.
            let is_better = |cost: f64, least| cost < least || (cost <= least && place < best);
            if is_better(later, self.least) {
                let cost = self.loss(&seen[place]) + later;
                if cost < f64::INFINITY && is_better(cost, self.least) {
                    (self.least, best) = (cost, place);
                }
            }
        }
        if let Some(nodes) = seen.get(best) {
            self.best.clone_from(nodes);
        }
        self.seen = seen;
    }

    /// Whether more sets may be tried and one could still be cheaper.
    pub fn goes_on(&self) -> bool {
        self.seen.len() < self.most && self.least > 0.0
    }

    /// The best set so far.
    pub fn best(&self) -> &[NodeIndex] {
        &self.best
    }

    /// Returns the best set.
    pub fn into_best(self) -> Vec<NodeIndex> {
        self.best
    }

    /// Tries a set of nodes, in ascending order, unless it was tried before. Returns whether it is the best so far.
    pub fn consider(&mut self, nodes: Vec<NodeIndex>) -> bool {
        if !self.goes_on() || self.seen.contains(&nodes) {
            return false;
        }
        // A loss is never negative, so if the estimate for later jobs is already too high, skip the rest.
        let later = self.later(&nodes);
        let cost = if later < self.least { self.loss(&nodes) + later } else { later };
        let is_best = cost < self.least;
        if is_best {
            self.least = cost;
            self.best.clone_from(&nodes);
        }
        self.seen.push(nodes);
        is_best
    }

    /// Node-seconds lost per second if the job gets these nodes, including the estimate for later jobs.
    #[cfg(test)]
    pub fn cost(&mut self, nodes: &[NodeIndex]) -> f64 {
        self.loss(nodes) + self.later(nodes)
    }

    fn loss(&mut self, nodes: &[NodeIndex]) -> f64 {
        self.newcomer.loss(&mut self.outlook, nodes)
    }

    /// The estimated loss of later jobs on the uplinks that the job may use; 0 on other wirings than trees, where a group
    /// that a job crosses says little about links.
    fn later(&self, nodes: &[NodeIndex]) -> f64 {
        let fabric = self.free.fabric();
        if !fabric.wiring().is_tree() {
            return 0.0;
        }
        let crossed = groups_crossed(fabric, nodes);
        let of_group = |&(level, group): &(u8, u32)| {
            let level = usize::from(level);
            let range = fabric.node_range(level, group);
            let before = |end| nodes.partition_point(|&node| node < end);
            let own = (before(range.end) - before(range.start)) as u32;
            let left = self.free.count(level, group).saturating_sub(own);
            NEIGHBOUR * f64::from(left.min(own)) + CROSSED
        };
        crossed.iter().map(of_group).sum()
    }
}
