//! Counts, for every block, its free slots and its nodes with jobs.

use std::ops::Range;

use topolane_fabric::{BlockIndex, Fabric, NodeIndex};

use super::Occupancy;

/// The free slots of every block, at most one per node, and the number of blocks with each number of free slots.
#[derive(Debug, PartialEq)]
pub(crate) struct BlockSlots {
    free: Vec<u32>,
    /// Entry `n` is the number of blocks with `n` free slots.
    blocks_with: Vec<u32>,
}

impl Clone for BlockSlots {
    fn clone(&self) -> Self {
        BlockSlots { free: self.free.clone(), blocks_with: self.blocks_with.clone() }
    }

    /// Reuses memory that is already allocated.
    fn clone_from(&mut self, source: &Self) {
        self.free.clone_from(&source.free);
        self.blocks_with.clone_from(&source.blocks_with);
    }
}

impl BlockSlots {
    /// Returns counts in which no slot is free.
    pub fn none(fabric: &Fabric) -> Self {
        let mut blocks_with = vec![0; fabric.largest_block() as usize + 1];
        blocks_with[0] = fabric.blocks();
        BlockSlots { free: vec![0; fabric.blocks() as usize], blocks_with }
    }

    /// Returns counts in which all slots are free.
    pub fn all(fabric: &Fabric) -> Self {
        let mut slots = BlockSlots::none(fabric);
        slots.change(fabric, 0..fabric.nodes(), true);
        slots
    }

    /// Records that the slots of these nodes became free, or are no longer free.
    #[inline]
    pub fn change(&mut self, fabric: &Fabric, nodes: Range<NodeIndex>, are_free: bool) {
        for (block, count) in by_block(fabric, nodes) {
            let free = &mut self.free[block as usize];
            self.blocks_with[*free as usize] -= 1;
            *free = if are_free { *free + count } else { *free - count };
            self.blocks_with[*free as usize] += 1;
        }
    }

    /// The free slots of every block, by index.
    pub fn free(&self) -> &[u32] {
        &self.free
    }

    /// Entry `n` is the number of blocks with `n` free slots.
    pub fn blocks_with(&self) -> &[u32] {
        &self.blocks_with
    }
}

impl Occupancy {
    /// The number of idle nodes in every block (see [`Fabric::block`]), by index.
    pub fn idle_in_blocks(&self) -> &[u32] {
        self.idle_by_block.free()
    }

    /// The idle nodes of every block, and the number of blocks with each number of idle nodes.
    pub(crate) fn idle_by_block(&self) -> &BlockSlots {
        &self.idle_by_block
    }

    /// The number of nodes in a block with at least one held slot. If it is 0, no job uses the block.
    #[inline]
    pub fn held_in_block(&self, block: BlockIndex) -> u32 {
        self.held_in_blocks[block as usize]
    }

    /// Records that each of these nodes now holds its first slot, or no longer holds any.
    #[inline]
    pub(super) fn count_held(&mut self, nodes: Range<NodeIndex>, are_held: bool) {
        for (block, nodes) in by_block(&self.fabric, nodes) {
            let count = &mut self.held_in_blocks[block as usize];
            *count = if are_held { *count + nodes } else { *count - nodes };
        }
    }
}

/// Splits a range of nodes by block: the index of each block and its number of nodes.
fn by_block(
    fabric: &Fabric,
    mut nodes: Range<NodeIndex>,
) -> impl Iterator<Item = (BlockIndex, u32)> + '_ {
    std::iter::from_fn(move || {
        let first = nodes.next()?;
        let block = fabric.block(first);
        while nodes.start < nodes.end && fabric.block(nodes.start) == block {
            nodes.start += 1;
        }
        Some((block, nodes.start - first))
    })
}
