//! Policies that place each part of a job in one domain.

mod dedicated;
mod isolated;
mod parts;
mod plan;

pub use dedicated::DedicatedSegments;
pub use isolated::IsolatedSegments;
use parts::SegmentParts;
use plan::SegmentPlan;

use crate::{Choice, FreeSlots, Homes, Occupancy, Policy, Refusal, Request, RoomHelps, Traits};

/// Every segment of `request.segment` nodes lies in one block, and so does the rest. A block is a domain, for example
/// of NVLink. Nodes outside all domains form a block with the others of their leaf.
///
/// A request that names no segment lies in one block if any block is large enough, otherwise anywhere, in few blocks.
///
/// A request that fits in a block takes the tightest block with jobs. It opens the smallest empty block only if no
/// block with jobs can hold it, whole or in segments. A larger request puts its segments where they leave the fewest
/// nodes over, and the rest where it fits most tightly. A request for parts of nodes takes an idle node only if nodes
/// with jobs cannot hold it.
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
        SegmentParts::of(request, occupancy).homes(occupancy)
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<Choice, Refusal> {
        let parts = SegmentParts::of(request, occupancy);
        parts.check(free)?;
        let is_empty = |block| occupancy.held_in_block(block) == 0;
        if !request.share.is_whole() {
            let begun = free.only(|node| occupancy.held(node) > 0);
            if let Some(plan) = SegmentPlan::of(parts, &begun.in_blocks(), is_empty) {
                return Ok(Choice::nodes(plan.nodes(&begun)));
            }
        }
        let wanted = parts.wanted();
        let plan = SegmentPlan::of(parts, &free.in_blocks(), is_empty);
        let plan = plan.ok_or(Refusal::NotNow { wanted, free: wanted - 1 })?;
        Ok(Choice::nodes(plan.nodes(free)))
    }

    fn has_place(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<(), Refusal> {
        SegmentParts::of(request, occupancy).check(free)
    }
}
