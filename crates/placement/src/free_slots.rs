//! The free slots that a request may use, per node and per group.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use topolane_fabric::{BlockIndex, Fabric, GroupIndex, NodeIndex, NodeSet};

use crate::occupancy::{BlockSlots, Occupancy, SharedSlots};
use crate::refusal::Refusal;
use crate::request::{Request, Share};

/// Free slots for one request. A slot is a node, or a part of one if the request may put several slots on a node.
#[derive(Debug, Clone)]
pub struct FreeSlots<'a> {
    fabric: &'a Fabric,
    slots: SlotCounts<'a>,
    /// The slots of every node, if a node can have more than one.
    stack: Option<Vec<u32>>,
}

/// The nodes with at least one slot, and the slots of every group by level (level 0 stays empty).
#[derive(Debug, Clone)]
enum SlotCounts<'a> {
    /// The idle nodes of a state.
    Idle(&'a Occupancy),
    /// Slots for a share of a node that the occupancy keeps up to date.
    Shared(Arc<SharedSlots>),
    /// Slots of this request alone; counted on first use.
    Own(NodeSet, OnceLock<Vec<Vec<u32>>>),
}

impl Occupancy {
    /// Returns the free slots for a request.
    pub fn free_slots(&self, request: &Request) -> FreeSlots<'_> {
        FreeSlots::of(self, request)
    }
}

impl<'a> FreeSlots<'a> {
    fn of(occupancy: &'a Occupancy, request: &Request) -> Self {
        let fabric: &Fabric = occupancy.fabric();
        let room = request.room.as_ref().filter(|_| occupancy.is_best());
        if let Some(slots) = room.or(request.slots.as_ref()) {
            let slots = |node: NodeIndex| slots.get(node as usize).copied().unwrap_or(0);
            let may = |node: &NodeIndex| {
                slots(*node) > 0 && request.eligible.as_ref().is_none_or(|set| set.contains(*node))
            };
            let nodes = NodeSet::of(fabric.nodes(), (0..fabric.nodes()).filter(may));
            let stack = request.stacked.then(|| (0..fabric.nodes()).map(slots).collect());
            return FreeSlots::own(fabric, nodes, stack);
        }
        match (&request.share, &request.eligible) {
            (Share::Whole, None) => {
                FreeSlots { fabric, slots: SlotCounts::Idle(occupancy), stack: None }
            }
            (Share::Whole, Some(eligible)) => {
                let mut nodes = occupancy.idle().clone();
                nodes.intersect(eligible);
                FreeSlots::own(fabric, nodes, None)
            }
            (Share::Part(amounts), None) if !request.stacked => {
                let slots = SlotCounts::Shared(occupancy.part_counts(amounts));
                FreeSlots { fabric, slots, stack: None }
            }
            (Share::Part(amounts), eligible) => {
                let mut nodes = occupancy.part_nodes(amounts);
                if let Some(eligible) = eligible {
                    nodes.intersect(eligible);
                }
                let stack = request.stacked.then(|| {
                    let slots = |node| occupancy.slots_on(node, amounts);
                    (0..fabric.nodes())
                        .map(|node| if nodes.contains(node) { slots(node) } else { 0 })
                        .collect()
                });
                FreeSlots::own(fabric, nodes, stack)
            }
        }
    }

    /// The refusal for a request that has enough free slots but cannot have links of its own.
    pub fn would_share_links(&self, request: &Request) -> Refusal {
        Refusal::WouldShareLinks { wanted: request.nodes, free: self.total() }
    }

    fn own(fabric: &'a Fabric, nodes: NodeSet, stack: Option<Vec<u32>>) -> Self {
        FreeSlots { fabric, slots: SlotCounts::Own(nodes, OnceLock::new()), stack }
    }

    /// Counts the slots of every group by level.
    fn counted(&self) -> Vec<Vec<u32>> {
        let fabric = self.fabric;
        let mut counts: Vec<Vec<u32>> = Vec::with_capacity(fabric.depth() + 1);
        counts.extend([Vec::new(), self.counted_in_leaves()]);
        for level in 2..=fabric.depth() {
            let below = &counts[level - 1];
            let sum = |group| {
                let children = fabric.children(level, group);
                let slots = &below[children.start as usize..children.end as usize];
                slots.iter().copied().fold(0, u32::saturating_add)
            };
            counts.push((0..fabric.groups(level)).map(sum).collect());
        }
        counts
    }

    fn counted_in_leaves(&self) -> Vec<u32> {
        let set = self.set();
        let count = |range: Range<NodeIndex>| match &self.stack {
            None if range.len() <= 64 => {
                let bits = set.bits_from(range.start);
                let outside = 64 - range.len() as u32;
                bits.checked_shl(outside).unwrap_or(0).count_ones()
            }
            None => set.count_in(range),
            Some(slots) => {
                let slots = set.iter_in(range).map(|node| slots[node as usize]);
                slots.fold(0, u32::saturating_add)
            }
        };
        (0..self.fabric.groups(1)).map(|leaf| count(self.fabric.node_range(1, leaf))).collect()
    }

    /// Whether both have the same slots on each node.
    pub(crate) fn equals(&self, other: &FreeSlots<'_>) -> bool {
        self.set() == other.set() && self.stack == other.stack
    }

    fn set(&self) -> &NodeSet {
        match &self.slots {
            SlotCounts::Idle(occupancy) => occupancy.idle(),
            SlotCounts::Shared(shared) => &shared.nodes,
            SlotCounts::Own(nodes, _) => nodes,
        }
    }

    fn counts(&self) -> &[Vec<u32>] {
        match &self.slots {
            SlotCounts::Idle(occupancy) => occupancy.idle_counts(),
            SlotCounts::Shared(shared) => &shared.counts,
            SlotCounts::Own(_, counts) => counts.get_or_init(|| self.counted()),
        }
    }

    /// The slots of each block, if the occupancy tracks them.
    fn by_block(&self) -> Option<&BlockSlots> {
        match &self.slots {
            SlotCounts::Idle(occupancy) => Some(occupancy.idle_by_block()),
            SlotCounts::Shared(shared) => Some(&shared.by_block),
            SlotCounts::Own(..) => None,
        }
    }

    /// The slots that a job may use if it must share no link. A node's link counts: a job of several nodes may not use
    /// a node that another job of several nodes also uses.
    #[must_use]
    pub fn unshared(&self, request: &Request, occupancy: &Occupancy) -> Cow<'_, FreeSlots<'a>> {
        let crossed = occupancy.crossed_nodes();
        if request.nodes > 1 && !request.share.is_whole() && self.set().intersects(crossed) {
            Cow::Owned(self.only(|node| !crossed.contains(node)))
        } else {
            Cow::Borrowed(self)
        }
    }

    /// Returns the same slots without the nodes for which `keep` is false.
    #[must_use]
    pub fn only(&self, keep: impl Fn(NodeIndex) -> bool) -> FreeSlots<'a> {
        let nodes = NodeSet::of(self.fabric.nodes(), self.set().iter().filter(|&node| keep(node)));
        FreeSlots::own(self.fabric, nodes, self.stack.clone())
    }

    /// Returns the same slots on the given nodes only.
    pub(crate) fn on(&self, nodes: impl IntoIterator<Item = NodeIndex>) -> FreeSlots<'a> {
        let nodes = nodes.into_iter().filter(|&node| self.set().contains(node));
        let nodes = NodeSet::of(self.fabric.nodes(), nodes);
        FreeSlots::own(self.fabric, nodes, self.stack.clone())
    }

    /// The machine.
    pub fn fabric(&self) -> &'a Fabric {
        self.fabric
    }

    /// The total number of slots. A count of stacked slots stops at `u32::MAX`.
    #[inline]
    pub fn total(&self) -> u32 {
        if let (SlotCounts::Own(nodes, _), None) = (&self.slots, &self.stack) {
            return nodes.count();
        }
        self.counts().last().map_or(0, |sites| sites.iter().copied().fold(0, u32::saturating_add))
    }

    /// The slots of a group; at level 0, of a node.
    #[inline]
    pub fn count(&self, level: usize, group: GroupIndex) -> u32 {
        if level > 0 {
            self.counts()[level][group as usize]
        } else if !self.set().contains(group) {
            0
        } else {
            self.stack.as_ref().map_or(1, |slots| slots[group as usize])
        }
    }

    /// The slots of every group of a level; the level is at least 1.
    #[inline]
    pub(crate) fn counts_of(&self, level: usize) -> &[u32] {
        &self.counts()[level]
    }

    /// The groups of a level (at least 1) that have at least `slots` slots, ascending. Skips every group inside a group
    /// with too few.
    pub(crate) fn groups_with(
        &self,
        level: usize,
        slots: u32,
    ) -> impl Iterator<Item = GroupIndex> + '_ {
        let above = (level + 1).min(self.fabric.depth());
        let counts = self.counts_of(level);
        let inside = move |group: GroupIndex| {
            if level == above { group..group + 1 } else { self.fabric.children(above, group) }
        };
        let able = (0..).zip(self.counts_of(above)).filter(move |&(_, &count)| count >= slots);
        let groups = able.flat_map(move |(group, _)| inside(group));
        groups.filter(move |&group| counts[group as usize] >= slots)
    }

    /// Entry `n` is the number of blocks ([`Fabric::block`]) with `n` slots; `None` if the occupancy does not track it.
    pub(crate) fn blocks_with(&self) -> Option<&[u32]> {
        self.by_block().map(BlockSlots::blocks_with)
    }

    /// The largest number of slots in any group of a level; the level is at least 1.
    pub(crate) fn largest(&self, level: usize) -> u32 {
        self.counts()[level].iter().copied().max().unwrap_or(0)
    }

    /// The slots of every block ([`Fabric::block`]), by index. Usually the occupancy has them counted.
    pub fn in_blocks(&self) -> Cow<'_, [u32]> {
        if let Some(slots) = self.by_block() {
            return Cow::Borrowed(slots.free());
        }
        let mut counts = vec![0u32; self.fabric.blocks() as usize];
        for node in self.set().iter() {
            let count = &mut counts[self.fabric.block(node) as usize];
            *count = count.saturating_add(self.count(0, node));
        }
        Cow::Owned(counts)
    }

    /// The 64 nodes from `first` on as bits, if no node has more than one slot: 1 if the node has one.
    pub(crate) fn bits_from(&self, first: NodeIndex) -> Option<u64> {
        self.stack.is_none().then(|| self.set().bits_from(first))
    }

    /// Whether these are all idle nodes of the occupancy, one slot each.
    pub(crate) fn are_all_idle(&self) -> bool {
        matches!(self.slots, SlotCounts::Idle(_))
    }

    /// Whether the node has a slot.
    pub fn contains(&self, node: NodeIndex) -> bool {
        self.set().contains(node)
    }

    /// All nodes with a slot, ascending.
    pub fn nodes(&self) -> impl Iterator<Item = NodeIndex> + '_ {
        self.set().iter()
    }

    /// Takes up to `wanted` slots of a group in node order, appending a node once per slot. Returns the number taken.
    pub fn take(
        &self,
        level: usize,
        group: GroupIndex,
        wanted: u32,
        taken: &mut Vec<NodeIndex>,
    ) -> u32 {
        self.take_from(self.set().iter_in(self.fabric.node_range(level, group)), wanted, taken)
    }

    /// Takes up to `wanted` slots of a block, as [`FreeSlots::take`] does.
    pub fn take_in_block(&self, block: BlockIndex, wanted: u32, taken: &mut Vec<NodeIndex>) -> u32 {
        let nodes = self.fabric.block_nodes(block).iter().copied();
        self.take_from(nodes.filter(|&node| self.set().contains(node)), wanted, taken)
    }

    /// Takes up to `wanted` slots of the given nodes, which must have slots.
    fn take_from(
        &self,
        nodes: impl Iterator<Item = NodeIndex>,
        wanted: u32,
        taken: &mut Vec<NodeIndex>,
    ) -> u32 {
        let mut left = wanted;
        for node in nodes {
            if left == 0 {
                break;
            }
            let slots = self.stack.as_ref().map_or(1, |stack| stack[node as usize]).min(left);
            taken.extend(std::iter::repeat_n(node, slots as usize));
            left -= slots;
        }
        wanted - left
    }
}
