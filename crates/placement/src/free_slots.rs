//! The free slots that a request may use, per node and per group.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use topolane_fabric::{BlockIndex, Fabric, GroupIndex, NodeIndex, NodeSet};

use crate::occupancy::{BlockSlots, Occupancy, SharedSlots};
use crate::refusal::Refusal;
use crate::request::{Request, Share};

/// Free slots for one request. A slot is a node, unless the request may stack several on one.
#[derive(Debug, Clone)]
pub struct FreeSlots<'a> {
    fabric: &'a Fabric,
    slots: Slots<'a>,
    /// Slots of every node where they can be more than one.
    stack: Option<Vec<u32>>,
}

/// Nodes with at least one slot, and the slots of every group by level, of which level 0 is empty.
#[derive(Debug, Clone)]
enum Slots<'a> {
    /// The idle nodes of a state.
    Idle(&'a Occupancy),
    /// Those that a state keeps up to date for a share of a node.
    Shared(Arc<SharedSlots>),
    /// Of this request alone; counted on first use.
    Own(NodeSet, OnceLock<Vec<Vec<u32>>>),
}

impl Occupancy {
    /// The free slots for a request.
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
                FreeSlots { fabric, slots: Slots::Idle(occupancy), stack: None }
            }
            (Share::Whole, Some(eligible)) => {
                let mut nodes = occupancy.idle().clone();
                nodes.intersect(eligible);
                FreeSlots::own(fabric, nodes, None)
            }
            (Share::Part(amounts), None) if !request.stacked => {
                let slots = Slots::Shared(occupancy.part_counts(amounts));
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

    /// The refusal of a request that has enough free slots, but not on links of its own.
    pub fn would_share_links(&self, request: &Request) -> Refusal {
        Refusal::WouldShareLinks { wanted: request.nodes, free: self.total() }
    }

    fn own(fabric: &'a Fabric, nodes: NodeSet, stack: Option<Vec<u32>>) -> Self {
        FreeSlots { fabric, slots: Slots::Own(nodes, OnceLock::new()), stack }
    }

    /// Slots of every group by level, counted now.
    fn counted(&self) -> Vec<Vec<u32>> {
        let fabric = self.fabric;
        let mut counts: Vec<Vec<u32>> =
            (0..=fabric.depth()).map(|level| vec![0; fabric.groups(level) as usize]).collect();
        counts[0].clear();
        for (leaf, count) in (0..).zip(&mut counts[1]) {
            let range = fabric.node_range(1, leaf);
            *count = match &self.stack {
                None => self.set().count_in(range),
                Some(slots) => self
                    .set()
                    .iter_in(range)
                    .map(|node| slots[node as usize])
                    .fold(0, u32::saturating_add),
            };
        }
        for level in 2..=fabric.depth() {
            for group in 0..fabric.groups(level) {
                counts[level][group as usize] = fabric
                    .children(level, group)
                    .map(|child| counts[level - 1][child as usize])
                    .fold(0, u32::saturating_add);
            }
        }
        counts
    }

    fn set(&self) -> &NodeSet {
        match &self.slots {
            Slots::Idle(occupancy) => occupancy.idle(),
            Slots::Shared(shared) => &shared.nodes,
            Slots::Own(nodes, _) => nodes,
        }
    }

    fn counts(&self) -> &[Vec<u32>] {
        match &self.slots {
            Slots::Idle(occupancy) => occupancy.idle_counts(),
            Slots::Shared(shared) => &shared.counts,
            Slots::Own(_, counts) => counts.get_or_init(|| self.counted()),
        }
    }

    /// The slots by block, where the state keeps count of them.
    fn by_block(&self) -> Option<&BlockSlots> {
        match &self.slots {
            Slots::Idle(occupancy) => Some(occupancy.idle_by_block()),
            Slots::Shared(shared) => Some(&shared.by_block),
            Slots::Own(..) => None,
        }
    }

    /// The slots that a job may use if no link of it may be shared. The link of a node is one of them: a job of several nodes
    /// that shares nodes may use none on which there is another job of several nodes.
    #[must_use]
    pub fn unshared(&self, request: &Request, occupancy: &Occupancy) -> Cow<'_, FreeSlots<'a>> {
        let crossed = occupancy.crossed_nodes();
        if request.nodes > 1 && !request.share.is_whole() && self.set().intersects(crossed) {
            Cow::Owned(self.only(|node| !crossed.contains(node)))
        } else {
            Cow::Borrowed(self)
        }
    }

    /// The same slots without the nodes for which `keep` is false.
    #[must_use]
    pub fn only(&self, keep: impl Fn(NodeIndex) -> bool) -> FreeSlots<'a> {
        let nodes = NodeSet::of(self.fabric.nodes(), self.set().iter().filter(|&node| keep(node)));
        FreeSlots::own(self.fabric, nodes, self.stack.clone())
    }

    /// The same slots on some nodes only.
    pub(crate) fn on(&self, nodes: impl IntoIterator<Item = NodeIndex>) -> FreeSlots<'a> {
        let nodes = nodes.into_iter().filter(|&node| self.set().contains(node));
        let nodes = NodeSet::of(self.fabric.nodes(), nodes);
        FreeSlots::own(self.fabric, nodes, self.stack.clone())
    }

    /// The machine.
    pub fn fabric(&self) -> &'a Fabric {
        self.fabric
    }

    /// All slots; counts of stacked slots stop at `u32::MAX`.
    #[inline]
    pub fn total(&self) -> u32 {
        if let (Slots::Own(nodes, _), None) = (&self.slots, &self.stack) {
            return nodes.count();
        }
        self.counts().last().map_or(0, |sites| sites.iter().copied().fold(0, u32::saturating_add))
    }

    /// Slots of a group; of a node at level 0.
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

    /// Slots of every group of a level of at least 1.
    #[inline]
    pub(crate) fn counts_of(&self, level: usize) -> &[u32] {
        &self.counts()[level]
    }

    /// The groups of a level of at least 1 that have enough slots, ascending. If a group above has too few, none in it is looked at.
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

    /// Entry `n` is the number of blocks ([`Fabric::block`]) with `n` slots; `None` if that is not counted.
    pub(crate) fn blocks_with(&self) -> Option<&[u32]> {
        self.by_block().map(BlockSlots::blocks_with)
    }

    /// The most slots that a group of a level has; at least 1.
    pub(crate) fn largest(&self, level: usize) -> u32 {
        self.counts()[level].iter().copied().max().unwrap_or(0)
    }

    /// Slots of every block ([`Fabric::block`]) by index. Mostly they are counted already.
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

    /// Whether the node has a slot.
    pub fn contains(&self, node: NodeIndex) -> bool {
        self.set().contains(node)
    }

    /// All nodes with a slot, ascending.
    pub fn nodes(&self) -> impl Iterator<Item = NodeIndex> + '_ {
        self.set().iter()
    }

    /// Takes up to `wanted` slots of a group in node order, appending a node once per slot;
    /// returns how many it took.
    pub fn take(
        &self,
        level: usize,
        group: GroupIndex,
        wanted: u32,
        taken: &mut Vec<NodeIndex>,
    ) -> u32 {
        self.take_from(self.set().iter_in(self.fabric.node_range(level, group)), wanted, taken)
    }

    /// The same for a block.
    pub fn take_in_block(&self, block: BlockIndex, wanted: u32, taken: &mut Vec<NodeIndex>) -> u32 {
        let nodes = self.fabric.block_nodes(block).iter().copied();
        self.take_from(nodes.filter(|&node| self.set().contains(node)), wanted, taken)
    }

    /// The same for some nodes with slots.
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
