//! The interface of queue disciplines.

use topolane_placement::Refusal;

use crate::view::View;

/// Decides which waiting requests start now. Between passes it keeps only a cache of promises. It reads no clock.
pub trait Queue: Send + Sync {
    /// The name under which it is registered.
    fn name(&self) -> &'static str;

    /// Starts the jobs that may start (through [`View::start`]) and returns what it promises to others.
    fn pass(&mut self, view: &mut View<'_>) -> Pass;

    /// When a further pass is needed after the one at `now` even if nothing happens; `None` for never.
    fn next_pass(&self, _now: f64) -> Option<f64> {
        None
    }

    /// Takes over another scheduler's decision about how its head waits.
    fn set_head_wait(&mut self, _wait: HeadWait) {}
}

/// The results of a pass, apart from the jobs that it started.
#[derive(Debug, Clone, Default)]
pub struct Pass {
    /// The reservation of the head of the queue.
    pub reservation: Option<Reservation>,
    /// The id of the head of the queue and the policy's refusal.
    pub refusal: Option<(u64, Refusal)>,
    /// How the head waits, under a policy with a [`HeadRule`](topolane_placement::HeadRule).
    pub head_wait: Option<HeadWait>,
}

/// How the head of the queue waits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeadWait {
    /// The id of the request.
    pub id: u64,
    /// The time, in seconds, by which the rule for heads must place it; `None` if the policy itself places it.
    pub until: Option<f64>,
}

/// A promised start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reservation {
    /// The id of the request.
    pub id: u64,
    /// The latest start in seconds; infinite if no end of a running job makes it fit.
    pub at: f64,
}
