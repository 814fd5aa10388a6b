//! Blocks: the sets of nodes that may have to hold parts of jobs.

use super::Fabric;
use crate::ids::{GroupIndex, NodeIndex};

/// A block: a domain, or the nodes of a leaf that are in no domain. Domains come first, in their order.
pub type BlockIndex = u32;

/// The blocks of a machine; every node is in exactly one.
#[derive(Debug, Clone, Default)]
pub(super) struct Blocks {
    of_node: Vec<BlockIndex>,
    /// For each block, the index of its first node in `nodes`; then the length of `nodes`.
    first: Vec<u32>,
    /// The nodes of all blocks, one block after another, ascending within each.
    nodes: Vec<NodeIndex>,
    largest: u32,
    base: u32,
}

impl Blocks {
    /// Computes the blocks of a machine whose domains are known.
    pub(super) fn of(fabric: &Fabric) -> Blocks {
        let mut blocks = Blocks { of_node: vec![0; fabric.nodes() as usize], ..Blocks::default() };
        blocks.first.push(0);
        for domain in 0..fabric.domains() {
            blocks.add(fabric.domain_nodes(domain).iter().copied());
        }
        for leaf in 0..fabric.groups(1) as GroupIndex {
            let loose = fabric.node_range(1, leaf).filter(|&node| fabric.domain(node).is_none());
            blocks.add(loose);
        }
        blocks.base = match fabric.block_sizes().first() {
            Some(&base) => base,
            None => blocks.unnamed_base(fabric.domains() as usize),
        };
        blocks
    }

    /// The base block size if none is configured: the size of the first domain, if no domain is smaller (Slurm requires
    /// this). Otherwise, or without domains, the size of the largest.
    fn unnamed_base(&self, domains: usize) -> u32 {
        let sizes = || self.first[..=domains].windows(2).map(|ends| ends[1] - ends[0]);
        match sizes().next() {
            None => self.largest,
            Some(first) if sizes().all(|size| size >= first) => first,
            Some(first) => sizes().fold(first, u32::max),
        }
    }

    fn add(&mut self, nodes: impl Iterator<Item = NodeIndex>) {
        let block = self.first.len() as BlockIndex - 1;
        let before = self.nodes.len() as u32;
        for node in nodes {
            self.of_node[node as usize] = block;
            self.nodes.push(node);
        }
        let end = self.nodes.len() as u32;
        if end > before {
            self.first.push(end);
            self.largest = self.largest.max(end - before);
        }
    }
}

impl Fabric {
    /// The number of blocks: the domains, plus one block for every leaf with nodes in no domain. Without domains, the
    /// blocks are the leaves.
    pub fn blocks(&self) -> u32 {
        self.blocks.first.len() as u32 - 1
    }

    /// The block of a node.
    #[inline]
    pub fn block(&self, node: NodeIndex) -> BlockIndex {
        self.blocks.of_node[node as usize]
    }

    /// The nodes of a block, ascending. They need not be consecutive.
    #[inline]
    pub fn block_nodes(&self, block: BlockIndex) -> &[NodeIndex] {
        let first = &self.blocks.first[block as usize..];
        &self.blocks.nodes[first[0] as usize..first[1] as usize]
    }

    /// The name of a block: that of its domain, or of the leaf of its nodes.
    pub fn block_name(&self, block: BlockIndex) -> &str {
        if block < self.domains() {
            return self.domain_name(block);
        }
        self.group_name(1, self.group(1, self.block_nodes(block)[0]))
    }

    /// The number of nodes of the largest block.
    pub fn largest_block(&self) -> u32 {
        self.blocks.largest
    }

    /// The number of nodes of the base block that a scheduler uses. This is the first of the [block
    /// sizes](Fabric::block_sizes), if any are configured. Otherwise it is what Slurm would take: the size of the first
    /// domain. If a later domain is smaller, Slurm would refuse that, so it is the size of the largest domain, as if
    /// the others had nodes out of service. Without domains, it is the size of the largest leaf.
    pub fn base_block(&self) -> u32 {
        self.blocks.base
    }
}
