//! How many running jobs may be moved, and what a move costs.

use std::sync::Arc;

use topolane_fabric::Fabric;
use topolane_placement::Placement;

/// Moves of running jobs, by checkpoint, that make room for one that is refused though enough nodes are free: all that change their
/// places stop, are copied, and go on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Defrag {
    /// Jobs moved for one that starts, at most.
    pub most: u32,
    /// Moves for every job started, at most.
    pub per_start: f64,
    /// Seconds for which a moved job stands still in addition to the copying.
    pub pause: f64,
    /// Jobs started so far.
    pub(crate) starts: u64,
    /// Moves made so far.
    pub(crate) moves: u64,
}

impl Defrag {
    /// Up to `most` moves for one job, and on average up to `per_start` for each that starts.
    pub fn new(most: u32, per_start: f64, pause: f64) -> Self {
        Defrag { most, per_start, pause, starts: 0, moves: 0 }
    }

    /// Jobs that may be moved now.
    pub fn allowed(&self) -> u32 {
        let budget = self.per_start * self.starts as f64 - self.moves as f64;
        self.most.min(budget.max(0.0) as u32)
    }

    /// Seconds for which a job stands still that leaves these nodes: the pause, and the memory of the largest over its link.
    pub fn seconds(&self, fabric: &Fabric, placement: &Placement) -> f64 {
        let copying = |&node: &u32| {
            let fastest = |most: f64, cable| fabric.bandwidth(cable).max(most);
            let bandwidth = fabric.uplinks(0, node).fold(0.0, fastest);
            // A node without a cable has nothing that could be copied from it; its job has only that node.
            if bandwidth > 0.0 { fabric.kind(node).memory as f64 / bandwidth } else { 0.0 }
        };
        self.pause + placement.nodes().iter().map(copying).fold(0.0, f64::max)
    }
}

/// A running job that a pass has moved.
#[derive(Debug, Clone)]
pub struct Moved {
    /// The job.
    pub id: u64,
    /// Where it is now.
    pub placement: Arc<Placement>,
    /// The job that starts in the room that this made.
    pub made_room_for: u64,
}
