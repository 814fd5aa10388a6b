//! What a queue remembers of the head's reservation from one pass to the next.

use topolane_placement::{Policy, Refusal, Request, RoomHelps};

use crate::future::Future;
use crate::view::View;

/// The answers that the last reservation rests on, under a policy that more room never harms: they hold until a job goes that
/// leaves more room at that time, or one comes that the queue did not start.
#[derive(Debug)]
pub(crate) struct Promise {
    head: u64,
    nodes: u32,
    /// The rule that answered.
    rule: usize,
    /// The head is placed once all jobs are gone that are expected to end by then.
    at: f64,
    /// It is refused as long as those are there that are expected to end then or later, and so it is now.
    refused_before: f64,
    /// The changes of running jobs, and of nodes and links in service, that are counted in.
    seen: u64,
    service: u64,
}

impl Promise {
    /// Whether the answers of a rule for a request may be remembered.
    pub fn may_last(request: &Request, rule: &dyn Policy, view: &View<'_>) -> bool {
        rule.traits().isolates
            && request.is_plain()
            && request.most <= request.nodes
            && rule.room_helps(request) == RoomHelps::Always
            && view.occupancy.is_joined()
            && view.defrag.is_none()
    }

    /// Of a head that is placed at one time and refused before another.
    pub fn new(head: &Request, at: f64, refused_before: f64, view: &View<'_>) -> Option<Self> {
        Promise::may_last(head, view.policy, view).then(|| Promise {
            head: head.id,
            nodes: head.nodes,
            rule: number_of(view.policy),
            at,
            refused_before,
            seen: view.running.changes(),
            service: view.occupancy.service_changes(),
        })
    }

    /// Takes in which jobs came and went since the last pass. False if nothing is left of the promise to this request.
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
            && Promise::may_last(request, view.policy, view);
        if !is_same {
            return false;
        }
        let future = Future::of(future, view);
        let Some(mut changes) = view.running.changes_since(self.seen) else { return false };
        let ends = view.running.times();
        let before = ends.partition_point(|&end| end < self.refused_before);
        // What is not idle in this state is not idle at any time before.
        let is_ahead = ends[..before].last().is_none_or(|&end| future.until() >= end);
        let mut refused = true;
        let known = changes.all(|change| {
            let is_gone = !change.came && change.expected_end >= self.refused_before;
            if is_gone && (!is_ahead || future.leaves_idle(&change.placement)) {
                refused = false;
            }
            // What came since is nothing that the head was asked about.
            !change.came
        });
        self.seen = view.running.changes();
        known && refused
    }

    /// Counts in what the queue itself has started since, none of which delays the head.
    pub fn count_own_starts(&mut self, view: &View<'_>) {
        self.seen = view.running.changes();
    }

    /// The refusal of the head now, if it is known.
    pub fn refusal(&self, request: &Request, view: &View<'_>) -> Option<Refusal> {
        let free = view.occupancy.idle_nodes();
        let is_known = self.refused_before > f64::NEG_INFINITY && free >= request.nodes;
        is_known.then_some(Refusal::WouldShareLinks { wanted: request.nodes, free })
    }

    /// Of the times, ascending, at which jobs are expected to end: the head is refused before the first, and placed at the second,
    /// or known to be placed at none if that is their number.
    pub fn bounds(&self, ends: &[f64], now: f64) -> (usize, usize) {
        let low = ends.partition_point(|&end| end < self.refused_before);
        let placed = ends.partition_point(|&end| end.max(now) <= self.at).saturating_sub(1);
        let high = if self.at < f64::INFINITY { placed } else { ends.len() };
        (low.min(high), high)
    }
}

/// Which of its rules a policy goes by.
pub(crate) fn number_of(rule: &dyn Policy) -> usize {
    std::ptr::from_ref(rule).cast::<()>().addr()
}
