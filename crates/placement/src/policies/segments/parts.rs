//! Splits a request into segments.

use crate::{FreeSlots, Homes, Occupancy, Refusal, Request};

/// The whole segments of a request, and the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentParts {
    /// Slots of a segment; at least 1.
    pub segment: u32,
    /// The number of whole segments.
    pub whole: u32,
    /// Slots of the rest; fewer than a segment.
    pub rest: u32,
}

impl SegmentParts {
    /// Splits a request; see [`Segments`](super::Segments) for one that names no segment.
    pub fn of(request: &Request, occupancy: &Occupancy) -> Self {
        let wanted = request.nodes.max(1);
        let segment = match request.segment {
            Some(segment) => segment.clamp(1, wanted),
            None if wanted == 1 => 1,
            None if wanted <= largest(request, occupancy) => wanted,
            None => 1,
        };
        SegmentParts { segment, whole: wanted / segment, rest: wanted % segment }
    }

    /// The total number of slots.
    pub fn wanted(self) -> u32 {
        self.whole * self.segment + self.rest
    }

    /// The blocks, if a part has several slots; otherwise `None`.
    pub fn homes(self, occupancy: &Occupancy) -> Option<Homes> {
        (self.segment > 1).then(|| Homes::blocks(occupancy.fabric(), self.segment))
    }

    /// Checks that the free slots can hold all parts.
    ///
    /// # Errors
    /// The refusal.
    pub fn check(self, free: &FreeSlots<'_>) -> Result<(), Refusal> {
        let most = match free.blocks_with() {
            Some(blocks) => self.most((0..).zip(blocks.iter().copied())),
            None => self.most(free.in_blocks().iter().map(|&slots| (slots, 1))),
        };
        let wanted = self.wanted();
        if most >= u64::from(wanted) {
            return Ok(());
        }
        Err(Refusal::NotNow { wanted, free: u32::try_from(most).unwrap_or(u32::MAX) })
    }

    /// Whether blocks with these numbers of free slots can hold all parts.
    pub fn fit_in(self, counts: impl Iterator<Item = u32>) -> bool {
        self.most(counts.map(|slots| (slots, 1))) >= u64::from(self.wanted())
    }

    /// The most slots available in such parts: whole segments, and one rest of at most the wanted size. `blocks` yields
    /// numbers of free slots, each with the number of blocks that have it.
    fn most(self, blocks: impl Iterator<Item = (u32, u32)>) -> u64 {
        let SegmentParts { segment, whole, rest } = self;
        if whole == 1 && rest == 0 {
            // A single part may lie in the fullest block.
            let held = blocks.filter(|&(_, number)| number > 0);
            return held.map(|(slots, _)| slots).max().map_or(0, u64::from);
        }
        let (mut segments, mut over) = (0u64, 0);
        for (slots, number) in blocks.filter(|&(_, number)| number > 0) {
            segments += u64::from(slots / segment) * u64::from(number);
            over = over.max(slots % segment);
        }
        // An extra whole segment can hold the rest.
        let over = if segments > u64::from(whole) { rest } else { over };
        segments * u64::from(segment) + u64::from(over)
    }
}

/// The most slots that any block has for the request on the empty machine.
fn largest(request: &Request, occupancy: &Occupancy) -> u32 {
    if request.is_plain() {
        return occupancy.fabric().largest_block();
    }
    let free = occupancy.empty().free_slots(request);
    free.in_blocks().iter().copied().max().unwrap_or(0)
}
