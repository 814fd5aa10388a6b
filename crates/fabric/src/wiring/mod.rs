//! Wirings: which cables exist between switches, and which of them a set of nodes may use.

mod dragonfly;
mod group_shape;
mod link_set;

pub(crate) use dragonfly::check_group;
pub use dragonfly::{Dragonfly, GroupPart};
pub(crate) use group_shape::GroupShape;
pub use group_shape::SwitchSet;
pub use link_set::LinkSet;

use crate::description::WiringDescription;
use crate::error::InputError;
use crate::fabric::{Fabric, NodeIndex};

/// The cables between the switches of a machine. See docs/explanation/wirings.md.
#[derive(Debug, Clone, Default)]
pub enum Wiring {
    /// A fat tree at each site. The cabling of its levels says everything ([`Fabric::cabling`]).
    #[default]
    Tree,
    /// Groups of switches joined all to all.
    Dragonfly(Box<Dragonfly>),
}

impl Wiring {
    /// Builds the wiring of a fabric whose groups and nodes are there.
    pub(crate) fn build(
        description: &WiringDescription,
        fabric: &Fabric,
    ) -> Result<Wiring, InputError> {
        match description {
            WiringDescription::Tree => Ok(Wiring::Tree),
            WiringDescription::Dragonfly(dragonfly) => {
                Dragonfly::build(dragonfly, fabric).map(Box::new).map(Wiring::Dragonfly)
            }
        }
    }

    /// The name of the kind of wiring: `tree` or `dragonfly`.
    pub fn name(&self) -> &'static str {
        match self {
            Wiring::Tree => "tree",
            Wiring::Dragonfly(_) => "dragonfly",
        }
    }

    /// Whether the wiring is a tree at each site.
    #[inline]
    pub fn is_tree(&self) -> bool {
        matches!(self, Wiring::Tree)
    }

    /// The dragonfly, if it is one.
    pub fn dragonfly(&self) -> Option<&Dragonfly> {
        match self {
            Wiring::Tree => None,
            Wiring::Dragonfly(dragonfly) => Some(dragonfly),
        }
    }
}

impl Fabric {
    /// Returns the machine for a live system.
    ///
    /// # Errors
    /// It is not a tree: what the drivers publish about links is about uplinks of groups.
    pub fn for_live_system(self) -> Result<Fabric, InputError> {
        if self.wiring().is_tree() {
            return Ok(self);
        }
        let kind = self.wiring().name();
        Err(InputError::whole(format!(
            "the machine is a {kind}, but live systems take only trees so far"
        )))
    }

    /// All directed links between switches that a job on these nodes may use. Empty on a tree, where the groups that
    /// the job crosses say the same.
    pub fn links_of(&self, nodes: &[NodeIndex]) -> LinkSet {
        match self.wiring() {
            Wiring::Tree => LinkSet::default(),
            Wiring::Dragonfly(dragonfly) => dragonfly
                .links_of(&dragonfly.parts_of(nodes.iter().map(|&node| self.group(1, node)))),
        }
    }

    /// The number of words over which the bits of [`LinkSet`]s are spread; 0 on a tree.
    pub fn link_words(&self) -> u32 {
        self.wiring().dragonfly().map_or(0, Dragonfly::link_words)
    }

    /// The number of directed cables in a set of links.
    pub fn cables_in(&self, links: &LinkSet) -> u32 {
        self.wiring().dragonfly().map_or(0, |dragonfly| dragonfly.cables_in(links))
    }

    /// Hops between the switches of two nodes on a wiring that is not a tree.
    pub(crate) fn wired_hops(&self, a: NodeIndex, b: NodeIndex) -> Option<u32> {
        let dragonfly = self.wiring().dragonfly()?;
        let switch = |node| dragonfly.switch_of_leaf(self.group(1, node));
        Some(dragonfly.hops(switch(a), switch(b)))
    }
}
