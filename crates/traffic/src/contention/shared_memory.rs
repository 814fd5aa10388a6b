//! Messages between processes of one node: copies that share its memory.

use std::sync::Arc;

use topolane_fabric::{Fabric, NodeIndex};

use super::per_node::NodeRule;
use crate::flows::Flows;

/// How often a byte that one process sends another passes to or from memory: into a shared buffer
/// and out of it, each a read and a write.
pub const PASSES: f64 = 4.0;

/// n flows inside a node get each
///
/// min(copy bandwidth, memory bandwidth / (PASSES n)).
///
/// Flows between nodes are not limited.
#[derive(Debug)]
pub struct SharedMemory {
    fabric: Arc<Fabric>,
    /// Flows inside every node.
    inside: Vec<u32>,
}

impl SharedMemory {
    /// No flow on any node.
    pub fn new(fabric: Arc<Fabric>) -> Self {
        let inside = vec![0; fabric.nodes() as usize];
        SharedMemory { fabric, inside }
    }
}

impl NodeRule for SharedMemory {
    fn name(&self) -> &'static str {
        "shared-memory"
    }

    fn count(&mut self, flows: &Flows, present: bool) {
        for flow in 0..flows.len() {
            let (from, to) = flows.ends(flow);
            if from == to {
                let count = &mut self.inside[from as usize];
                *count = if present { *count + 1 } else { *count - 1 };
            }
        }
    }

    fn rate(&self, (from, to): (NodeIndex, NodeIndex)) -> f64 {
        if from != to {
            return f64::INFINITY;
        }
        let kind = self.fabric.kind(from);
        let share = kind.memory_bandwidth / (PASSES * f64::from(self.inside[from as usize]));
        kind.copy_bandwidth.min(share)
    }
}
