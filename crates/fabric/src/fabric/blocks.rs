//! Sets of nodes in which parts of jobs may have to lie.

use super::{Fabric, GroupIndex, NodeIndex};

/// A block: a domain, or those nodes of a leaf that are in no domain. Domains come first, in their order.
pub type BlockIndex = u32;

/// The blocks of a machine: every node is in one.
#[derive(Debug, Clone, Default)]
pub(super) struct Blocks {
    of_node: Vec<BlockIndex>,
    /// The first of each block's nodes in `nodes`, and their number at the end.
    first: Vec<u32>,
    /// The nodes of one block after those of another, ascending in each.
    nodes: Vec<NodeIndex>,
    largest: u32,
    base: u32,
}

impl Blocks {
    /// Of a machine whose domains are known.
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

    /// Nodes of the first domain if none has fewer: Slurm then accepts no others. If one has fewer, or if there are no
    /// domains, those of the largest.
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
    /// Number of blocks: the domains, and a block for every leaf with nodes that are in no domain. Without domains the
    /// blocks are the leaves.
    pub fn blocks(&self) -> u32 {
        self.blocks.first.len() as u32 - 1
    }

    /// The block of a node.
    #[inline]
    pub fn block(&self, node: NodeIndex) -> BlockIndex {
        self.blocks.of_node[node as usize]
    }

    /// The nodes of a block, ascending. They need not lie side by side.
    #[inline]
    pub fn block_nodes(&self, block: BlockIndex) -> &[NodeIndex] {
        let first = &self.blocks.first[block as usize..];
        &self.blocks.nodes[first[0] as usize..first[1] as usize]
    }

    /// Name of a block: that of its domain, or of the leaf of its nodes.
    pub fn block_name(&self, block: BlockIndex) -> &str {
        if block < self.domains() {
            return self.domain_name(block);
        }
        self.group_name(1, self.group(1, self.block_nodes(block)[0]))
    }

    /// Nodes of the largest block.
    pub fn largest_block(&self) -> u32 {
        self.blocks.largest
    }

    /// Nodes of the base block that a scheduler plans with: the first of the [block sizes](Fabric::block_sizes) or, if there
    /// are none, what Slurm would take: the nodes of the first domain. Where Slurm would accept no such domains, because a
    /// later one is smaller, the nodes of the largest domain, as if the others had nodes out of service; without domains
    /// those of the largest leaf.
    pub fn base_block(&self) -> u32 {
        self.blocks.base
    }
}
