//! Areas: sets of nodes among which another system may choose freely, without a job that shares links with others.

use topolane_fabric::{GroupIndex, NodeIndex};

use crate::free_slots::FreeSlots;
use crate::occupancy::Occupancy;
use crate::request::Request;

/// The jobs with which links must not be shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepOff {
    /// All jobs.
    All,
    /// Isolated jobs only.
    Isolated,
}

/// Sets of free nodes from which another system may choose. A job on any nodes of one set crosses only groups that no
/// job of `keep_off` crosses. Each set has slots for all of `request.nodes`. Sets inside lower groups come first; at
/// the same level, smaller sets come first.
pub fn areas(request: &Request, occupancy: &Occupancy, keep_off: KeepOff) -> Vec<Vec<NodeIndex>> {
    let free = occupancy.free_slots(request);
    let search = AreaSearch { free: &free, occupancy, keep_off, spans: request.nodes > 1 };
    let fabric = free.fabric();
    let mut found: Vec<Vec<NodeIndex>> = Vec::new();
    // On other wirings than trees, links inside a crossed group are not known to be apart. A job on one switch uses none.
    let top = if fabric.wiring().is_tree() { fabric.depth() } else { 1 };
    for level in 1..=top {
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
            KeepOff::All => self.occupancy.crossing(level, group) > 0,
            KeepOff::Isolated => self.occupancy.isolated_crossing(level, group) > 0,
        }
    }

    /// Appends the nodes of a group that can be reached over uncrossed groups. Returns the number of groups directly
    /// below that contributed nodes.
    fn collect(&self, level: usize, group: GroupIndex, nodes: &mut Vec<NodeIndex>) -> usize {
        let fabric = self.free.fabric();
        let mut parts = 0;
        if level == 1 {
            let range = fabric.node_range(1, group);
            let usable = |&node: &NodeIndex| {
                self.free.contains(node) && !(self.spans && self.is_crossed(0, node))
            };
            nodes.extend(range.filter(usable));
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
