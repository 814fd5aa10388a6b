//! Sets of free nodes such that a promise holds for a job on any of them.

use topolane_fabric::NodeIndex;

use super::Search;
use super::group_room::{GroupRoom, Part};
use super::group_sets::GroupSets;

impl Search<'_> {
    /// Returns sets with slots for all of the job: routers, then groups, then several groups together, of each kind the
    /// smaller sets first. What a job on some nodes of a set may use, it may also use on all of them, so the promise
    /// is asked for the whole set. `is_usable` says of a node whether the job may have it.
    pub fn areas(&self, is_usable: impl Fn(NodeIndex) -> bool) -> Vec<Vec<NodeIndex>> {
        let fabric = self.free.fabric();
        let nodes_on = |leaf| fabric.node_range(1, leaf).filter(|&node| is_usable(node));
        let rooms = self.rooms(1);
        let nodes_of = |parts: &[Part]| {
            let leaves = parts.iter().flat_map(|part| rooms[part.room].leaves_of(part));
            let mut nodes: Vec<NodeIndex> = leaves.flat_map(nodes_on).collect();
            nodes.sort_unstable();
            nodes
        };
        let routers = (0..fabric.groups(1)).map(|leaf| nodes_on(leaf).collect()).collect();
        let groups =
            rooms.iter().enumerate().map(|(number, room)| nodes_of(&[room.part(number, 0)]));
        let sets = [GroupSets::new(self, &rooms).best().map(|found| found.0), self.widest(&rooms)];
        let sets = sets.into_iter().flatten().map(|parts| nodes_of(&parts));
        // A job on few nodes of a set leaves more of the cables to others than one on all of them.
        let detours = self.links.detours.and_then(|_| self.in_groups());
        let chosen = detours.into_iter().map(|(nodes, _)| nodes);
        let chosen = chosen.filter(|nodes| nodes.iter().all(|&node| is_usable(node)));
        let mut found: Vec<Vec<NodeIndex>> = Vec::new();
        for mut kind in [routers, groups.collect::<Vec<_>>(), sets.chain(chosen).collect()] {
            kind.sort_by_key(Vec::len);
            kind.retain(|nodes| {
                nodes.len() >= self.wanted as usize
                    && self.links.are_avoided(fabric, nodes, &fabric.links_of_any(nodes))
            });
            kind.retain(|nodes| !found.contains(nodes));
            kind.dedup();
            found.append(&mut kind);
        }
        found
    }

    /// As many groups as have no used links between them, taken with most free slots first.
    fn widest(&self, rooms: &[GroupRoom<'_>]) -> Option<Vec<Part>> {
        let sets = GroupSets::new(self, rooms);
        let mut chosen: Vec<usize> = Vec::new();
        for room in sets.by_slots() {
            if chosen.iter().all(|&other| sets.are_apart(other, room)) {
                chosen.push(room);
            }
        }
        (chosen.len() > 1).then(|| sets.parts_of(&chosen))
    }
}
