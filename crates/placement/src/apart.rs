//! Nodes whose links no other job uses, on wirings that are not trees.

use topolane_fabric::{LinkSet, NodeIndex, Wiring};

use crate::choice::Choice;
use crate::free_slots::FreeSlots;
use crate::kept_bound::MostSlots;
use crate::occupancy::Occupancy;
use crate::promise::{LinksToAvoid, Promise};
use crate::refusal::Refusal;
use crate::request::Request;
use crate::{dragonfly, hyperx, torus};

/// Returns nodes for a request such that the promise holds, and the cables that it owns if the promise is of some: on one
/// switch if possible, else where the search of the wiring finds some.
///
/// # Errors
/// There are no such nodes, or the search reached its bound; the request has members elsewhere; the wiring is a tree.
pub(crate) fn choice_apart(
    promise: Promise,
    request: &Request,
    free: &FreeSlots<'_>,
    occupancy: &Occupancy,
) -> Result<Choice, Refusal> {
    let refuse = || free.would_share_links(request);
    let links = LinksToAvoid::of(promise, occupancy).ok_or_else(refuse)?;
    if !request.members.is_empty() || request.beyond > 0 {
        return Err(refuse());
    }
    let free = &*free.unshared(request, occupancy);
    let bound = occupancy.kept_bound();
    let bound = bound.filter(|_| promise == Promise::AllLinks && free.are_all_idle());
    if bound.is_some_and(|bound| !bound.get().allows(request.nodes)) {
        return Err(refuse());
    }
    let found = search(promise, links, free, request.nodes);
    if let (Some(bound), Err(most)) = (bound, &found) {
        bound.lower(*most);
    }
    let (nodes, lanes) = found.map_err(|_| refuse())?;
    // A search reasons about parts of the slots and links; this asks for all of them.
    let fabric = free.fabric();
    let cables = fabric.cables_of_lanes(&lanes);
    let uses = fabric.links_over(&nodes, &cables);
    let is_kept = nodes.len() == request.nodes as usize && links.are_avoided(fabric, &nodes, &uses);
    debug_assert!(is_kept, "the search keeps its promise");
    if !is_kept {
        return Err(refuse());
    }
    let bandwidth_share = match promise {
        Promise::OwnCables { share } if !cables.is_empty() => share,
        _ => 1.0,
    };
    Ok(Choice { links: cables, bandwidth_share, ..Choice::nodes(nodes) })
}

fn search(
    promise: Promise,
    links: LinksToAvoid<'_>,
    free: &FreeSlots<'_>,
    wanted: u32,
) -> Result<(Vec<NodeIndex>, LinkSet), MostSlots> {
    let none = |nodes| (nodes, LinkSet::default());
    match free.fabric().wiring() {
        Wiring::Tree => Err(MostSlots::UNKNOWN),
        Wiring::Dragonfly(it) => dragonfly::nodes(it, promise, links, free, wanted),
        Wiring::Torus(it) => torus::nodes(it, links.between, free, wanted).map(none),
        Wiring::HyperX(it) => hyperx::nodes(it, links.between, free, wanted).map(none),
    }
}

/// Sets of free nodes, with slots for all of a request, such that the promise holds for a job on any of them. `is_usable` says
/// of a node whether the job may have it. Not for trees.
pub(crate) fn areas_apart(
    promise: Promise,
    links: LinksToAvoid<'_>,
    free: &FreeSlots<'_>,
    wanted: u32,
    is_usable: impl Fn(NodeIndex) -> bool,
) -> Vec<Vec<NodeIndex>> {
    let fabric = free.fabric();
    if let Some(dragonfly) = fabric.wiring().dragonfly() {
        return dragonfly::areas(dragonfly, promise, links, free, wanted, is_usable);
    }
    let free = &free.only(is_usable);
    let nodes_on = |leaf| fabric.node_range(1, leaf).filter(|&node| free.contains(node));
    let has_room = |nodes: &Vec<NodeIndex>| nodes.len() >= wanted as usize;
    let leaves = (0..fabric.groups(1)).map(|leaf| nodes_on(leaf).collect());
    let mut found: Vec<Vec<NodeIndex>> = leaves.filter(has_room).collect();
    found.sort_by_key(Vec::len);
    let is_safe =
        |area: &Vec<NodeIndex>| links.are_avoided(fabric, area, &fabric.links_of_any(area));
    // The nodes that a search finds for one size, for twice as many, and so on, with the others on their switches.
    let sizes = std::iter::successors(Some(wanted), |&size| size.checked_mul(2));
    for (chosen, _) in sizes.map_while(|size| search(promise, links, free, size).ok()) {
        let mut leaves: Vec<_> = chosen.iter().map(|&node| fabric.group(1, node)).collect();
        leaves.dedup();
        let area = leaves.into_iter().flat_map(nodes_on).collect();
        if has_room(&area) && !found.contains(&area) && is_safe(&area) {
            found.push(area);
        }
    }
    found
}
