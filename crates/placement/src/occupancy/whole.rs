//! Takes and gives back whole nodes in runs. A run is a sequence of consecutive nodes of one leaf. Its nodes are in the
//! same groups, so counts change once per run. Queues need this: at every pass they ask what would be free if most
//! running jobs had ended.

use std::ops::Range;
use std::sync::Arc;

use topolane_fabric::{Fabric, GroupIndex, NodeIndex};

use super::{Occupancy, OccupancyError, WHOLE};
use crate::placement::Placement;

impl Occupancy {
    /// Takes the nodes of a placement of whole nodes.
    ///
    /// # Errors
    /// Returns the first node that is not idle; then nothing is taken.
    pub(super) fn take_whole(&mut self, placement: &Placement) -> Result<(), OccupancyError> {
        let fabric = Arc::clone(&self.fabric);
        for (index, run) in runs(&fabric, placement).enumerate() {
            let length = run.len() as u32;
            if self.idle.count_in(run.clone()) < length {
                let refused = run.clone().find(|&node| !self.idle.contains(node));
                runs(&fabric, placement).take(index).for_each(|taken| self.give_back_run(taken));
                return Err(OccupancyError { node: refused.unwrap_or(run.start) });
            }
            self.take_run(run);
        }
        Ok(())
    }

    /// Takes idle nodes of one leaf.
    fn take_run(&mut self, run: Range<NodeIndex>) {
        self.held[run.start as usize..run.end as usize].fill(WHOLE | 1);
        self.count_held(run.clone(), true);
        self.mark_busy(run.clone());
        self.note_changes(run);
    }

    /// Marks idle nodes of one leaf as held whole, or gives them back, without a placement. This is for a state that
    /// covers a span of time.
    pub fn set_held(&mut self, nodes: Range<NodeIndex>, are_held: bool) {
        if are_held { self.take_run(nodes) } else { self.give_back_run(nodes) }
    }

    /// Adds or removes an isolated crossing of a group, without a placement. This is for a state that covers a span of
    /// time.
    pub fn set_crossed(&mut self, level: usize, group: GroupIndex, is_crossed: bool) {
        let fabric = Arc::clone(&self.fabric);
        for crossing in [&mut self.crossing, &mut self.isolated_crossing] {
            let count = &mut crossing[level][group as usize];
            *count = if is_crossed { *count + 1 } else { count.saturating_sub(1) };
        }
        self.slots.change_strangers(&fabric, level, group, is_crossed);
    }

    /// Gives back the nodes of a placement of whole nodes.
    pub(super) fn give_back_whole(&mut self, placement: &Placement) {
        let fabric = Arc::clone(&self.fabric);
        runs(&fabric, placement).for_each(|run| self.give_back_run(run));
    }

    fn give_back_run(&mut self, run: Range<NodeIndex>) {
        let held = &mut self.held[run.start as usize..run.end as usize];
        if held.iter().all(|&held| held == WHOLE | 1)
            && self.in_service.count_in(run.clone()) == run.len() as u32
        {
            held.fill(0);
            self.count_held(run.clone(), false);
            self.mark_idle(run.clone());
            self.note_changes(run);
            return;
        }
        for node in run {
            self.set_whole(node, false);
            self.give_back_slot(node);
        }
    }
}

/// The nodes that a placement holds, in order, as runs of consecutive nodes of one leaf.
fn runs<'a>(
    fabric: &'a Fabric,
    placement: &'a Placement,
) -> impl Iterator<Item = Range<NodeIndex>> + 'a {
    let goes_on = move |&node: &NodeIndex, &next: &NodeIndex| {
        next == node + 1 && next < fabric.nodes() && fabric.group(1, node) == fabric.group(1, next)
    };
    let parts = [placement.nodes(), placement.spare()].into_iter();
    parts
        .flat_map(move |nodes| nodes.chunk_by(goes_on))
        .map(|run| run[0]..run[0] + run.len() as u32)
}
