//! Where another system may choose nodes freely, without a job that meets others on links.

use topolane_fabric::{GroupIndex, NodeIndex};

use crate::free_slots::FreeSlots;
use crate::occupancy::Occupancy;
use crate::request::Request;

/// Which jobs' links are to be kept off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepOff {
    /// Those of every job.
    All,
    /// Those of isolated jobs.
    Isolated,
}

/// Sets of free nodes. A job on any nodes of one set crosses only groups that no job crosses from whose links it has to keep
/// off. Each set has a slot for all of `request.nodes`; sets inside lower groups come first, of one level the smaller ones.
pub fn areas(request: &Request, occupancy: &Occupancy, keep_off: KeepOff) -> Vec<Vec<NodeIndex>> {
    let free = occupancy.free_slots(request);
    let search = Search { free: &free, occupancy, keep_off, spans: request.nodes > 1 };
    let fabric = free.fabric();
    let mut found: Vec<Vec<NodeIndex>> = Vec::new();
    for level in 1..=fabric.depth() {
        let before = found.len();
        for group in 0..fabric.groups(level) {
            let mut nodes = Vec::new();
            // A group whose nodes all lie in one group below adds nothing to that one.
            let parts = search.collect(level, group, &mut nodes);
            if nodes.len() >= request.nodes as usize && (level == 1 || parts > 1) {
                found.push(nodes);
            }
        }
        found[before..].sort_by_key(Vec::len);
    }
    found
}

struct Search<'a> {
    free: &'a FreeSlots<'a>,
    occupancy: &'a Occupancy,
    keep_off: KeepOff,
    /// Whether the job has several nodes, and so uses the links of its nodes.
    spans: bool,
}

impl Search<'_> {
    fn is_crossed(&self, level: usize, group: GroupIndex) -> bool {
        match self.keep_off {
            KeepOff::All => self.occupancy.crossing(level, group) > 0,
            KeepOff::Isolated => self.occupancy.isolated_crossing(level, group) > 0,
        }
    }

    /// Appends the nodes of a group that uncrossed groups lead to; returns how many groups directly below gave some.
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
