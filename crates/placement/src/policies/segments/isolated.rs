use std::borrow::Cow;

use topolane_fabric::{BlockIndex, GroupIndex, NodeIndex};

use super::{SegmentParts, SegmentPlan};
use crate::{Choice, FreeSlots, Homes, Occupancy, Policy, Refusal, Request, Traits};

/// Segments as in [`Segments`](super::Segments), on links that no other job may use, whatever the routing.
///
/// A job lies in one block, or in several blocks inside one group of the lowest level that can hold its parts. Of every
/// lower group that it crosses it is the only job to do so. It finds a placement whenever one exists.
///
/// A job that fits in one block takes the tightest block with jobs, otherwise an empty one. A larger job tries groups
/// with the fewest free slots first, and fills the uncrossed part of the first group that can hold it as `Segments`
/// does.
#[derive(Debug, Clone, Copy, Default)]
pub struct IsolatedSegments;

impl Policy for IsolatedSegments {
    fn name(&self) -> &'static str {
        "segments-isolated"
    }

    fn traits(&self) -> Traits {
        Traits::ISOLATES
    }

    fn homes(&self, request: &Request, occupancy: &Occupancy) -> Option<Homes> {
        SegmentParts::of(request, occupancy).homes(occupancy)
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<Choice, Refusal> {
        let free = &free.unshared(request, occupancy);
        let mut search = IsolatedSegmentsSearch::of(request, free, occupancy)?;
        let nodes = search.in_one_block().or_else(|| search.over_blocks());
        nodes.map(Choice::nodes).ok_or_else(|| free.would_share_links(request))
    }

    fn has_place(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<(), Refusal> {
        let free = &free.unshared(request, occupancy);
        let mut search = IsolatedSegmentsSearch::of(request, free, occupancy)?;
        if search.holding().next().is_some() || search.any_group() {
            return Ok(());
        }
        Err(free.would_share_links(request))
    }
}

/// Searches where a request may lie.
struct IsolatedSegmentsSearch<'a> {
    request: &'a Request,
    parts: SegmentParts,
    free: &'a FreeSlots<'a>,
    /// The free slots of each block.
    counts: Cow<'a, [u32]>,
    occupancy: &'a Occupancy,
    usable: Usable,
}

/// For each block, the slots of a group that lie in subgroups that no job crosses.
#[derive(Default)]
struct Usable {
    /// By block index; 0 for blocks that are not in `touched`.
    counts: Vec<u32>,
    touched: Vec<BlockIndex>,
    total: u32,
}

impl Usable {
    fn clear(&mut self, blocks: u32) {
        self.counts.resize(blocks as usize, 0);
        for block in self.touched.drain(..) {
            self.counts[block as usize] = 0;
        }
        self.total = 0;
    }

    fn add(&mut self, block: BlockIndex, slots: u32) {
        let count = &mut self.counts[block as usize];
        if *count == 0 && slots > 0 {
            self.touched.push(block);
        }
        *count = count.saturating_add(slots);
        self.total = self.total.saturating_add(slots);
    }
}

impl<'a> IsolatedSegmentsSearch<'a> {
    /// Starts a search.
    ///
    /// # Errors
    /// The free slots cannot hold the parts, whatever the links.
    fn of(
        request: &'a Request,
        free: &'a FreeSlots<'a>,
        occupancy: &'a Occupancy,
    ) -> Result<Self, Refusal> {
        let parts = SegmentParts::of(request, occupancy);
        parts.check(free)?;
        let (counts, usable) = (free.in_blocks(), Usable::default());
        Ok(IsolatedSegmentsSearch { request, parts, free, counts, occupancy, usable })
    }

    /// The blocks that can hold the whole job without crossing a group, with their free slots.
    fn holding(&self) -> impl Iterator<Item = (BlockIndex, u32)> + '_ {
        let (fabric, wanted) = (self.free.fabric(), self.parts.wanted());
        // If some slots of the job are placed already, the new ones in one domain do not make up the whole job.
        let any = !fabric.domains_span_leaves() || self.request.members.is_empty();
        let on_one_leaf = move |block: BlockIndex| {
            let leaf = |node: Option<&NodeIndex>| node.map(|&node| fabric.group(1, node));
            let nodes = fabric.block_nodes(block);
            leaf(nodes.first()) == leaf(nodes.last())
        };
        (0..)
            .zip(self.counts.iter().copied())
            .filter(move |&(block, slots)| slots >= wanted && (any || on_one_leaf(block)))
    }

    fn in_one_block(&self) -> Option<Vec<NodeIndex>> {
        let tightness = |&(block, slots): &(BlockIndex, u32)| {
            (self.occupancy.held_in_block(block) == 0, slots, block)
        };
        let (block, _) = self.holding().min_by_key(tightness)?;
        Some(SegmentPlan::in_one(self.parts, block).nodes(self.free))
    }

    /// Whether any group can hold the parts.
    fn any_group(&mut self) -> bool {
        let (free, wanted) = (self.free, self.parts.wanted());
        (1..=free.fabric().depth())
            .any(|level| free.groups_with(level, wanted).any(|group| self.holds(level, group)))
    }

    fn over_blocks(&mut self) -> Option<Vec<NodeIndex>> {
        let (free, wanted) = (self.free, self.parts.wanted());
        for level in 1..=free.fabric().depth() {
            let mut groups: Vec<GroupIndex> = free.groups_with(level, wanted).collect();
            groups.sort_by_key(|&group| (free.count(level, group), group));
            if let Some(group) = groups.into_iter().find(|&group| self.holds(level, group)) {
                return self.fill(level, group);
            }
        }
        None
    }

    /// Whether the uncrossed subgroups of a group can hold the parts.
    fn holds(&mut self, level: usize, group: GroupIndex) -> bool {
        self.usable.clear(self.free.fabric().blocks());
        self.add(level, group);
        let Usable { counts, touched, total } = &self.usable;
        *total >= self.parts.wanted()
            && self.parts.fit_in(touched.iter().map(|&block| counts[block as usize]))
    }

    fn add(&mut self, level: usize, group: GroupIndex) {
        let fabric = self.free.fabric();
        let slots = self.free.count(level, group);
        if slots == 0 {
            return;
        }
        if level > 1 {
            for child in fabric.children(level, group) {
                if self.occupancy.crossing(level - 1, child) == 0 {
                    self.add(level - 1, child);
                }
            }
            return;
        }
        let nodes = fabric.node_range(1, group);
        let first = fabric.block(nodes.start);
        let inside = fabric.block_nodes(first);
        let (low, high) = (nodes.start, nodes.end - 1);
        if inside.len() == nodes.len() && inside[0] == low && inside.last() == Some(&high) {
            self.usable.add(first, slots);
            return;
        }
        for node in nodes {
            self.usable.add(fabric.block(node), self.free.count(0, node));
        }
    }

    /// Takes the parts from the group that [`holds`](Self::holds) last accepted.
    fn fill(&self, level: usize, group: GroupIndex) -> Option<Vec<NodeIndex>> {
        let is_empty = |block| self.occupancy.held_in_block(block) == 0;
        let plan = SegmentPlan::of(self.parts, &self.usable.counts, is_empty)?;
        let fabric = self.free.fabric();
        if !fabric.domains_span_leaves() {
            return Some(plan.nodes(self.free));
        }
        // A node may be on another leaf of the block, where another job crosses the leaf.
        let is_clear = |node: &NodeIndex| {
            let clear = |below| self.occupancy.crossing(below, fabric.group(below, *node)) == 0;
            (1..level).all(clear)
        };
        Some(plan.nodes(&self.free.on(fabric.node_range(level, group).filter(is_clear))))
    }
}
