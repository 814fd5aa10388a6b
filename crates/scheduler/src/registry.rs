//! The list of queue disciplines, by name.

use crate::queue::Queue;
use crate::queues::{Conservative, Easy, Fcfs, RecordedStarts, Slurm};

/// A registered queue discipline.
pub struct QueueInfo {
    /// The name of the discipline.
    pub name: &'static str,
    /// What the discipline does, in one line.
    pub summary: &'static str,
    /// Builds the discipline.
    pub build: fn() -> Box<dyn Queue>,
}

/// All queue disciplines.
pub const QUEUES: &[QueueInfo] = &[
    QueueInfo { name: "fcfs", summary: "in order; nothing overtakes", build: || Box::new(Fcfs) },
    QueueInfo {
        name: "easy",
        summary: "one reservation, for the head; others overtake if it can still be kept",
        build: || Box::new(Easy::default()),
    },
    QueueInfo {
        name: "easy-strict",
        summary: "easy, but a job overtakes the head only if it ends before the reservation",
        build: || Box::new(Easy::strict()),
    },
    QueueInfo {
        name: "easy-pinned",
        summary: "easy, but the reservation names nodes; others are placed as if the head were there",
        build: || Box::new(Easy::pinned()),
    },
    QueueInfo {
        name: "conservative",
        summary: "a reservation for every job; none is ever put later than first promised",
        build: || Box::new(Conservative::default()),
    },
    QueueInfo {
        name: "slurm",
        summary: "Slurm's main scheduler and backfill, with the priorities and limits of --queue-config",
        build: || Box::new(Slurm::default()),
    },
    QueueInfo {
        name: "recorded",
        summary: "start times from the log",
        build: || Box::new(RecordedStarts),
    },
];

/// Returns the discipline of this name; `None` if there is none.
pub fn queue(name: &str) -> Option<Box<dyn Queue>> {
    QUEUES.iter().find(|info| info.name == name).map(|info| (info.build)())
}
