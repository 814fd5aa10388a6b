//! Messages between processes of one node: copies that share the memory bandwidth.

use std::sync::Arc;

use topolane_fabric::{Fabric, NodeIndex};

use super::per_node::NodeRule;
use crate::flows::Flows;

/// The number of times that a byte sent between processes passes to or from memory. It is copied into a shared buffer
/// and out of it, and each copy is a read and a write.
pub const PASSES: f64 = 4.0;

/// Each of n flows inside a node gets
///
/// min(copy bandwidth, memory bandwidth / (PASSES n)).
///
/// Flows between nodes are not limited.
#[derive(Debug)]
pub struct SharedMemory {
    fabric: Arc<Fabric>,
    /// The number of flows inside every node.
    inside: Vec<u32>,
}

impl SharedMemory {
    /// Returns a rule without flows.
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
