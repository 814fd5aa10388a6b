//! Moves of running jobs.

use std::sync::Arc;

use topolane_placement::Placement;

/// A move of a running job.
#[derive(Debug, Clone)]
pub struct Move {
    /// The time of the move, in seconds since the workload's epoch.
    pub time: f64,
    /// The placement until then.
    pub from: Arc<Placement>,
    /// Seconds for which the job stopped.
    pub pause: f64,
    /// The job that could start because of the move, as an index into the workload's jobs; `None` if the job moved to a
    /// spare node after a failure.
    pub made_room_for: Option<usize>,
}

/// Whether two unsorted lists have a node in common.
pub(crate) fn meet(one: &[u32], other: &[u32]) -> bool {
    one.iter().any(|node| other.contains(node))
}
