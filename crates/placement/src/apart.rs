//! Nodes whose links no other job uses, on wirings that are not trees.

use topolane_fabric::{Fabric, NodeIndex, Wiring};

use crate::free_slots::FreeSlots;
use crate::link_load::LinkLoad;
use crate::occupancy::Occupancy;
use crate::refusal::Refusal;
use crate::request::Request;
use crate::{dragonfly, hyperx, torus};

/// Which links no other job may use. Whatever is promised to a job, it keeps off the links that others have to themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Promise {
    /// The links between groups of a dragonfly; elsewhere all links.
    BetweenGroups,
    /// All links.
    AllLinks,
}

/// The links that a job must not use. A wiring without groups has them all between groups.
#[derive(Clone, Copy)]
pub(crate) struct LinksToAvoid<'a> {
    /// Between groups.
    pub between: &'a LinkLoad,
    /// Inside groups.
    pub inside: &'a LinkLoad,
}

impl<'a> LinksToAvoid<'a> {
    /// The links that a job with this promise must not use; `None` on a tree.
    pub fn of(promise: Promise, occupancy: &'a Occupancy) -> Option<Self> {
        let between = occupancy.used_links()?;
        let inside = match promise {
            Promise::AllLinks => between,
            Promise::BetweenGroups => occupancy.owned_links()?,
        };
        Some(LinksToAvoid { between, inside })
    }

    /// Whether a job on all these nodes uses none of them.
    pub fn are_avoided(&self, fabric: &Fabric, nodes: &[NodeIndex]) -> bool {
        let links = fabric.links_of(nodes);
        let words = links.words();
        let dragonfly = fabric.wiring().dragonfly();
        let between = dragonfly.map_or(words, |dragonfly| dragonfly.between_groups(&links));
        let (inside, _) = words.split_at(words.len() - between.len());
        !self.between.meets(between) && !self.inside.meets(inside)
    }
}

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
