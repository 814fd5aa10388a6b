//! Searches for nodes of a torus whose links no other job uses.

mod cubes;
mod grid;
mod no_prism;
mod prisms;

use topolane_fabric::{NodeIndex, Torus};

use crate::free_slots::FreeSlots;
use crate::link_load::LinkLoad;
use crate::occupancy::Occupancy;
use crate::refusal::Refusal;
use crate::request::Request;
use grid::Grid;

/// Returns nodes for a request such that no other job uses their links: on one router if possible, else in a prism, else,
/// in a pod, in several cubes. The job need not take all nodes of its prism.
///
/// # Errors
/// There is no such prism, or the search reached its bound; the request has members elsewhere.
pub(crate) fn nodes_in_prism(
    request: &Request,
    free: &FreeSlots<'_>,
    occupancy: &Occupancy,
) -> Result<Vec<NodeIndex>, Refusal> {
    let refuse = || free.would_share_links(request);
    let Some(torus) = free.fabric().wiring().torus() else { return Err(refuse()) };
    let Some(used) = occupancy.used_links() else { return Err(refuse()) };
    if !request.members.is_empty() || request.beyond > 0 {
        return Err(refuse());
    }
    let free = &*free.unshared(request, occupancy);
    let search = Search { torus, free, used, wanted: request.nodes };
    let nodes = search.nodes().ok_or_else(refuse)?;
    // The search reasons about prisms; this asks for the links of the nodes.
    let links = free.fabric().links_of(&nodes);
    debug_assert!(!used.meets(links.words()), "the search keeps its promise");
    if used.meets(links.words()) { Err(refuse()) } else { Ok(nodes) }
}

struct Search<'a> {
    torus: &'a Torus,
    free: &'a FreeSlots<'a>,
    /// The links that other jobs may use.
    used: &'a LinkLoad,
    wanted: u32,
}

impl Search<'_> {
    fn nodes(&self) -> Option<Vec<NodeIndex>> {
        let most = self.free.largest(1);
        let grid = Grid::new(self, most);
        if most >= self.wanted {
            return Some(self.taken([grid.lone_router()?]));
        }
        let routers = self.wanted.div_ceil(most.max(1));
        if let Some(prism) = grid.prism(routers) {
            return Some(self.taken(prism.routers(self.torus)));
        }
        if self.torus.is_pod() {
            cubes::routers(&grid).map(|routers| self.taken(routers))
        } else {
            None
        }
    }

    /// The slots of these routers, in this order, up to the number that the job wants; ascending.
    fn taken(&self, routers: impl IntoIterator<Item = u32>) -> Vec<NodeIndex> {
        let mut nodes = Vec::with_capacity(self.wanted as usize);
        for router in routers {
            let left = self.wanted - nodes.len() as u32;
            if left == 0 {
                break;
            }
            if let Some(leaf) = self.torus.leaf_of_router(router) {
                self.free.take(1, leaf, left, &mut nodes);
            }
        }
        nodes.sort_unstable();
        nodes
    }

    /// The free slots of a router.
    fn slots(&self, router: u32) -> u32 {
        self.torus.leaf_of_router(router).map_or(0, |leaf| self.free.count(1, leaf))
    }
}
