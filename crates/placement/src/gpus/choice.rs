//! Chooses which GPUs of a node a slot gets.

use super::{GpuSet, MOST_GPUS, NodeGpus, WHOLE_GPU};
use crate::amounts::{Amounts, GpuPart};

impl NodeGpus<'_> {
    /// The GPUs that a slot gets: `wanted` if the slot can have them, else by the rules of [`together`] and
    /// [`NodeGpus::for_part`]. `None` if too few are free.
    pub(crate) fn choose(&self, amounts: &Amounts, wanted: Option<GpuSet>) -> Option<GpuSet> {
        if let Some(part) = amounts.gpu_part() {
            return self.for_part(part);
        }
        let available = self.available();
        wanted.filter(|&set| self.suits(amounts, set)).or_else(|| self.whole(amounts, available))
    }

    /// The GPUs that are wholly free; of each type at most the number that its count allows.
    pub(crate) fn available(&self) -> GpuSet {
        let is_free = |&gpu: &usize| self.free[gpu] == WHOLE_GPU;
        let mut available: GpuSet = (0..self.layout.gpus(self.has)).filter(is_free).collect();
        for &kind in &self.layout.types {
            let of_type = available & self.layout.of_type(self.has, kind);
            let left = self.left[kind] as usize;
            if of_type.len() > left {
                available = available - (of_type - of_type.lowest(left));
            }
        }
        available
    }

    /// Whether a slot of whole GPUs can have these GPUs.
    fn suits(&self, amounts: &Amounts, gpus: GpuSet) -> bool {
        let typed = |&kind: &usize| {
            (gpus & self.layout.of_type(self.has, kind)).len() as u64 >= amounts.get(kind)
        };
        gpus.is_in(self.available()) && self.layout.types.iter().all(typed)
    }

    /// Chooses whole GPUs out of `available`. Types that the slot names come first. For the GPUs of any type, it takes
    /// those without a type first, so that slots that name a type still find theirs.
    pub(crate) fn whole(&self, amounts: &Amounts, available: GpuSet) -> Option<GpuSet> {
        let (layout, mut available) = (self.layout, available);
        let (mut taken, mut of_wanted_types) = (GpuSet::EMPTY, GpuSet::EMPTY);
        for &kind in layout.types.iter().filter(|&&kind| amounts.get(kind) > 0) {
            let of_type = layout.of_type(self.has, kind);
            let wanted = usize::try_from(amounts.get(kind)).ok()?;
            let chosen = together(available & of_type, wanted)?;
            (taken, available) = (taken | chosen, available - chosen);
            of_wanted_types = of_wanted_types | of_type;
        }
        let mut rest = usize::try_from(amounts.get(layout.gpu)).ok()?.saturating_sub(taken.len());
        let untyped = available - layout.typed(self.has);
        let others = available - untyped - of_wanted_types;
        for pool in [untyped, others, available & of_wanted_types] {
            let count = rest.min(pool.len());
            taken = taken | together(pool, count)?;
            rest -= count;
        }
        (rest == 0).then_some(taken)
    }

    /// Chooses the GPU for a part of one. Among GPUs already cut, it takes the one with the least left that suffices,
    /// then the lowest. If none has enough, it cuts a wholly free one, by the rule of [`together`].
    fn for_part(&self, part: GpuPart) -> Option<GpuSet> {
        let of_type = self.layout.of_type(self.has, part.resource());
        let is_cut = |&gpu: &usize| {
            (part.thousandths()..WHOLE_GPU).contains(&self.free[gpu]) && self.free[gpu] > 0
        };
        let cut = of_type.iter().filter(is_cut).min_by_key(|&gpu| (self.free[gpu], gpu));
        if let Some(gpu) = cut {
            return Some(GpuSet::one(gpu));
        }
        let uncut = self.available() & of_type;
        (self.left[self.layout.gpu] > 0).then(|| together(uncut, 1)).flatten()
    }

    /// Whether the node can give a slot these GPUs: each has enough free, and the counts allow the whole GPUs among
    /// them.
    pub(crate) fn can_give(&self, amounts: &Amounts, gpus: GpuSet) -> bool {
        let taken = amounts.gpu_thousandths_of_each();
        if !gpus.is_in(GpuSet::range(0, self.free.len()))
            || gpus.iter().any(|gpu| self.free[gpu] < taken)
        {
            return false;
        }
        let cut: GpuSet = gpus.iter().filter(|&gpu| self.free[gpu] == WHOLE_GPU).collect();
        let counted = |resource: usize| {
            (cut & self.layout.of_type(self.has, resource)).len() as u64 <= self.left[resource]
        };
        counted(self.layout.gpu) && self.layout.types.iter().all(|&kind| counted(kind))
    }

    /// GPUs of which a part may be taken, as far as counts and types allow.
    pub(crate) fn usable_for(&self, part: GpuPart) -> GpuSet {
        let of_type = self.layout.of_type(self.has, part.resource());
        let cut: GpuSet = of_type.iter().filter(|&gpu| self.free[gpu] < WHOLE_GPU).collect();
        let uncut = self.available() & of_type;
        if self.left[self.layout.gpu] > 0 { cut | uncut } else { cut }
    }

    /// The number of slots that fit if each takes this part of one GPU.
    pub(crate) fn parts(&self, part: GpuPart) -> u64 {
        let of_type = self.layout.of_type(self.has, part.resource());
        let slots = |free: u16| u64::from(free / part.thousandths().max(1));
        let cut = of_type.iter().map(|gpu| self.free[gpu]).filter(|&free| free < WHOLE_GPU);
        let uncut = ((self.available() & of_type).len() as u64).min(self.left[self.layout.gpu]);
        cut.map(slots).sum::<u64>() + uncut * slots(WHOLE_GPU)
    }
}

/// Chooses `count` of the GPUs in `free`, as close together as possible. It takes the smallest aligned block of a power
/// of two (GPUs 0 and 1, 0 to 3, 4 to 7 and so on) that has enough. Among these, it takes the block with the fewest
/// free GPUs, then the one in the next larger block with the fewest free and so on, then the lowest. So larger blocks
/// stay whole for later jobs. This is the buddy rule of memory allocators (Knowlton 1965).
pub(crate) fn together(free: GpuSet, count: usize) -> Option<GpuSet> {
    if count == 0 {
        return Some(GpuSet::EMPTY);
    }
    if count > free.len() {
        return None;
    }
    let mut size = count.next_power_of_two();
    while size <= MOST_GPUS {
        let mut best: Option<([u8; 8], GpuSet)> = None;
        // The index of the last block that holds a free GPU.
        let last = free.iter().last().unwrap_or(0) / size;
        for block in (0..=last).map(|block| block * size) {
            let inside = free & GpuSet::range(block, size);
            if inside.len() < count {
                continue;
            }
            let key = around(free, block, size);
            if best.is_none_or(|(least, _)| key < least) {
                best = Some((key, inside));
            }
        }
        if let Some((_, inside)) = best {
            return Some(inside.lowest(count));
        }
        size *= 2;
    }
    None
}

/// The number of free GPUs in the block, in the block of twice its size around it, and so on.
fn around(free: GpuSet, block: usize, size: usize) -> [u8; 8] {
    let mut counts = [0; 8];
    let sizes = std::iter::successors(Some(size), |size| Some(size * 2));
    for (count, size) in counts.iter_mut().zip(sizes.take_while(|&size| size <= MOST_GPUS)) {
        *count = (free & GpuSet::range(block / size * size, size)).len() as u8;
    }
    counts
}
