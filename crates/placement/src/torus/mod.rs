//! Searches for nodes of a torus whose links no other job uses.

mod cubes;
mod grid;
mod no_prism;
mod prisms;

use topolane_fabric::{NodeIndex, Torus};

use crate::free_slots::FreeSlots;
use crate::kept_bound::MostSlots;
use crate::link_load::LinkLoad;
use grid::Grid;

/// Nodes such that a job on them uses none of the links that others use: on one router if possible, else in a prism, else, in
/// a pod, in several cubes. The job need not take all nodes of its prism. If there is no such prism, or the search reached its
/// bound: the most slots that any can have.
pub(crate) fn nodes(
    torus: &Torus,
    used: &LinkLoad,
    free: &FreeSlots<'_>,
    wanted: u32,
) -> Result<Vec<NodeIndex>, MostSlots> {
    Search { torus, free, used, wanted }.nodes()
}

struct Search<'a> {
    torus: &'a Torus,
    free: &'a FreeSlots<'a>,
    /// The links that other jobs may use.
    used: &'a LinkLoad,
    wanted: u32,
}

impl Search<'_> {
    fn nodes(&self) -> Result<Vec<NodeIndex>, MostSlots> {
        let most = self.free.largest(1);
        if most == 0 {
            return Err(MostSlots::UNKNOWN);
        }
        let grid = Grid::new(self, most);
        if most >= self.wanted {
            let router = grid.lone_router().ok_or(MostSlots::UNKNOWN)?;
            return Ok(self.taken([router]));
        }
        let routers = self.wanted.div_ceil(most);
        let no_prism = match grid.prism(routers) {
            Ok(prism) => return Ok(self.taken(prism.routers(self.torus))),
            Err(no_prism) => no_prism,
        };
        if self.torus.is_pod() {
            let routers = cubes::routers(&grid).ok_or(MostSlots::UNKNOWN)?;
            return Ok(self.taken(routers));
        }
        Err(no_prism
            .map_or(MostSlots::UNKNOWN, |routers| MostSlots::of(routers.saturating_mul(most))))
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
