//! What a queue discipline is, and the disciplines by name.

use topolane_placement::Refusal;

use crate::queues::{Conservative, Easy, Fcfs, Recorded, Slurm};
use crate::view::View;

/// Decides which requests of the queue start now. What it keeps between passes is a cache of
/// promises; it reads no clock.
pub trait Queue: Send + Sync {
    /// The name it is registered under.
    fn name(&self) -> &'static str;

    /// Starts what may start (through [`View::start`]) and says what it promises the rest.
    fn pass(&mut self, view: &mut View<'_>) -> Pass;

    /// When it wants a pass after the one at `now`, though nothing happens; `None` for never.
    fn next_pass(&self, _now: f64) -> Option<f64> {
        None
    }

    /// Takes over what another scheduler has decided about the wait of its head.
    fn set_head_wait(&mut self, _wait: HeadWait) {}
}

/// What a pass found out beside what it started.
#[derive(Debug, Clone, Default)]
pub struct Pass {
    /// The promise to the head of the queue.
    pub reservation: Option<Reservation>,
    /// Why the head of the queue was not placed: its identity and the policy's reason.
    pub refusal: Option<(u64, Refusal)>,
    /// By which rule the head waits, under a policy with a [`HeadRule`](topolane_placement::HeadRule).
    pub head_wait: Option<HeadWait>,
}

/// The rule by which the head of the queue waits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeadWait {
    /// The request's identity.
    pub id: u64,
    /// The time by which the rule for heads has to place it, seconds; `None` if it goes by the policy itself.
    pub until: Option<f64>,
}

/// A promised start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reservation {
    /// The request's identity.
    pub id: u64,
    /// It starts at this time at the latest, seconds; infinite where no end of a running job helps.
    pub at: f64,
}

/// A discipline that can be asked for by name.
pub struct QueueInfo {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Builds it.
    pub build: fn() -> Box<dyn Queue>,
}

/// All disciplines.
pub const QUEUES: [QueueInfo; 5] = [
    QueueInfo { name: "fcfs", summary: "in order; nothing overtakes", build: || Box::new(Fcfs) },
    QueueInfo {
        name: "easy",
        summary: "one reservation, for the head; others overtake if it can still be kept",
        build: || Box::new(Easy::default()),
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
        build: || Box::new(Recorded),
    },
];

/// The discipline of that name; `None` where there is none.
pub fn queue(name: &str) -> Option<Box<dyn Queue>> {
    QUEUES.iter().find(|info| info.name == name).map(|info| (info.build)())
}
