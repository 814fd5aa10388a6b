//! Sets of GPUs of one node.

use std::fmt;
use std::ops::{BitAnd, BitOr, Sub};

/// The most GPUs of a node that can be tracked one by one. On machines with larger nodes, GPUs are only counted.
pub const MOST_GPUS: usize = 128;

/// Some GPUs of one node, by their index from 0 to 127.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct GpuSet(u128);

impl GpuSet {
    /// The empty set.
    pub const EMPTY: GpuSet = GpuSet(0);

    /// The GPUs from `first` on, `count` of them. Those above 127 are skipped.
    pub fn range(first: usize, count: usize) -> Self {
        let below = |end: usize| if end >= MOST_GPUS { u128::MAX } else { (1 << end) - 1 };
        GpuSet(below(first.saturating_add(count)) & !below(first))
    }

    /// One GPU; the empty set for an index above 127.
    pub fn one(gpu: usize) -> Self {
        GpuSet::range(gpu, 1)
    }

    /// The number of GPUs in the set.
    #[inline]
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether the set is empty.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the GPU is in the set.
    pub fn contains(self, gpu: usize) -> bool {
        !(self & GpuSet::one(gpu)).is_empty()
    }

    /// Whether all GPUs of the set are in the other set.
    pub fn is_in(self, other: GpuSet) -> bool {
        (self - other).is_empty()
    }

    /// The indices of the GPUs, ascending.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let first = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(first)
        })
    }

    /// The lowest `count` GPUs of the set, or all if there are fewer.
    #[must_use]
    pub fn lowest(self, count: usize) -> Self {
        self.iter().take(count).collect()
    }
}

impl FromIterator<usize> for GpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(gpus: I) -> Self {
        gpus.into_iter().map(GpuSet::one).fold(GpuSet::EMPTY, BitOr::bitor)
    }
}

impl BitAnd for GpuSet {
    type Output = GpuSet;

    fn bitand(self, other: GpuSet) -> GpuSet {
        GpuSet(self.0 & other.0)
    }
}

impl BitOr for GpuSet {
    type Output = GpuSet;

    fn bitor(self, other: GpuSet) -> GpuSet {
        GpuSet(self.0 | other.0)
    }
}

impl Sub for GpuSet {
    type Output = GpuSet;

    fn sub(self, other: GpuSet) -> GpuSet {
        GpuSet(self.0 & !other.0)
    }
}

impl fmt::Debug for GpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
