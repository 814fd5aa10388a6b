//! Into what a request is parted.

use crate::{Occupancy, Refusal, Request};

/// So many whole segments, and what is left over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parts {
    /// Slots of a segment, at least 1.
    pub segment: u32,
    /// Whole segments.
    pub whole: u32,
    /// Slots left over, fewer than a segment.
    pub rest: u32,
}

impl Parts {
    /// Of a request; see [`Segments`](super::Segments) for one that names no segment.
    pub fn of(request: &Request, occupancy: &Occupancy) -> Self {
        let wanted = request.nodes.max(1);
        let segment = match request.segment {
            Some(segment) => segment.clamp(1, wanted),
            None if wanted == 1 => 1,
            None if wanted <= largest(request, occupancy) => wanted,
            None => 1,
        };
        Parts { segment, whole: wanted / segment, rest: wanted % segment }
    }

    /// All its slots.
    pub fn wanted(self) -> u32 {
        self.whole * self.segment + self.rest
    }

    /// Whether blocks with so many free slots hold all parts.
    pub fn fit_in(self, counts: &[u32]) -> bool {
        self.most(counts) >= u64::from(self.wanted())
    }

    /// Why it was not placed in blocks with so many free slots.
    pub fn refusal(self, counts: &[u32]) -> Refusal {
        let most = u32::try_from(self.most(counts)).unwrap_or(u32::MAX);
        Refusal::NotNow { wanted: self.wanted(), free: most.min(self.wanted() - 1) }
    }

    /// The most slots that can be had in such parts: whole segments, and one part that is no larger than what is left over. What is
    /// asked often has a short way: one part alone, and parts of one slot.
    fn most(self, counts: &[u32]) -> u64 {
        let Parts { segment, whole, rest } = self;
        if whole == 1 && rest == 0 {
            return counts.iter().copied().max().map_or(0, u64::from);
        }
        if segment == 1 {
            return counts.iter().map(|&free| u64::from(free)).sum();
        }
        let (mut segments, mut over) = (0u64, 0);
        for &free in counts {
            segments += u64::from(free / segment);
            over = over.max(free % segment);
        }
        // A whole segment more than is wanted holds what is left over.
        let over = if segments > u64::from(whole) { rest } else { over };
        segments * u64::from(segment) + u64::from(over)
    }
}

/// The most slots that a block has for the request when nobody is on the machine.
fn largest(request: &Request, occupancy: &Occupancy) -> u32 {
    if request.is_plain() {
        return occupancy.fabric().largest_block();
    }
    let free = occupancy.empty().free_slots(request);
    free.in_blocks().iter().copied().max().unwrap_or(0)
}
