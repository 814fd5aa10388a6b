//! Moves of running jobs, and what they cost.

use std::sync::Arc;

use topolane_fabric::Fabric;
use topolane_placement::Placement;

/// Moves of running jobs, by checkpoint: all that change their places stop, are copied, and go on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moving {
    /// Jobs moved for one that starts, at most.
    pub most: u32,
    /// Moves for every job started, at most.
    pub per_start: f64,
    /// Seconds for which a moved job stands still beside the copying.
    pub pause: f64,
}

/// A running job that changed its places.
#[derive(Debug, Clone)]
pub struct Move {
    /// When, seconds since the workload's epoch.
    pub time: f64,
    /// Where it was until then.
    pub from: Arc<Placement>,
    /// Seconds for which it stood still.
    pub pause: f64,
}

impl Moving {
    /// Seconds for which a job stands still that leaves these nodes: the memory of the largest, over its link.
    pub(crate) fn seconds(&self, fabric: &Fabric, placement: &Placement) -> f64 {
        let copying = |&node: &u32| {
            let fastest = |most: f64, cable| fabric.bandwidth(cable).max(most);
            let bandwidth = fabric.uplinks(0, node).fold(0.0, fastest);
            // A node without a cable has nothing that could be copied from it; its job has only that node.
            if bandwidth > 0.0 { fabric.kind(node).memory as f64 / bandwidth } else { 0.0 }
        };
        self.pause + placement.nodes().iter().map(copying).fold(0.0, f64::max)
    }
}

/// Whether two lists have a node in common; neither is in order.
pub(crate) fn meet(one: &[u32], other: &[u32]) -> bool {
    one.iter().any(|node| other.contains(node))
}
