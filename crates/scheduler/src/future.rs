//! The machine as it will be when some of the running jobs have ended.

use std::sync::Arc;

use topolane_placement::{Occupancy, Placement, Share, WhatIf};

use crate::running::Running;
use crate::view::View;

/// The state in which every job is gone that is expected to end by a certain time. It follows the running jobs from pass to
/// pass, and goes to another time by the jobs that end in between.
#[derive(Debug)]
pub(crate) struct Future {
    occupancy: Occupancy,
    until: f64,
    /// The changes of running jobs that are in it.
    seen: u64,
}

impl Future {
    /// The state now.
    fn now(view: &View<'_>) -> Self {
        Future {
            occupancy: view.occupancy.without_network(),
            until: f64::NEG_INFINITY,
            seen: view.running.changes(),
        }
    }

    /// The state that was kept, brought up to date, or else the state now.
    pub fn of<'a>(kept: &'a mut Option<Self>, view: &View<'_>) -> &'a mut Self {
        if !kept.as_mut().is_some_and(|future| future.follow(view)) {
            *kept = None;
        }
        kept.get_or_insert_with(|| Future::now(view))
    }

    /// Takes in what has changed since; false if it cannot.
    fn follow(&mut self, view: &View<'_>) -> bool {
        if self.occupancy.service_changes() != view.occupancy.service_changes() {
            return false;
        }
        let Some(changes) = view.running.changes_since(self.seen) else { return false };
        for change in changes.filter(|change| change.expected_end > self.until) {
            if !change.came {
                self.occupancy.release(&change.placement);
            } else if self.occupancy.adopt(&change.placement).is_err() {
                return false;
            }
        }
        self.seen = view.running.changes();
        self.occupancy.set_demand(Arc::clone(view.occupancy.demand()));
        true
    }

    /// The time of the state: whoever is expected to end by then is gone.
    pub fn until(&self) -> f64 {
        self.until
    }

    /// Goes to another time. The running jobs are those that it follows.
    pub fn go_to(&mut self, until: f64, running: &Running) {
        for job in running.ending_in(self.until, until) {
            self.occupancy.release(&job.placement);
        }
        for job in running.ending_in(until, self.until) {
            let held = self.occupancy.adopt(&job.placement);
            debug_assert!(held.is_ok(), "what was held is free");
        }
        self.until = until;
    }

    /// Whether there is more room for whole nodes in it without a placement that is gone.
    pub fn leaves_idle(&self, placement: &Placement) -> bool {
        let idle = self.occupancy.idle();
        matches!(placement.share(), Share::Whole)
            || placement.spans_nodes()
            || placement.held().any(|node| idle.contains(node))
    }

    /// The state.
    pub fn occupancy(&self) -> &Occupancy {
        &self.occupancy
    }

    /// The state, to try things on.
    pub fn what_if(&mut self) -> WhatIf<'_> {
        self.occupancy.what_if()
    }
}

/// The first index below `end` from which on `holds` is true, if there is one: `holds` is false up to some index and true from
/// there on. It is known to be false before `bounds.0`, and true from `bounds.1` on if that is below `end`. It looks at `guess` first
/// and in growing steps from there.
pub(crate) fn first_where(
    end: usize,
    bounds: (usize, usize),
    guess: usize,
    mut holds: impl FnMut(usize) -> bool,
) -> Option<usize> {
    // Below `low` it is false, from `high` on true.
    let (mut low, mut high) = bounds;
    let mut probe = guess.min(high.saturating_sub(1)).max(low);
    let mut step = 1;
    while low < high {
        if holds(probe) {
            high = probe;
        } else {
            low = probe + 1;
        }
        probe = match (low, high) {
            (low, high) if low == bounds.0 => high.saturating_sub(step).max(low),
            (_, high) if high == end => (probe + step).min(end - 1),
            (low, high) => low + (high - low) / 2,
        };
        step *= 2;
    }
    (low < end).then_some(low)
}

#[cfg(test)]
mod tests {
    use super::first_where;

    /// Whatever the guess, it finds the first index, and asks few of them.
    #[test]
    fn first_where_finds_the_first() {
        for end in 0..40 {
            for first in 0..=end {
                for guess in 0..=end {
                    for bounds in
                        [(0, end), (0, first), (first, end), (first / 2, end.min(first + 3))]
                    {
                        let mut asked = 0;
                        let found = first_where(end, bounds, guess, |index| {
                            assert!(bounds.0 <= index && index < bounds.1, "{index} is known");
                            asked += 1;
                            index >= first
                        });
                        assert_eq!(found, (first < end).then_some(first), "{end} {first} {guess}");
                        assert!(
                            asked <= 2 + 2 * (usize::BITS - end.leading_zeros()),
                            "{asked} of {end}"
                        );
                    }
                }
            }
        }
    }
}
