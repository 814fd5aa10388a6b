//! Remembers the head's reservation between passes.

use topolane_placement::{Policy, Refusal, Request, RoomHelps};

use crate::future::Future;
use crate::view::View;

/// The answers behind the last reservation, under a policy that never refuses because of more free capacity. They hold
/// until a job ends and frees capacity at that time, or a job arrives that the queue did not start.
#[derive(Debug)]
pub(crate) struct HeadPromise {
    head: u64,
    nodes: u32,
    /// The policy that gave the answers.
    rule: usize,
    /// The time of the reservation: the head fits once all jobs expected to end by then are gone.
    at: f64,
    /// The head is refused at every time before this one, including now.
    refused_before: f64,
    /// The number of changes of running jobs, nodes and links that the answers include.
    seen: u64,
    service: u64,
}

impl HeadPromise {
    /// Whether answers of a policy for a request may be remembered.
    pub fn may_last(request: &Request, rule: &dyn Policy, view: &View<'_>) -> bool {
        rule.traits().isolates
            && request.is_plain()
            && request.most <= request.nodes
            && rule.room_helps(request) == RoomHelps::Always
            && view.occupancy.is_joined()
            && view.defrag.is_none()
    }

    /// Returns a promise for a head that fits at `at` and is refused before `refused_before`; `None` if it may not be
    /// remembered.
    pub fn new(head: &Request, at: f64, refused_before: f64, view: &View<'_>) -> Option<Self> {
        HeadPromise::may_last(head, view.policy, view).then(|| HeadPromise {
            head: head.id,
            nodes: head.nodes,
            rule: number_of(view.policy),
            at,
            refused_before,
            seen: view.running.changes(),
            service: view.occupancy.service_changes(),
        })
    }

    /// Applies arrivals and departures of jobs since the last pass. Returns false if the promise no longer holds for
    /// this request.
    pub fn follow(
        &mut self,
        request: &Request,
        view: &View<'_>,
        future: &mut Option<Future>,
    ) -> bool {
        let is_same = self.head == request.id
            && self.nodes == request.nodes
            && self.rule == number_of(view.policy)
            && self.service == view.occupancy.service_changes()
            && self.at >= view.now
            && HeadPromise::may_last(request, view.policy, view);
        if !is_same {
            return false;
        }
        let future = Future::of(future, view);
        let Some(mut changes) = view.running.changes_since(self.seen) else { return false };
        let ends = view.running.times();
        let before = ends.partition_point(|&end| end < self.refused_before);
        // A node that is busy in this state is busy at all earlier times too.
        let is_ahead = ends[..before].last().is_none_or(|&end| future.until() >= end);
        let mut refused = true;
        let known = changes.all(|change| {
            let is_gone = !change.came && change.expected_end >= self.refused_before;
            if is_gone && (!is_ahead || future.leaves_idle(&change.placement)) {
                refused = false;
            }
            // A job that arrived since was not part of the answers for the head.
            !change.came
        });
        self.seen = view.running.changes();
        known && refused
    }

    /// Includes the jobs that the queue itself has started since; none of them delays the head.
    pub fn count_own_starts(&mut self, view: &View<'_>) {
        self.seen = view.running.changes();
    }

    /// The refusal of the head now, if it is known.
    pub fn refusal(&self, request: &Request, view: &View<'_>) -> Option<Refusal> {
        let free = view.occupancy.idle_nodes();
        let is_known = self.refused_before > f64::NEG_INFINITY && free >= request.nodes;
        is_known.then_some(Refusal::WouldShareLinks { wanted: request.nodes, free })
    }

    /// Bounds for a search over `ends`, the ascending times at which jobs are expected to end: the head is refused at
    /// all ends before the first index, and fits at the second. If the second is `ends.len()`, no end is known at which
    /// it fits.
    pub fn bounds(&self, ends: &[f64], now: f64) -> (usize, usize) {
        let low = ends.partition_point(|&end| end < self.refused_before);
        let placed = ends.partition_point(|&end| end.max(now) <= self.at).saturating_sub(1);
        let high = if self.at < f64::INFINITY { placed } else { ends.len() };
        (low.min(high), high)
    }
}

/// A number that identifies a policy object.
pub(crate) fn number_of(rule: &dyn Policy) -> usize {
    std::ptr::from_ref(rule).cast::<()>().addr()
}
