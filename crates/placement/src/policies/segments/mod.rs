//! Parts of jobs that lie in one domain each.

mod dedicated;
mod isolated;
mod parts;
mod plan;

pub use dedicated::DedicatedSegments;
pub use isolated::IsolatedSegments;
use parts::Parts;
use plan::Plan;

use crate::{Choice, FreeSlots, Homes, Occupancy, Policy, Refusal, Request, RoomHelps, Traits};

/// Segments: every part of `request.segment` nodes lies in one block, and so does what is left over. A block is a domain
/// (of NVLink, say); nodes in none form a block with the others of their leaf.
///
/// A request that names no segment lies in one block if any block is large enough, and otherwise anywhere, in few blocks.
///
/// A request that fits a block takes the tightest of those that jobs are on already. Only if it fits none of them, whole or in
/// segments, does it take the smallest empty one. A larger request takes its segments where they leave the fewest nodes over, and
/// what is left over where it fits most tightly. A request for parts of nodes opens no idle node as long as nodes with jobs hold it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Segments;

impl Policy for Segments {
    fn name(&self) -> &'static str {
        "segments"
    }

    fn traits(&self) -> Traits {
        Traits { depends_only_on_size: true, room_helps: RoomHelps::Always, ..Traits::NONE }
    }

    fn homes(&self, request: &Request, occupancy: &Occupancy) -> Option<Homes> {
        Parts::of(request, occupancy).homes(occupancy)
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<Choice, Refusal> {
        let parts = Parts::of(request, occupancy);
        parts.check(free)?;
        let is_empty = |block| occupancy.held_in_block(block) == 0;
        if !request.share.is_whole() {
            let begun = free.only(|node| occupancy.held(node) > 0);
            if let Some(plan) = Plan::of(parts, &begun.in_blocks(), is_empty) {
                return Ok(Choice::nodes(plan.nodes(&begun)));
            }
        }
        let wanted = parts.wanted();
        let plan = Plan::of(parts, &free.in_blocks(), is_empty);
        let plan = plan.ok_or(Refusal::NotNow { wanted, free: wanted - 1 })?;
        Ok(Choice::nodes(plan.nodes(free)))
    }

    fn has_place(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<(), Refusal> {
        Parts::of(request, occupancy).check(free)
    }
}
