//! What a refusal says about later requests.

use std::sync::atomic::{AtomicU32, Ordering};

/// A bound of the slots of all sets of nodes for which a promise holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MostSlots(u32);

impl MostSlots {
    /// Nothing is known.
    pub const UNKNOWN: Self = MostSlots(u32::MAX);

    /// No set has more slots.
    pub fn of(slots: u32) -> Self {
        MostSlots(slots)
    }

    /// Whether some set may have this number of slots.
    pub fn allows(self, slots: u32) -> bool {
        slots <= self.0
    }
}

/// The bound of idle nodes with links that no job uses. Claims only lower it; it is forgotten as soon as something is freed.
#[derive(Debug)]
pub(crate) struct KeptBound(AtomicU32);

impl KeptBound {
    pub fn unknown() -> Self {
        KeptBound(AtomicU32::new(MostSlots::UNKNOWN.0))
    }

    pub fn get(&self) -> MostSlots {
        MostSlots(self.0.load(Ordering::Relaxed))
    }

    /// Records a proven bound.
    pub fn lower(&self, most: MostSlots) {
        self.0.fetch_min(most.0, Ordering::Relaxed);
    }

    pub fn forget(&mut self) {
        *self = KeptBound::unknown();
    }
}

impl Clone for KeptBound {
    fn clone(&self) -> Self {
        KeptBound(AtomicU32::new(self.get().0))
    }
}
