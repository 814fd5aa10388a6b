//! How many nodes of every block are idle, and how many are held.

use topolane_fabric::{BlockIndex, Fabric, NodeIndex};

use super::Occupancy;

/// Counts by block, changed with every node that comes or goes.
#[derive(Debug, PartialEq)]
pub(super) struct BlockCounts {
    idle: Vec<u32>,
    held: Vec<u32>,
}

impl Clone for BlockCounts {
    fn clone(&self) -> Self {
        BlockCounts { idle: self.idle.clone(), held: self.held.clone() }
    }

    /// Copies into the memory already held.
    fn clone_from(&mut self, source: &Self) {
        self.idle.clone_from(&source.idle);
        self.held.clone_from(&source.held);
    }
}

impl BlockCounts {
    /// All nodes idle.
    pub fn of(fabric: &Fabric) -> Self {
        let idle = (0..fabric.blocks()).map(|block| fabric.block_nodes(block).len() as u32);
        BlockCounts { idle: idle.collect(), held: vec![0; fabric.blocks() as usize] }
    }

    /// Notes that a node is idle now, or is no longer.
    #[inline]
    pub fn set_idle(&mut self, fabric: &Fabric, node: NodeIndex, is_idle: bool) {
        let count = &mut self.idle[fabric.block(node) as usize];
        *count = if is_idle { *count + 1 } else { *count - 1 };
    }

    /// Notes that the first slot of a node is held now, or the last one no longer.
    #[inline]
    pub fn set_held(&mut self, fabric: &Fabric, node: NodeIndex, is_held: bool) {
        let count = &mut self.held[fabric.block(node) as usize];
        *count = if is_held { *count + 1 } else { *count - 1 };
    }
}

impl Occupancy {
    /// Idle nodes of every block (see [`Fabric::block`]), by index.
    pub fn idle_in_blocks(&self) -> &[u32] {
        &self.blocks.idle
    }

    /// Nodes of a block on which a slot is held. A block with none is empty: no job is on it.
    #[inline]
    pub fn held_in_block(&self, block: BlockIndex) -> u32 {
        self.blocks.held[block as usize]
    }
}
