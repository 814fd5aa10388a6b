//! Links and hops by the wiring.

use super::Fabric;
use crate::ids::{CableId, NodeIndex};
use crate::wiring::{Leaves, LinkSet};

impl Fabric {
    /// The switches with nodes, for a wiring that is laid over them.
    pub(super) fn leaves(&self) -> Leaves<'_> {
        let names = |level| (0..self.groups(level)).map(move |group| self.group_name(level, group));
        let groups = if self.depth() < 2 { 0 } else { self.groups(2) };
        Leaves {
            machine: self.name(),
            nodes: self.nodes(),
            depth: self.depth(),
            is_even: self.sites() == 1 && !self.is_padded(),
            names: names(1).collect(),
            groups: (0..groups)
                .map(|group| (self.group_name(2, group), self.children(2, group)))
                .collect(),
        }
    }

    /// All directed links between switches that a job on these nodes may use. Empty on a tree, where the groups that
    /// the job crosses say the same.
    pub fn links_of(&self, nodes: &[NodeIndex]) -> LinkSet {
        self.wiring().links_of(nodes.iter().map(|&node| self.group(1, node)))
    }

    /// The links that a job on these nodes of a dragonfly may use if its messages between two groups keep to these cables.
    /// Where none of them joins two of its groups, they may take any cable. On other wirings, [`Fabric::links_of`].
    pub fn links_over(&self, nodes: &[NodeIndex], cables: &[CableId]) -> LinkSet {
        let Some(dragonfly) = self.wiring().dragonfly() else { return self.links_of(nodes) };
        if cables.is_empty() {
            return self.links_of(nodes);
        }
        let below = self.links() - dragonfly.cables();
        let lanes = cables.iter().filter_map(|cable| cable.checked_sub(below));
        let parts = dragonfly.parts_of(nodes.iter().map(|&node| self.group(1, node)));
        dragonfly.links_over(&parts, &dragonfly.lanes_with(lanes))
    }

    /// The cables of some lanes of a dragonfly, ascending.
    pub fn cables_of_lanes(&self, lanes: &LinkSet) -> Vec<CableId> {
        let Some(dragonfly) = self.wiring().dragonfly().filter(|_| !lanes.is_empty()) else {
            return Vec::new();
        };
        let below = self.links() - dragonfly.cables();
        dragonfly.cables_of_lanes(lanes).into_iter().map(|cable| below + cable).collect()
    }

    /// All links that jobs on some of these nodes may use, whichever they take. More than [`Fabric::links_of`] in a pod
    /// of cubes only.
    pub fn links_of_any(&self, nodes: &[NodeIndex]) -> LinkSet {
        self.wiring().links_of_any(nodes.iter().map(|&node| self.group(1, node)))
    }

    /// The number of words over which the bits of [`LinkSet`]s are spread; 0 on a tree.
    pub fn link_words(&self) -> u32 {
        self.wiring().link_words()
    }

    /// The number of directed cables in a set of links.
    pub fn cables_in(&self, links: &LinkSet) -> u32 {
        self.wiring().cables_in(links)
    }
}
