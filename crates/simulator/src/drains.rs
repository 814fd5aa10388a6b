//! Nodes that are out of service for a time and end the jobs that they have first.

use topolane_fabric::NodeIndex;
use topolane_scheduler::Scheduler;

use crate::failures::Failure;

/// Follows nodes out of service and back.
pub(crate) struct Drains {
    /// (time, whether it goes out, node), by time.
    changes: Vec<(f64, bool, NodeIndex)>,
    next: usize,
}

impl Drains {
    /// Those of a run that begins at `first`.
    pub fn new(spans: &[Failure], first: f64) -> Self {
        let mut changes = Vec::with_capacity(2 * spans.len());
        for span in spans.iter().filter(|span| span.until > first) {
            changes.push((span.from.max(first), true, span.node));
            if span.until.is_finite() {
                changes.push((span.until, false, span.node));
            }
        }
        // What ends at one instant ends before the next begins.
        changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
        Drains { changes, next: 0 }
    }

    /// When a node goes out or comes back next.
    pub fn next(&self) -> Option<f64> {
        self.changes.get(self.next).map(|change| change.0)
    }

    /// Makes the changes that are due by `now`.
    pub fn follow(&mut self, now: f64, scheduler: &mut Scheduler) {
        while let Some(&(time, goes_out, node)) = self.changes.get(self.next)
            && time <= now
        {
            scheduler.set_in_service(node, !goes_out);
            self.next += 1;
        }
    }
}
