//! Takes nodes out of service for a time. Jobs already on them run to their end.

use topolane_fabric::NodeIndex;
use topolane_scheduler::Scheduler;

use crate::failures::Failure;

/// Takes nodes out of service and puts them back as time goes on.
pub(crate) struct Drains {
    /// Changes as (time, whether it goes out, node), in order of time.
    changes: Vec<(f64, bool, NodeIndex)>,
    next: usize,
}

impl Drains {
    /// Returns the changes of a run that begins at `first`.
    pub fn new(spans: &[Failure], first: f64) -> Self {
        let mut changes = Vec::with_capacity(2 * spans.len());
        for span in spans.iter().filter(|span| span.until > first) {
            changes.push((span.from.max(first), true, span.node));
            if span.until.is_finite() {
                changes.push((span.until, false, span.node));
            }
        }
        // At the same time, a node that comes back comes before one that goes out.
        changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
        Drains { changes, next: 0 }
    }

    /// The time at which a node next goes out or comes back.
    pub fn next(&self) -> Option<f64> {
        self.changes.get(self.next).map(|change| change.0)
    }

    /// Applies the changes that are due by `now`.
    pub fn follow(&mut self, now: f64, scheduler: &mut Scheduler) {
        while let Some(&(time, goes_out, node)) = self.changes.get(self.next)
            && time <= now
        {
            scheduler.set_in_service(node, !goes_out);
            self.next += 1;
        }
    }
}
