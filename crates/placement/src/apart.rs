//! Nodes whose links no other job uses, on wirings that are not trees.

use topolane_fabric::{NodeIndex, Wiring};

use crate::free_slots::FreeSlots;
use crate::occupancy::Occupancy;
use crate::promise::{LinksToAvoid, Promise};
use crate::refusal::Refusal;
use crate::request::Request;
use crate::{dragonfly, hyperx, torus};

/// Returns nodes for a request such that the promise holds: on one switch if possible, else where the search of the wiring
/// finds some.
///
/// # Errors
/// There are no such nodes, or the search reached its bound; the request has members elsewhere; the wiring is a tree.
pub(crate) fn nodes_apart(
    promise: Promise,
    request: &Request,
    free: &FreeSlots<'_>,
    occupancy: &Occupancy,
) -> Result<Vec<NodeIndex>, Refusal> {
    let refuse = || free.would_share_links(request);
    let links = LinksToAvoid::of(promise, occupancy).ok_or_else(refuse)?;
    if !request.members.is_empty() || request.beyond > 0 {
        return Err(refuse());
    }
    let free = &*free.unshared(request, occupancy);
    let nodes = match free.fabric().wiring() {
        Wiring::Tree => None,
        Wiring::Dragonfly(it) => dragonfly::nodes(it, promise, links, free, request.nodes),
        Wiring::Torus(it) => torus::nodes(it, links.between, free, request.nodes),
        Wiring::HyperX(it) => hyperx::nodes(it, links.between, free, request.nodes),
    };
    // A search reasons about parts of the links; this asks for all of them.
    let is_kept = |nodes: &Vec<NodeIndex>| links.are_avoided(free.fabric(), nodes);
    debug_assert!(nodes.as_ref().is_none_or(is_kept), "the search keeps its promise");
    nodes.filter(is_kept).ok_or_else(refuse)
}
