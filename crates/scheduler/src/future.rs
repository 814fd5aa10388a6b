//! The state of the machine at a later time, when some of the running jobs have ended.

use std::sync::Arc;

use topolane_placement::{Occupancy, Placement, Share, WhatIf};

use crate::running::Running;
use crate::view::View;

/// The state without the jobs that are expected to end by a given time. It is kept between passes and updated with the
/// running jobs. To go to another time, it adds or removes the jobs that end in between.
#[derive(Debug)]
pub(crate) struct Future {
    occupancy: Occupancy,
    until: f64,
    /// The number of changes of running jobs that the state includes.
    seen: u64,
}

impl Future {
    /// Returns the state now.
    fn now(view: &View<'_>) -> Self {
        Future {
            occupancy: view.occupancy.without_network(),
            until: f64::NEG_INFINITY,
            seen: view.running.changes(),
        }
    }

    /// Returns the kept state, updated, or else the state now.
    pub fn of<'a>(kept: &'a mut Option<Self>, view: &View<'_>) -> &'a mut Self {
        if !kept.as_mut().is_some_and(|future| future.follow(view)) {
            *kept = None;
        }
        kept.get_or_insert_with(|| Future::now(view))
    }

    /// Applies all changes since the last update. Returns false if that is not possible.
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

    /// The time of the state: jobs expected to end by then are gone.
    pub fn until(&self) -> f64 {
        self.until
    }

    /// Moves the state to another time. `running` must be the jobs that the state follows.
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

    /// Whether removing this placement frees whole nodes in the state.
    pub fn leaves_idle(&self, placement: &Placement) -> bool {
        let idle = self.occupancy.idle();
        matches!(placement.share(), Share::Whole)
            || placement.spans_nodes()
            || placement.held().any(|node| idle.contains(node))
    }

    /// The occupancy at that time.
    pub fn occupancy(&self) -> &Occupancy {
        &self.occupancy
    }

    /// Returns a guard through which to try changes of the state.
    pub fn what_if(&mut self) -> WhatIf<'_> {
        self.occupancy.what_if()
    }
}

/// The first index below `end` for which `holds` is true, if there is one. `holds` must be false up to some index and
/// true from there on. It is known to be false below `bounds.0`, and true from `bounds.1` on (unless that is `end`).
/// The search starts at `guess` and proceeds in growing steps.
pub(crate) fn first_where(
    end: usize,
    bounds: (usize, usize),
    guess: usize,
    mut holds: impl FnMut(usize) -> bool,
) -> Option<usize> {
    // `holds` is false below `low` and true from `high` on.
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

    /// For any guess it finds the first index and calls `holds` only a few times.
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
