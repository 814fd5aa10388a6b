//! A subnet: hosts, switches and the cables between them.

use std::collections::HashMap;

use super::lids::Lids;

/// A host, or a switch, with at least one cable.
pub(super) struct Vertex {
    pub name: String,
    pub is_host: bool,
    /// The line of the file that describes it.
    pub line: usize,
    /// Whether it is outside the tree of nodes.
    pub skipped: bool,
}

impl Vertex {
    pub(super) fn new(name: String, is_host: bool, line: usize) -> Vertex {
        Vertex { name, is_host, line, skipped: false }
    }
}

/// One end of a cable: a vertex and its port. The ports of a host's second adapter are numbered after those of its
/// first.
#[derive(Clone, Copy)]
pub(super) struct CableEnd {
    pub vertex: usize,
    pub port: u32,
}

pub(super) struct Cable {
    pub ends: [CableEnd; 2],
    /// Data bandwidth in each direction, in bytes per second.
    pub bandwidth: f64,
}

/// The receiver of some LIDs.
pub(super) struct Address {
    pub lids: Lids,
    /// Port 0 of a switch, or a port of a host; `None` for a device outside the tree.
    pub end: Option<CableEnd>,
    /// Identifier of the port (port GUID), if the file gives it.
    pub guid: Option<u64>,
    /// The line of the file that gives the LIDs.
    pub line: usize,
}

#[derive(Default)]
pub(super) struct Subnet {
    pub vertices: Vec<Vertex>,
    pub cables: Vec<Cable>,
    /// Cables outside the tree of nodes.
    pub spare: Vec<Cable>,
    /// The switches, by identifier (node GUID).
    pub switches: HashMap<u64, usize>,
    pub addresses: Vec<Address>,
    /// What was assumed or skipped, a sentence each.
    pub notes: Vec<String>,
}

impl Subnet {
    /// Marks as skipped the vertices that `which` selects, with their cables. Returns those that were not skipped
    /// before.
    pub(super) fn skip(&mut self, which: impl Fn(usize, &Vertex) -> bool) -> Vec<usize> {
        let mut skipped = Vec::new();
        for (index, vertex) in self.vertices.iter_mut().enumerate() {
            if !vertex.skipped && which(index, vertex) {
                vertex.skipped = true;
                skipped.push(index);
            }
        }
        let left = |vertices: &[Vertex], cable: &Cable| {
            cable.ends.iter().any(|end| vertices[end.vertex].skipped)
        };
        self.drop_cables(left);
        skipped
    }

    /// Makes spare the cables that `which` selects.
    pub(super) fn drop_cables(&mut self, which: impl Fn(&[Vertex], &Cable) -> bool) {
        let vertices = &self.vertices;
        let all = std::mem::take(&mut self.cables).into_iter();
        let (spare, kept): (Vec<Cable>, Vec<Cable>) = all.partition(|cable| which(vertices, cable));
        self.spare.extend(spare);
        self.cables = kept;
    }
}
