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
    pub fn fit_in(self, counts: impl Iterator<Item = u32>) -> bool {
        let (mut segments, mut over) = (0, 0);
        for free in counts {
            segments += u64::from(free / self.segment);
            over = over.max(free % self.segment);
        }
        let whole = u64::from(self.whole);
        segments > whole || segments == whole && over >= self.rest
    }

    /// Why it was not placed in blocks with so many free slots: the most that could be had in such parts.
    pub fn refusal(self, counts: &[u32]) -> Refusal {
        let segments: u64 = counts.iter().map(|&free| u64::from(free / self.segment)).sum();
        let over = counts.iter().map(|&free| free % self.segment).max().unwrap_or(0);
        let most = segments * u64::from(self.segment) + u64::from(over);
        let free = u32::try_from(most).unwrap_or(u32::MAX).min(self.wanted() - 1);
        Refusal::NotNow { wanted: self.wanted(), free }
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
