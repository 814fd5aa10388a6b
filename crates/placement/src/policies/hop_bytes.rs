use std::cmp::{Reverse, min};

use topolane_fabric::{GroupIndex, NodeIndex};

use crate::{Choice, FreeSlots, Occupancy, Policy, Refusal, Request, Traits};

/// Places groups of virtual machines by hop-byte scheduling in `OpenStack` (2013), at every level of the tree. Inside a
/// group, it takes the lowest subgroup that can hold all members, including running ones. If there is none, it fills
/// the child that can hold the most members and continues with the rest. Among equals it prefers the one with more
/// running members, then the tightest.
#[derive(Debug, Clone, Copy, Default)]
pub struct HopBytes;

impl Policy for HopBytes {
    fn name(&self) -> &'static str {
        "hop-bytes"
    }

    fn traits(&self) -> Traits {
        Traits::COUNT_ONLY
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        _: &Occupancy,
    ) -> Result<Choice, Refusal> {
        let fabric = free.fabric();
        let mut nodes = Vec::with_capacity(request.nodes as usize);
        let group = Inside { free, members: &request.members, level: fabric.depth() + 1, group: 0 };
        group.fill(request.nodes, &mut nodes);
        nodes.sort_unstable();
        Ok(Choice::nodes(nodes))
    }
}

/// A group to place in; at one level above the top, the whole machine.
#[derive(Clone, Copy)]
struct Inside<'a> {
    free: &'a FreeSlots<'a>,
    members: &'a [NodeIndex],
    level: usize,
    group: GroupIndex,
}

impl<'a> Inside<'a> {
    fn fill(self, wanted: u32, nodes: &mut Vec<NodeIndex>) {
        if self.level == 1 {
            self.free.take(1, self.group, wanted, nodes);
            return;
        }
        let mut left = wanted;
        let mut full = Vec::new();
        while left > 0 {
            let all = self.members_inside() + left;
            let holds_all = (1..self.level)
                .find_map(|level| self.best(level, left, &full).filter(|&(_, score)| score == all));
            let Some((best, _)) = holds_all.or_else(|| self.best(self.level - 1, left, &full))
            else {
                return;
            };
            let here = min(best.slots(), left);
            best.fill(here, nodes);
            // If `here` is less than `left`, the child is full; otherwise the loop ends.
            full.push(best.group);
            left -= here;
        }
    }

    /// The group of `level` inside this one that can hold the most members, and the number.
    fn best(self, level: usize, left: u32, full: &[GroupIndex]) -> Option<(Inside<'a>, u32)> {
        let fabric = self.free.fabric();
        let range = if self.level > fabric.depth() {
            0..fabric.groups(level)
        } else {
            let nodes = fabric.node_range(self.level, self.group);
            fabric.group(level, nodes.start)..fabric.group(level, nodes.end - 1) + 1
        };
        let open = range
            .map(|group| Inside { level, group, ..self })
            .filter(|inside| inside.slots() > 0 && !full.contains(&self.child_with(*inside)));
        open.map(|inside| (inside, inside.members_inside() + min(inside.slots(), left))).max_by_key(
            |&(inside, score)| {
                (score, inside.members_inside(), Reverse(inside.slots()), Reverse(inside.group))
            },
        )
    }

    /// The child of this group that contains `below`.
    fn child_with(self, below: Inside<'_>) -> GroupIndex {
        let fabric = self.free.fabric();
        fabric.group(self.level - 1, fabric.node_range(below.level, below.group).start)
    }

    fn slots(self) -> u32 {
        self.free.count(self.level, self.group)
    }

    fn members_inside(self) -> u32 {
        let fabric = self.free.fabric();
        if self.level > fabric.depth() {
            return self.members.len() as u32;
        }
        let inside = |&&member: &&NodeIndex| fabric.group(self.level, member) == self.group;
        self.members.iter().filter(inside).count() as u32
    }
}
