//! Base blocks and the larger blocks made of them: where the rule of Slurm's topology/block puts one part of a job.
//!
//! Read from Slurm 24.11.5 (`topology/block`, `eval_nodes_block.c`) and compared with a running one; written here independently.

use std::ops::Range;

use topolane_fabric::Fabric;

/// Block sizes of Slurm that names none: 1, 2, 4, 8 and 16 base blocks.
const UNNAMED: u64 = 0b1_1111;

/// The sizes that blocks of a machine may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// Nodes of the smallest size. A base block may have more.
    base: u32,
    /// Bit k is set if a block may be 2^k base blocks side by side.
    multiples: u64,
}

impl Sizes {
    /// Those of the machine; without any, what Slurm makes of the base block.
    pub(super) fn of(fabric: &Fabric) -> Self {
        let base = fabric.base_block().max(1);
        let multiple = |size: &u32| 1 << (size / base).checked_ilog2().unwrap_or(0);
        let named = fabric.block_sizes().iter().map(multiple).fold(0, |all, one: u64| all | one);
        Sizes { base, multiples: if named == 0 { UNNAMED } else { named } }
    }

    /// Nodes of the smallest size.
    pub(super) fn base(&self) -> u32 {
        self.base
    }
}

/// What holds a part of a job: the whole job or one of its segments.
///
/// The *outer* block holds all of it: the smallest size of which a full block holds that many nodes; the whole machine if
/// there is none. The *inner* block is the next smaller size. The part may use as many inner blocks as it would fill, however
/// few nodes are free in them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    wanted: u32,
    /// Base blocks of the outer block.
    outer: usize,
    /// Base blocks of the inner block.
    inner: usize,
    /// Inner blocks that it may use; `None` if those of an outer block are no more than that.
    most_inner: Option<usize>,
}

impl Part {
    /// A part of `wanted` nodes on a machine of `base_blocks` base blocks.
    pub(super) fn new(wanted: u32, base_blocks: usize, sizes: &Sizes) -> Self {
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
        Part { wanted, outer, inner, most_inner }
    }

    /// Base blocks of the block that holds all of it.
    pub(super) fn outer(&self) -> usize {
        self.outer
    }

    /// A part of `wanted` slots in one base block if one has room for it, otherwise anywhere.
    pub(super) fn anywhere(wanted: u32, counts: &[u32]) -> Self {
        let one = counts.iter().any(|&count| count >= wanted);
        let outer = if one { 1 } else { counts.len().max(1) };
        Part { wanted, outer, inner: 1, most_inner: None }
    }

    /// The nodes that it takes from base blocks, whose free nodes are `counts`.
    ///
    /// Of the outer blocks with room it takes the one with the fewest free nodes, of equals the last.
    ///
    /// # Errors
    /// The most nodes that it could have, fewer than wanted.
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
        let filling = Filling {
            part: self,
            counts,
            inner: &inner,
            opened: vec![false; inner.len()],
            left: self.wanted,
        };
        filling.fill(first..(first + self.outer).min(counts.len()))
    }

    /// Free nodes of the fullest inner blocks that it may use in an outer block. If the outer block is the whole machine, an
    /// inner block with too few base blocks at its end does not count.
    fn room(&self, outer: usize, most: usize, inner: &[u32]) -> u32 {
        let within = self.outer / self.inner;
        let first = (outer * within).min(inner.len());
        let mut counts = inner[first..(first + within).min(inner.len())].to_vec();
        counts.sort_unstable_by(|one, other| other.cmp(one));
        counts.truncate(most);
        sum(&counts)
    }
}

/// Base blocks of an outer block, taken one after another.
struct Filling<'a> {
    part: &'a Part,
    counts: &'a [u32],
    /// Free nodes of inner blocks before anything was taken; empty if their number does not matter.
    inner: &'a [u32],
    /// Inner blocks with a base block that was taken.
    opened: Vec<bool>,
    left: u32,
}

impl Filling<'_> {
    /// Takes the best base block until there are enough nodes.
    ///
    /// A base block without free nodes may be the best: one of an inner block that is used already is better than any other.
    /// The search then ends without a place. That is what Slurm does.
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

    /// Whether a base block is better than one with a lower index: first by the inner block, if their number is limited, then
    /// by itself. A block that holds all that is left is better than one that does not; the smaller of two that do, and the
    /// larger of two that do not; of equals the later.
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

/// Whether `free` free nodes are better than `other` for what is left: the fewest that hold it, otherwise the most.
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
