//! Limits and costs of moving running jobs.

use std::sync::Arc;

use topolane_fabric::Fabric;
use topolane_placement::Placement;

/// Settings for moving running jobs, by checkpoint and restart, to place a job that is refused although enough nodes
/// are free. All jobs that swap places stop, are copied and continue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Defrag {
    /// The most jobs moved for one job that starts.
    pub most: u32,
    /// The most moves per started job, on average.
    pub per_start: f64,
    /// Seconds for which a moved job stops, in addition to the time of copying.
    pub pause: f64,
    /// The number of jobs started so far.
    pub(crate) starts: u64,
    /// The number of moves so far.
    pub(crate) moves: u64,
}

impl Defrag {
    /// Allows up to `most` moves for one job, and on average up to `per_start` for each job that starts. `pause` is in
    /// seconds.
    pub fn new(most: u32, per_start: f64, pause: f64) -> Self {
        Defrag { most, per_start, pause, starts: 0, moves: 0 }
    }

    /// The number of jobs that may be moved now.
    pub fn allowed(&self) -> u32 {
        let budget = self.per_start * self.starts as f64 - self.moves as f64;
        self.most.min(budget.max(0.0) as u32)
    }

    /// Seconds for which a job stops when it moves away from these nodes: the pause, plus the time to copy the largest
    /// memory over its node's link.
    pub fn seconds(&self, fabric: &Fabric, placement: &Placement) -> f64 {
        let copying = |&node: &u32| {
            let fastest = |most: f64, cable| fabric.bandwidth(cable).max(most);
            let bandwidth = fabric.uplinks(0, node).fold(0.0, fastest);
            // Nothing can be copied from a node without a cable; a job there has only that node.
            if bandwidth > 0.0 { fabric.kind(node).memory as f64 / bandwidth } else { 0.0 }
        };
        self.pause + placement.nodes().iter().map(copying).fold(0.0, f64::max)
    }
}

/// A running job that a pass moved.
#[derive(Debug, Clone)]
pub struct MovedJob {
    /// The job.
    pub id: u64,
    /// The new placement.
    pub placement: Arc<Placement>,
    /// The job that starts on the nodes that became free.
    pub made_room_for: u64,
}
