//! Searches for nodes of a dragonfly whose links no other job uses.

mod areas;
mod clique;
mod group_room;
mod group_sets;
mod kept;
mod own_lanes;

use std::cell::Cell;

use topolane_fabric::{Dragonfly, LinkSet, NodeIndex};

use crate::free_slots::FreeSlots;
use crate::kept_bound::MostSlots;
use crate::promise::{LinksToAvoid, Promise};
pub(crate) use clique::Conflicts;
use group_room::{GroupRoom, Part};
use group_sets::GroupSets;
pub(crate) use kept::KeptConflicts;

/// Nodes such that the promise holds: on one router if possible, else in as few groups as possible. Of these it takes those
/// where the fewest gateways of the job are left to others, then those where the least is left over. With the lanes between
/// groups that the job owns, if the promise is of some. If there are no such nodes, or the search reached its bound: the
/// most slots that any can have.
pub(crate) fn nodes(
    dragonfly: &Dragonfly,
    promise: Promise,
    links: LinksToAvoid<'_>,
    free: &FreeSlots<'_>,
    wanted: u32,
) -> Result<(Vec<NodeIndex>, LinkSet), MostSlots> {
    let search = Search::new(dragonfly, promise, links, free, wanted);
    let on_one = search.on_one_router().map(|nodes| (nodes, LinkSet::default()));
    on_one.or_else(|| search.in_groups()).ok_or_else(|| search.most_slots())
}

/// Sets of free nodes, with slots for all of a request, such that the promise holds for a job on any of them. `is_usable` says
/// of a node whether the job may have it.
pub(crate) fn areas(
    dragonfly: &Dragonfly,
    promise: Promise,
    links: LinksToAvoid<'_>,
    free: &FreeSlots<'_>,
    wanted: u32,
    is_usable: impl Fn(NodeIndex) -> bool,
) -> Vec<Vec<NodeIndex>> {
    Search::new(dragonfly, promise, links, free, wanted).areas(is_usable)
}

struct Search<'a> {
    promise: Promise,
    free: &'a FreeSlots<'a>,
    links: LinksToAvoid<'a>,
    dragonfly: &'a Dragonfly,
    wanted: u32,
    /// Whether no part of the search reached its bound so far.
    is_exact: Cell<bool>,
}

impl<'a> Search<'a> {
    fn new(
        dragonfly: &'a Dragonfly,
        promise: Promise,
        links: LinksToAvoid<'a>,
        free: &'a FreeSlots<'a>,
        wanted: u32,
    ) -> Self {
        Search { promise, free, links, dragonfly, wanted, is_exact: Cell::new(true) }
    }

    /// The most slots that a job can have, after a search that found none.
    fn most_slots(&self) -> MostSlots {
        if self.is_exact.get() { MostSlots::of(self.wanted - 1) } else { MostSlots::UNKNOWN }
    }

    /// All slots on the router with the fewest free slots that suffice: such a job uses no link.
    fn on_one_router(&self) -> Option<Vec<NodeIndex>> {
        let counts = self.free.counts_of(1).iter().zip(0..);
        let (_, leaf) = counts.filter(|&(&count, _)| count >= self.wanted).min()?;
        let mut nodes = Vec::with_capacity(self.wanted as usize);
        self.free.take(1, leaf, self.wanted, &mut nodes);
        Some(nodes)
    }

    /// Slots in as few groups as possible.
    fn in_groups(&self) -> Option<(Vec<NodeIndex>, LinkSet)> {
        // Most jobs fit in one group, so the groups with too few free slots are looked at only for the others.
        let rooms = self.rooms(self.wanted);
        let parts = rooms.iter().enumerate().map(|(number, room)| room.part(number, 0));
        let whole = parts.filter(|part| part.most >= self.wanted).min_by_key(|part| part.most);
        if let Some(part) = whole {
            return Some((self.taken(&rooms, &[part])?, LinkSet::default()));
        }
        let rooms = self.rooms(1);
        let (parts, lanes) = GroupSets::new(self, &rooms).best()?;
        Some((self.taken(&rooms, &parts)?, lanes))
    }

    /// The groups with at least `slots` free slots.
    fn rooms(&self, slots: u32) -> Vec<GroupRoom<'_>> {
        self.free.groups_with(2, slots).map(|group| GroupRoom::new(self, group)).collect()
    }

    /// The slots of some parts, filled in this order.
    fn taken(&self, rooms: &[GroupRoom<'_>], parts: &[Part]) -> Option<Vec<NodeIndex>> {
        let mut nodes = Vec::with_capacity(self.wanted as usize);
        for part in parts {
            let left = self.wanted - nodes.len() as u32;
            rooms[part.room].take(part, left, &mut nodes);
        }
        nodes.sort_unstable();
        (nodes.len() as u32 == self.wanted).then_some(nodes)
    }
}
