//! How many slots every block has free, and on how many of its nodes there are jobs.

use std::ops::Range;

use topolane_fabric::{BlockIndex, Fabric, NodeIndex};

use super::Occupancy;

/// Free slots of every block, one on each node, and how many blocks have how many.
#[derive(Debug, PartialEq)]
pub(crate) struct BlockSlots {
    free: Vec<u32>,
    /// By the number of free slots.
    blocks_with: Vec<u32>,
}

impl Clone for BlockSlots {
    fn clone(&self) -> Self {
        BlockSlots { free: self.free.clone(), blocks_with: self.blocks_with.clone() }
    }

    /// Copies into the memory already held.
    fn clone_from(&mut self, source: &Self) {
        self.free.clone_from(&source.free);
        self.blocks_with.clone_from(&source.blocks_with);
    }
}

impl BlockSlots {
    /// No slot is free.
    pub fn none(fabric: &Fabric) -> Self {
        let mut blocks_with = vec![0; fabric.largest_block() as usize + 1];
        blocks_with[0] = fabric.blocks();
        BlockSlots { free: vec![0; fabric.blocks() as usize], blocks_with }
    }

    /// All slots are free.
    pub fn all(fabric: &Fabric) -> Self {
        let mut slots = BlockSlots::none(fabric);
        slots.change(fabric, 0..fabric.nodes(), true);
        slots
    }

    /// Notes that the slots of nodes are free now, or are no longer.
    #[inline]
    pub fn change(&mut self, fabric: &Fabric, nodes: Range<NodeIndex>, are_free: bool) {
        for (block, count) in by_block(fabric, nodes) {
            let free = &mut self.free[block as usize];
            self.blocks_with[*free as usize] -= 1;
            *free = if are_free { *free + count } else { *free - count };
            self.blocks_with[*free as usize] += 1;
        }
    }

    /// Free slots of every block, by index.
    pub fn free(&self) -> &[u32] {
        &self.free
    }

    /// Entry `n` is the number of blocks with `n` free slots.
    pub fn blocks_with(&self) -> &[u32] {
        &self.blocks_with
    }
}

impl Occupancy {
    /// Idle nodes of every block (see [`Fabric::block`]), by index.
    pub fn idle_in_blocks(&self) -> &[u32] {
        self.idle_by_block.free()
    }

    /// The same, and how many blocks have how many.
    pub(crate) fn idle_by_block(&self) -> &BlockSlots {
        &self.idle_by_block
    }

    /// Nodes of a block on which a slot is held. A block with none is empty: no job is on it.
    #[inline]
    pub fn held_in_block(&self, block: BlockIndex) -> u32 {
        self.held_in_blocks[block as usize]
    }

    /// Notes that the first slot of each of these nodes is held now, or the last one no longer.
    #[inline]
    pub(super) fn count_held(&mut self, nodes: Range<NodeIndex>, are_held: bool) {
        for (block, nodes) in by_block(&self.fabric, nodes) {
            let count = &mut self.held_in_blocks[block as usize];
            *count = if are_held { *count + nodes } else { *count - nodes };
        }
    }
}

/// How many nodes of a run lie in one block, and how many in the next.
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
