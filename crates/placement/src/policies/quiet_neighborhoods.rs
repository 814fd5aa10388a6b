use std::ops::Range;

use topolane_fabric::{GroupIndex, NodeIndex};

use crate::occupancy::block_sizes;
use crate::{Choice, FreeSlots, Looking, Obstacle, Occupancy, Policy, Refusal, Request, Traits};

/// Quiet neighborhoods by virtual network blocks (IPDPS'15), rebuilt; docs/explanation/jigsaw-paper.md says
/// which parts are ours. The smallest block is a leaf. Larger blocks of a group are 2, 4, 8, ... neighbouring
/// subgroups, aligned to a multiple of that number, or all of them. A job goes into the first block with enough free
/// slots, of the smallest size that could hold it on the empty machine. No other job may cross the leaves and pods that
/// it crosses.
#[derive(Debug, Clone, Copy, Default)]
pub struct QuietNeighborhoods;

impl Policy for QuietNeighborhoods {
    fn name(&self) -> &'static str {
        "quiet-neighborhoods"
    }

    fn traits(&self) -> Traits {
        Traits::ISOLATES
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<Choice, Refusal> {
        let free = &free.unshared(request, occupancy);
        let (level, block) = block_for(request, free, occupancy)?;
        let now = LeafBlocks { free, occupancy };
        let mut nodes = Vec::with_capacity(request.nodes as usize);
        now.take(level, block, request.nodes, &mut nodes);
        nodes.sort_unstable();
        Ok(Choice::nodes(nodes))
    }

    fn has_place(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<(), Refusal> {
        block_for(request, &free.unshared(request, occupancy), occupancy).map(drop)
    }

    fn obstacles(&self, looking: &Looking<'_>) -> (usize, Vec<Obstacle>) {
        let top = looking.occupancy.fabric().depth();
        let level = size_for(looking.request, looking.occupancy).map_or(top, |(level, _)| level);
        (level, looking.crossed(level, true))
    }
}

/// The level of the block for a request, and the range of its groups.
fn block_for(
    request: &Request,
    free: &FreeSlots<'_>,
    occupancy: &Occupancy,
) -> Result<(usize, Range<GroupIndex>), Refusal> {
    let now = LeafBlocks { free, occupancy };
    let found = size_for(request, occupancy).and_then(|(level, size)| {
        let usable = |group| now.usable(level - 1, group);
        Some((level, now.first(level, size, request.nodes, usable)?))
    });
    found.ok_or_else(|| free.would_share_links(request))
}

/// The level and size of the smallest blocks that could hold the request on the empty machine.
fn size_for(request: &Request, occupancy: &Occupancy) -> Option<(usize, u32)> {
    let is_counted = request.slots.is_some() || request.room.is_some();
    if !is_counted && occupancy.any_node_holds(request) {
        return occupancy.smallest_block(request.nodes);
    }
    let empty = occupancy.empty();
    let free = empty.free_slots(request);
    let level = (1..=free.fabric().depth()).find(|&level| free.largest(level) >= request.nodes)?;
    if level == 1 {
        return Some((1, 1));
    }
    let at_best = LeafBlocks { free: &free, occupancy: empty };
    // On the empty machine no job crosses a group, so all slots are usable.
    let slots = |group| free.count(level - 1, group);
    let holds = |&size: &u32| at_best.first(level, size, request.nodes, slots).is_some();
    at_best.sizes(level).find(holds).map(|size| (level, size))
}

/// The blocks of a machine. A block of level L is a range of groups of level L - 1; at level 1 it is a leaf.
struct LeafBlocks<'a> {
    free: &'a FreeSlots<'a>,
    occupancy: &'a Occupancy,
}

impl LeafBlocks<'_> {
    /// The sizes of the blocks of a level, the smallest first; the level is at least 2.
    fn sizes(&self, level: usize) -> impl Iterator<Item = u32> + use<> {
        block_sizes(self.free.fabric(), level)
    }

    /// The first block of a size with enough free slots, counting `usable` slots of each group.
    fn first(
        &self,
        level: usize,
        size: u32,
        wanted: u32,
        usable: impl Fn(GroupIndex) -> u32,
    ) -> Option<Range<GroupIndex>> {
        let fabric = self.free.fabric();
        self.free.groups_with(level, wanted).find_map(|group| {
            if level == 1 {
                return Some(group..group + 1);
            }
            let Range { start, end } = fabric.children(level, group);
            (start..end).step_by(size as usize).find_map(|first| {
                let block = first..end.min(first.saturating_add(size));
                let held = block.clone().map(&usable).sum::<u32>();
                (held >= wanted).then_some(block)
            })
        })
    }

    /// The slots of a group that a job crossing it can use: zero if another job already crosses this group, otherwise
    /// the slots of its uncrossed subgroups.
    fn usable(&self, level: usize, group: GroupIndex) -> u32 {
        if self.occupancy.crossing(level, group) > 0 {
            return 0;
        }
        if level == 1 {
            return self.free.count(1, group);
        }
        let children = self.free.fabric().children(level, group);
        children.map(|child| self.usable(level - 1, child)).sum()
    }

    /// Takes slots of a block in order. Returns the number still wanted.
    fn take(
        &self,
        level: usize,
        block: Range<GroupIndex>,
        wanted: u32,
        nodes: &mut Vec<NodeIndex>,
    ) -> u32 {
        if level == 1 {
            return block.fold(wanted, |left, leaf| left - self.free.take(1, leaf, left, nodes));
        }
        let free = block.filter(|&group| self.occupancy.crossing(level - 1, group) == 0);
        free.fold(wanted, |left, group| {
            let inside = if level == 2 {
                group..group + 1
            } else {
                self.free.fabric().children(level - 1, group)
            };
            self.take(level - 1, inside, left, nodes)
        })
    }
}
