//! Moves of running jobs.

use std::sync::Arc;

use topolane_placement::Placement;

/// A running job that changed its places.
#[derive(Debug, Clone)]
pub struct Move {
    /// When, seconds since the workload's epoch.
    pub time: f64,
    /// Where it was until then.
    pub from: Arc<Placement>,
    /// Seconds for which it stood still.
    pub pause: f64,
    /// The job, an index into the workload's jobs, that started in the room that this made; `None` if a spare node took the place of
    /// one that failed.
    pub made_room_for: Option<usize>,
}

/// Whether two lists have a node in common; neither is in order.
pub(crate) fn meet(one: &[u32], other: &[u32]) -> bool {
    one.iter().any(|node| other.contains(node))
}
