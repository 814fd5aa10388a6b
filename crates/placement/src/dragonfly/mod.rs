//! Searches for nodes of a dragonfly whose links no other job uses.

mod areas;
mod clique;
mod group_room;
mod group_sets;

use topolane_fabric::{Dragonfly, NodeIndex};

use crate::free_slots::FreeSlots;
use crate::link_load::LinkLoad;
use crate::occupancy::Occupancy;
use crate::refusal::Refusal;
use crate::request::Request;
use group_room::{GroupRoom, Part};
use group_sets::GroupSets;

/// Which links no other job may use. Whatever is promised to a job, it keeps off the links that others have to themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Promise {
    /// The links between groups.
    BetweenGroups,
    /// All links.
    AllLinks,
}

/// Returns nodes for a request such that the promise holds: on one router if possible, else in as few groups as
/// possible. Of these it takes those where the fewest gateways of the job are left to others, then those where the least
/// is left over.
///
/// # Errors
/// There are no such nodes, or the search reached its bound; the request has members elsewhere.
pub(crate) fn nodes_apart(
    promise: Promise,
    request: &Request,
    free: &FreeSlots<'_>,
    occupancy: &Occupancy,
) -> Result<Vec<NodeIndex>, Refusal> {
    let refuse = || free.would_share_links(request);
    let Some(dragonfly) = free.fabric().wiring().dragonfly() else { return Err(refuse()) };
    let Some(links) = links_to_avoid(promise, occupancy) else { return Err(refuse()) };
    if !request.members.is_empty() || request.beyond > 0 {
        return Err(refuse());
    }
    let free = &*free.unshared(request, occupancy);
    let search = Search { promise, free, links, dragonfly, wanted: request.nodes };
    let nodes = search.on_one_router().or_else(|| search.in_groups()).ok_or_else(refuse)?;
    // The search reasons about parts of the links; this asks for all of them.
    let is_kept = search.keeps_promise(&nodes);
    debug_assert!(is_kept, "the search keeps its promise");
    if is_kept { Ok(nodes) } else { Err(refuse()) }
}

/// Sets of free nodes, with slots for all of a request, such that a job on any of them uses none of `links`. Empty on another
/// wiring. `is_usable` says of a node whether the job may have it.
pub(crate) fn areas_apart(
    promise: Promise,
    request: &Request,
    free: &FreeSlots<'_>,
    links: LinksToAvoid<'_>,
    is_usable: impl Fn(NodeIndex) -> bool,
) -> Vec<Vec<NodeIndex>> {
    let Some(dragonfly) = free.fabric().wiring().dragonfly() else { return Vec::new() };
    Search { promise, free, links, dragonfly, wanted: request.nodes }.areas(is_usable)
}

/// The links that a job must not use.
#[derive(Clone, Copy)]
pub(crate) struct LinksToAvoid<'a> {
    /// Between groups.
    pub between: &'a LinkLoad,
    /// Inside groups.
    pub inside: &'a LinkLoad,
}

/// The links that a job with this promise must not use; `None` on a tree.
pub(crate) fn links_to_avoid(promise: Promise, occupancy: &Occupancy) -> Option<LinksToAvoid<'_>> {
    let between = occupancy.used_links()?;
    let inside = match promise {
        Promise::AllLinks => between,
        Promise::BetweenGroups => occupancy.owned_links()?,
    };
    Some(LinksToAvoid { between, inside })
}

struct Search<'a> {
    promise: Promise,
    free: &'a FreeSlots<'a>,
    links: LinksToAvoid<'a>,
    dragonfly: &'a Dragonfly,
    wanted: u32,
}

impl Search<'_> {
    /// All slots on the router with the fewest free slots that suffice: such a job uses no link.
    fn on_one_router(&self) -> Option<Vec<NodeIndex>> {
        let counts = self.free.counts_of(1).iter().zip(0..);
        let (_, leaf) = counts.filter(|&(&count, _)| count >= self.wanted).min()?;
        let mut nodes = Vec::with_capacity(self.wanted as usize);
        self.free.take(1, leaf, self.wanted, &mut nodes);
        Some(nodes)
    }

    /// Slots in as few groups as possible.
    fn in_groups(&self) -> Option<Vec<NodeIndex>> {
        // Most jobs fit in one group, so the groups with too few free slots are looked at only for the others.
        let rooms = self.rooms(self.wanted);
        let parts = rooms.iter().enumerate().map(|(number, room)| room.part(number, 0));
        let whole = parts.filter(|part| part.most >= self.wanted).min_by_key(|part| part.most);
        if let Some(part) = whole {
            return self.taken(&rooms, &[part]);
        }
        let rooms = self.rooms(1);
        let parts = GroupSets::new(self, &rooms).best()?;
        self.taken(&rooms, &parts)
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
