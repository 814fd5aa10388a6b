//! Places one part of a job in base blocks and the larger blocks made of them, as Slurm's topology/block does.
//!
//! Derived from Slurm 24.11.5 (`topology/block`, `eval_nodes_block.c`) and compared with a running one; written
//! independently.

use std::ops::Range;

use topolane_fabric::Fabric;

/// The block sizes if the configuration names none: 1, 2, 4, 8 and 16 base blocks.
const UNNAMED: u64 = 0b1_1111;

/// The sizes that blocks of a machine may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockSizes {
    /// The number of nodes of the smallest size. A base block may have more.
    base: u32,
    /// Bit k is set if a block may be 2^k neighbouring base blocks.
    multiples: u64,
}

impl BlockSizes {
    /// Returns the sizes of a machine; if it names none, Slurm's default sizes.
    pub(super) fn of(fabric: &Fabric) -> Self {
        let base = fabric.base_block().max(1);
        let multiple = |size: &u32| 1 << (size / base).checked_ilog2().unwrap_or(0);
        let named = fabric.block_sizes().iter().map(multiple).fold(0, |all, one: u64| all | one);
        BlockSizes { base, multiples: if named == 0 { UNNAMED } else { named } }
    }

    /// The number of nodes of the smallest size.
    pub(super) fn base(&self) -> u32 {
        self.base
    }
}

/// One part of a job: the whole job or one of its segments.
///
/// The *outer* block must hold the whole part: it has the smallest size with enough nodes in a full block, or is the
/// whole machine. The *inner* block has the next smaller size. The part may use the number of inner blocks that it
/// would fill if they were empty, even if few of their nodes are free.
#[derive(Debug, Clone, Copy)]
pub(super) struct JobPart {
    wanted: u32,
    /// The number of base blocks in the outer block.
    outer: usize,
    /// The number of base blocks in the inner block.
    inner: usize,
    /// The most inner blocks that the part may use; `None` if an outer block has no more than that.
    most_inner: Option<usize>,
}

impl JobPart {
    /// Returns a part of `wanted` nodes on a machine with `base_blocks` base blocks.
    pub(super) fn new(wanted: u32, base_blocks: usize, sizes: &BlockSizes) -> Self {
        let blocks = u64::from(wanted.div_ceil(sizes.base).max(1));
        let level = blocks.next_power_of_two().ilog2();
        let smaller = sizes.multiples & ((1 << level) - 1);
        let enough = sizes.multiples & !smaller;
        let outer = match enough {
            0 => base_blocks,
            enough => 1 << enough.trailing_zeros(),
        };
        let inner = 1usize << smaller.checked_ilog2().unwrap_or(0);
        let most = u64::from(wanted).div_ceil(u64::from(sizes.base) * inner as u64) as usize;
        let most_inner = (outer != inner * most).then_some(most);
        JobPart { wanted, outer, inner, most_inner }
    }

    /// The number of base blocks in the outer block.
    pub(super) fn outer(&self) -> usize {
        self.outer
    }

    /// Returns a part of `wanted` slots: in one base block if any can hold it, otherwise anywhere.
    pub(super) fn anywhere(wanted: u32, counts: &[u32]) -> Self {
        let one = counts.iter().any(|&count| count >= wanted);
        let outer = if one { 1 } else { counts.len().max(1) };
        JobPart { wanted, outer, inner: 1, most_inner: None }
    }

    /// Chooses the nodes to take from each base block; `counts` has their free nodes.
    ///
    /// It uses the outer block with the fewest free nodes that suffice, among equals the last.
    ///
    /// # Errors
    /// The most nodes that the part could get, fewer than wanted.
    pub(super) fn choose(&self, counts: &[u32]) -> Result<Vec<(usize, u32)>, u32> {
        let inner: Vec<u32> = match self.most_inner {
            Some(_) => counts.chunks(self.inner).map(sum).collect(),
            None => Vec::new(),
        };
        let mut most = 0;
        let mut best: Option<(usize, u32)> = None;
        for (index, block) in counts.chunks(self.outer).enumerate() {
            let free = sum(block);
            let room = self.most_inner.map_or(free, |most| self.room(index, most, &inner));
            if room >= self.wanted && best.is_none_or(|(_, least)| free <= least) {
                best = Some((index, free));
            }
            most = most.max(room);
        }
        let (index, _) = best.ok_or(most)?;
        let first = index * self.outer;
        let filling = BlockFilling {
            part: self,
            counts,
            inner: &inner,
            opened: vec![false; inner.len()],
            left: self.wanted,
        };
        filling.fill(first..(first + self.outer).min(counts.len()))
    }

    /// The free nodes of an outer block in the fullest inner blocks that the part may use. If the outer block is the
    /// whole machine, an incomplete inner block at its end does not count.
    fn room(&self, outer: usize, most: usize, inner: &[u32]) -> u32 {
        let within = self.outer / self.inner;
        let first = (outer * within).min(inner.len());
        let mut counts = inner[first..(first + within).min(inner.len())].to_vec();
        counts.sort_unstable_by(|one, other| other.cmp(one));
        counts.truncate(most);
        sum(&counts)
    }
}

/// Fills the base blocks of an outer block, one after another.
struct BlockFilling<'a> {
    part: &'a JobPart,
    counts: &'a [u32],
    /// The free nodes of each inner block at the start; empty if the number of inner blocks is not limited.
    inner: &'a [u32],
    /// For each inner block, whether one of its base blocks is used.
    opened: Vec<bool>,
    left: u32,
}

impl BlockFilling<'_> {
    /// Takes the best base block until there are enough nodes.
    ///
    /// The best base block may have no free nodes, because one in an inner block that is already used ranks above all
    /// others. Then the search fails, as in Slurm.
    fn fill(mut self, blocks: Range<usize>) -> Result<Vec<(usize, u32)>, u32> {
        let mut untaken: Vec<usize> = blocks.collect();
        let mut may_open = self.part.most_inner.unwrap_or(usize::MAX);
        let mut taken = Vec::new();
        while self.left > 0 {
            let best = (1..untaken.len()).fold(0, |best, next| {
                if self.prefers(untaken[next], untaken[best]) { next } else { best }
            });
            let nothing = self.part.wanted - self.left;
            if untaken.is_empty() {
                return Err(nothing);
            }
            let block = untaken.remove(best);
            if let Some(opened) = self.opened.get_mut(block / self.part.inner)
                && !std::mem::replace(opened, true)
            {
                may_open = may_open.checked_sub(1).ok_or(nothing)?;
            }
            let nodes = self.counts[block].min(self.left);
            if nodes == 0 {
                return Err(nothing);
            }
            self.left -= nodes;
            taken.push((block, nodes));
        }
        Ok(taken)
    }

    /// Whether a base block ranks above one with a lower index. If the number of inner blocks is limited, inner blocks
    /// are compared first, then base blocks. A block that can hold all that is left ranks above one that cannot. If
    /// both can, the smaller one wins; if neither can, the larger one; among equals the later one.
    fn prefers(&self, block: usize, best: usize) -> bool {
        let (inner, best_inner) = (block / self.part.inner, best / self.part.inner);
        if self.part.most_inner.is_some() && inner != best_inner {
            if self.opened[inner] != self.opened[best_inner] {
                return self.opened[inner];
            }
            let (free, best_free) = (self.inner[inner], self.inner[best_inner]);
            if free != best_free {
                return is_tighter(free, best_free, self.left);
            }
        }
        let (free, best_free) = (self.counts[block], self.counts[best]);
        free == best_free || is_tighter(free, best_free, self.left)
    }
}

/// Whether `free` free nodes suit `left` nodes better than `other`: the fewest that suffice, otherwise the most.
pub(super) fn is_tighter(free: u32, other: u32, left: u32) -> bool {
    match (free >= left, other >= left) {
        (true, true) => free < other,
        (false, false) => free > other,
        (fits, _) => fits,
    }
}

fn sum(counts: &[u32]) -> u32 {
    counts.iter().copied().fold(0, u32::saturating_add)
}
