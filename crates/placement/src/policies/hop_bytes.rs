use std::cmp::{Reverse, min};

use topolane_fabric::{GroupIndex, NodeIndex};

use crate::{Occupancy, Policy, Refusal, Request, Room};

/// The rule for groups of virtual machines (hop-byte scheduling in OpenStack, 2013), at every
/// level of the tree from the top: the group that will hold most members, those already running
/// counted; of equals the one with more of them already; of equals the tightest.
#[derive(Debug, Clone, Copy, Default)]
pub struct HopBytes;

impl Policy for HopBytes {
    fn name(&self) -> &'static str {
        "hop-bytes"
    }

    fn choose(
        &self,
        request: &Request,
        room: &Room<'_>,
        _: &Occupancy,
    ) -> Result<Vec<NodeIndex>, Refusal> {
        let mut nodes = Vec::with_capacity(request.nodes as usize);
        let fabric = room.fabric();
        fill(room, request, fabric.depth(), 0..fabric.sites(), request.nodes, &mut nodes);
        nodes.sort_unstable();
        Ok(nodes)
    }

    fn count_only(&self) -> bool {
        true
    }
}

/// Takes `wanted` slots from the groups of `level`, best group first.
fn fill(
    room: &Room<'_>,
    request: &Request,
    level: usize,
    groups: std::ops::Range<GroupIndex>,
    wanted: u32,
    nodes: &mut Vec<NodeIndex>,
) {
    let fabric = room.fabric();
    let mut left = wanted;
    let mut open: Vec<(GroupIndex, u32, u32)> = groups
        .map(|group| {
            let inside = |&&member: &&NodeIndex| fabric.group(level, member) == group;
            let members = request.members.iter().filter(inside).count() as u32;
            (group, room.count(level, group), members)
        })
        .filter(|&(_, slots, _)| slots > 0)
        .collect();
    while left > 0 && !open.is_empty() {
        let rank = |&(group, slots, members): &(GroupIndex, u32, u32)| {
            (members + min(slots, left), members, Reverse(slots), Reverse(group))
        };
        let Some(best) = (0..open.len()).max_by_key(|&index| rank(&open[index])) else { return };
        let (group, slots, _) = open.swap_remove(best);
        let here = min(slots, left);
        if level <= 1 {
            room.take(level, group, here, nodes);
        } else {
            fill(room, request, level - 1, fabric.children(level, group), here, nodes);
        }
        left -= here;
    }
}
