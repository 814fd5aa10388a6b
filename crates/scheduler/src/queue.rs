//! What a queue discipline is, and what it answers.

use topolane_placement::Refusal;

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

/// What a pass found out, apart from the jobs it started.
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
