//! Presents everything held during a time span to a policy, as one occupancy.

use std::ops::Range;

use topolane_placement::Occupancy;

use super::held::HeldTimelines;
use crate::timeline::CROSSED;
use crate::view::View;

/// The occupancy, and what it currently shows of the leaves and of the groups above.
pub(super) struct Span {
    pub state: Occupancy,
    pub leaves: Vec<u64>,
    groups: Vec<Vec<bool>>,
}

impl Span {
    /// Returns a state in which nothing is held.
    pub fn new(view: &View<'_>) -> Self {
        let fabric = view.occupancy.fabric();
        let mut state = view.occupancy.clone();
        for job in view.running.jobs() {
            state.release(&job.placement);
        }
        let groups = |level| vec![false; fabric.groups(level) as usize];
        let leaves = vec![0; fabric.groups(1) as usize];
        Span { state, leaves, groups: (0..=fabric.depth()).map(groups).collect() }
    }

    /// Shows everything that is held at any time of a span.
    pub fn show(&mut self, held: &HeldTimelines, when: (f64, f64)) {
        for (leaf, bits) in held.on_leaves(when) {
            self.show_leaf(held, leaf, bits);
        }
        for (level, group, is_crossed) in held.groups(when) {
            let shown = &mut self.groups[level][group as usize];
            if is_crossed != *shown {
                self.state.set_crossed(level, group, is_crossed);
                *shown = is_crossed;
            }
        }
    }

    fn show_leaf(&mut self, held: &HeldTimelines, leaf: u32, bits: u64) {
        let shown = std::mem::replace(&mut self.leaves[leaf as usize], bits);
        if bits == shown {
            return;
        }
        let first = held.fabric.node_range(1, leaf).start;
        for (changed, are_held) in [(shown & !bits, false), (bits & !shown, true)] {
            for run in runs(changed & !CROSSED) {
                self.state.set_held(first + run.start..first + run.end, are_held);
            }
        }
        if (bits ^ shown) & CROSSED != 0 {
            self.state.set_crossed(1, leaf, bits & CROSSED != 0);
        }
    }
}

/// Splits bits into runs of consecutive ones.
fn runs(mut bits: u64) -> impl Iterator<Item = Range<u32>> {
    std::iter::from_fn(move || {
        if bits == 0 {
            return None;
        }
        let start = bits.trailing_zeros();
        let end = start + (!(bits >> start)).trailing_zeros();
        bits &= !(((1 << (end - start)) - 1) << start);
        Some(start..end)
    })
}
