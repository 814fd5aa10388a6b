//! Areas: sets of nodes among which another system may choose freely, without a job that shares links with others.

use topolane_fabric::{GroupIndex, NodeIndex};

use crate::apart::areas_apart;
use crate::free_slots::FreeSlots;
use crate::occupancy::Occupancy;
use crate::promise::{LinksToAvoid, Promise};
use crate::request::Request;

/// The jobs with which links must not be shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepOff {
    /// All jobs.
    All,
    /// All jobs, on links between the groups of a dragonfly; on a tree everywhere.
    AllBetweenGroups,
    /// Isolated jobs only.
    Isolated,
}

/// Sets of free nodes from which another system may choose. A job on any nodes of one set crosses only groups that no
/// job of `keep_off` crosses; on other wirings than a tree it uses none of their links. Each set has slots for all of `request.nodes`.
/// Sets inside lower groups come first; at the same level, smaller sets come first.
pub fn areas(request: &Request, occupancy: &Occupancy, keep_off: KeepOff) -> Vec<Vec<NodeIndex>> {
    let free = occupancy.free_slots(request);
    let search = AreaSearch { free: &free, occupancy, keep_off, spans: request.nodes > 1 };
    let fabric = free.fabric();
    if let Some((promise, links)) = keep_off.on_other_wirings(occupancy) {
        return areas_apart(promise, links, &free, request.nodes, |node| search.is_usable(node));
    }
    let mut found: Vec<Vec<NodeIndex>> = Vec::new();
    for level in 1..=fabric.depth() {
        let before = found.len();
        for group in 0..fabric.groups(level) {
            let mut nodes = Vec::new();
            // If all nodes lie in one group below, that group already gave the same set.
            let parts = search.collect(level, group, &mut nodes);
            if nodes.len() >= request.nodes as usize && (level == 1 || parts > 1) {
                found.push(nodes);
            }
        }
        found[before..].sort_by_key(Vec::len);
    }
    found
}

impl KeepOff {
    /// What is promised on a wiring that is not a tree, and the links that must not be used then.
    fn on_other_wirings(self, occupancy: &Occupancy) -> Option<(Promise, LinksToAvoid<'_>)> {
        let promise = match self {
            KeepOff::All | KeepOff::Isolated => Promise::AllLinks,
            KeepOff::AllBetweenGroups => Promise::BetweenGroups,
        };
        let links = match self {
            KeepOff::All | KeepOff::AllBetweenGroups => LinksToAvoid::of(promise, occupancy)?,
            KeepOff::Isolated => LinksToAvoid::of_others(occupancy)?,
        };
        Some((promise, links))
    }
}

struct AreaSearch<'a> {
    free: &'a FreeSlots<'a>,
    occupancy: &'a Occupancy,
    keep_off: KeepOff,
    /// Whether the job has several nodes and therefore uses their links.
    spans: bool,
}

impl AreaSearch<'_> {
    fn is_crossed(&self, level: usize, group: GroupIndex) -> bool {
        match self.keep_off {
            KeepOff::All | KeepOff::AllBetweenGroups => self.occupancy.crossing(level, group) > 0,
            KeepOff::Isolated => self.occupancy.isolated_crossing(level, group) > 0,
        }
    }

    /// Whether a node is free, and so is its link if the job uses it.
    fn is_usable(&self, node: NodeIndex) -> bool {
        self.free.contains(node) && !(self.spans && self.is_crossed(0, node))
    }

    /// Appends the nodes of a group that can be reached over uncrossed groups. Returns the number of groups directly
    /// below that contributed nodes.
    fn collect(&self, level: usize, group: GroupIndex, nodes: &mut Vec<NodeIndex>) -> usize {
        let fabric = self.free.fabric();
        let mut parts = 0;
        if level == 1 {
            let range = fabric.node_range(1, group);
            nodes.extend(range.filter(|&node| self.is_usable(node)));
            return parts;
        }
        for child in fabric.children(level, group) {
            if !self.is_crossed(level - 1, child) {
                let before = nodes.len();
                self.collect(level - 1, child, nodes);
                parts += usize::from(nodes.len() > before);
            }
        }
        parts
    }
}
