//! What a set of nodes costs, and the best so far.

use topolane_fabric::NodeIndex;
use topolane_traffic::Outlook;

use crate::network_load::Newcomer;
use crate::{FreeSlots, groups_crossed};

/// A decision looks at about so many flows: each set of nodes that is tried takes as many as the job has.
const MOST_FLOWS: usize = 10_000;
/// The most sets of nodes that it tries. The first few, which other policies would choose, are tried in any case.
const MOST_TRIES: usize = 80;
const FEWEST_TRIES: usize = 4;
/// What later jobs are taken to lose for every free node that stays next to one of the job in a group that the job crosses, in
/// node-seconds each second. It decides among sets of nodes on which no job present loses anything.
const NEIGHBOUR: f64 = 0.001;
/// The same for every group that the job crosses.
const CROSSED: f64 = 0.0001;

/// Tries sets of nodes, and keeps the one that costs least; of equals the first.
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
    /// `first` is the best until another one costs less.
    pub fn new(newcomer: &'a Newcomer<'a>, free: &'a FreeSlots<'a>, first: Vec<NodeIndex>) -> Self {
        let mut judge = Judge {
            newcomer,
            outlook: newcomer.outlook(),
            free,
            best: first.clone(),
            least: f64::INFINITY,
            most: (MOST_FLOWS / newcomer.flows().max(1)).clamp(FEWEST_TRIES, MOST_TRIES),
            seen: Vec::new(),
        };
        judge.consider(first);
        judge
    }

    /// Whether it may try more.
    pub fn goes_on(&self) -> bool {
        self.seen.len() < self.most
    }

    /// The best so far.
    pub fn best(&self) -> &[NodeIndex] {
        &self.best
    }

    /// The best of all.
    pub fn into_best(self) -> Vec<NodeIndex> {
        self.best
    }

    /// Tries nodes, in ascending order, unless they were tried before.
    pub fn consider(&mut self, nodes: Vec<NodeIndex>) {
        if !self.goes_on() || self.seen.contains(&nodes) {
            return;
        }
        let cost = self.cost(&nodes);
        if cost < self.least {
            self.least = cost;
            self.best.clone_from(&nodes);
        }
        self.seen.push(nodes);
    }

    /// Node-seconds lost each second on these nodes, those of later jobs included.
    pub fn cost(&mut self, nodes: &[NodeIndex]) -> f64 {
        self.newcomer.loss(&mut self.outlook, nodes) + self.later(nodes)
    }

    /// What later jobs are taken to lose on the uplinks that the job may use.
    fn later(&self, nodes: &[NodeIndex]) -> f64 {
        let fabric = self.free.fabric();
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
