//! Wirings: which cables exist between switches, and which of them a set of nodes may use.

mod dragonfly;
mod grid_leaves;
mod group_shape;
mod hyperx;
mod hyperx_links;
mod leaves;
mod link_set;
mod prisms;
mod torus;
mod torus_links;

pub(crate) use dragonfly::check_group;
pub use dragonfly::{Dragonfly, GroupPart, Lane};
pub(crate) use grid_leaves::times;
pub(crate) use group_shape::GroupShape;
pub use group_shape::SwitchSet;
pub use hyperx::HyperX;
pub(crate) use hyperx::check_hyperx;
pub(crate) use leaves::Leaves;
pub use link_set::LinkSet;
pub use prisms::Prism;
pub use torus::Torus;
pub(crate) use torus::check_torus;

use crate::description::{SwitchCable, WiringDescription};
use crate::error::InputError;
use crate::ids::{CableId, GroupIndex};

/// The cables between the switches of a machine. See docs/explanation/wirings.md.
#[derive(Debug, Clone, Default)]
pub enum Wiring {
    /// A fat tree at each site. The cabling of its levels says everything ([`crate::Fabric::cabling`]).
    #[default]
    Tree,
    /// Groups of switches joined all to all.
    Dragonfly(Box<Dragonfly>),
    /// Routers at the points of a grid, joined along each dimension.
    Torus(Box<Torus>),
    /// Switches at the points of a grid, joined all to all along each dimension.
    HyperX(Box<HyperX>),
}

impl Wiring {
    /// Lays the cables between the switches of a hierarchy.
    pub(crate) fn build(
        description: &WiringDescription,
        leaves: &Leaves<'_>,
    ) -> Result<Wiring, InputError> {
        match description {
            WiringDescription::Tree => Ok(Wiring::Tree),
            WiringDescription::Dragonfly(dragonfly) => {
                Dragonfly::build(dragonfly, leaves).map(Box::new).map(Wiring::Dragonfly)
            }
            WiringDescription::Torus(torus) => {
                Torus::build(torus, leaves).map(Box::new).map(Wiring::Torus)
            }
            WiringDescription::HyperX(hyperx) => {
                HyperX::build(hyperx, leaves).map(Box::new).map(Wiring::HyperX)
            }
        }
    }

    /// The name of the kind of wiring: `tree`, `dragonfly`, `torus` or `HyperX`.
    pub fn name(&self) -> &'static str {
        match self {
            Wiring::Tree => "tree",
            Wiring::Dragonfly(_) => "dragonfly",
            Wiring::Torus(_) => "torus",
            Wiring::HyperX(_) => "HyperX",
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
            Wiring::Dragonfly(dragonfly) => Some(dragonfly),
            _ => None,
        }
    }

    /// The torus, if it is one.
    pub fn torus(&self) -> Option<&Torus> {
        match self {
            Wiring::Torus(torus) => Some(torus),
            _ => None,
        }
    }

    /// The HyperX, if it is one.
    pub fn hyperx(&self) -> Option<&HyperX> {
        match self {
            Wiring::HyperX(hyperx) => Some(hyperx),
            _ => None,
        }
    }

    /// The number of cables between switches of a wiring that is not a tree.
    pub(crate) fn cables(&self) -> u32 {
        match self {
            Wiring::Tree => 0,
            Wiring::Dragonfly(dragonfly) => dragonfly.cables(),
            Wiring::Torus(torus) => torus.cables(),
            Wiring::HyperX(hyperx) => hyperx.cables(),
        }
    }

    /// The ends of a cable between switches of a wiring that is not a tree, counted from 0.
    pub(crate) fn cable(&self, cable: CableId) -> Option<SwitchCable> {
        match self {
            Wiring::Tree => None,
            Wiring::Dragonfly(dragonfly) => dragonfly.cable(cable),
            Wiring::Torus(torus) => torus.cable(cable),
            Wiring::HyperX(hyperx) => hyperx.cable(cable),
        }
    }

    /// The name of a switch of a wiring that is not a tree.
    pub(crate) fn switch_name(&self, switch: u32) -> &str {
        match self {
            Wiring::Tree => "",
            Wiring::Dragonfly(dragonfly) => dragonfly.switch_name(switch),
            Wiring::Torus(torus) => torus.router_name(switch),
            Wiring::HyperX(hyperx) => hyperx.switch_name(switch),
        }
    }

    /// All directed links between switches that a job on nodes of these leaves may use. Empty on a tree.
    pub(crate) fn links_of(&self, leaves: impl Iterator<Item = GroupIndex>) -> LinkSet {
        match self {
            Wiring::Tree => LinkSet::default(),
            Wiring::Dragonfly(dragonfly) => dragonfly.links_of(&dragonfly.parts_of(leaves)),
            Wiring::Torus(torus) => torus.links_of(leaves.map(|leaf| torus.router_of_leaf(leaf))),
            Wiring::HyperX(hyperx) => {
                hyperx.links_of(leaves.map(|leaf| hyperx.switch_of_leaf(leaf)))
            }
        }
    }

    /// All links that jobs on nodes of some of these leaves may use, whichever. Empty on a tree.
    pub(crate) fn links_of_any(&self, leaves: impl Iterator<Item = GroupIndex>) -> LinkSet {
        match self {
            Wiring::Torus(torus) => {
                torus.links_of_any(leaves.map(|leaf| torus.router_of_leaf(leaf)))
            }
            Wiring::Tree | Wiring::Dragonfly(_) | Wiring::HyperX(_) => self.links_of(leaves),
        }
    }

    /// The number of words over which the bits of [`LinkSet`]s are spread; 0 on a tree.
    pub(crate) fn link_words(&self) -> u32 {
        match self {
            Wiring::Tree => 0,
            Wiring::Dragonfly(dragonfly) => dragonfly.link_words(),
            Wiring::Torus(torus) => torus.link_words(),
            Wiring::HyperX(hyperx) => hyperx.link_words(),
        }
    }

    /// The number of directed cables in a set of links.
    pub(crate) fn cables_in(&self, links: &LinkSet) -> u32 {
        match self {
            Wiring::Tree => 0,
            Wiring::Dragonfly(dragonfly) => dragonfly.cables_in(links),
            Wiring::Torus(torus) => torus.cables_in(links),
            Wiring::HyperX(hyperx) => hyperx.cables_in(links),
        }
    }

    /// Hops between the switches of two leaves on a wiring that is not a tree.
    pub(crate) fn hops(&self, a: GroupIndex, b: GroupIndex) -> Option<u32> {
        match self {
            Wiring::Tree => None,
            Wiring::Dragonfly(dragonfly) => {
                Some(dragonfly.hops(dragonfly.switch_of_leaf(a), dragonfly.switch_of_leaf(b)))
            }
            Wiring::Torus(torus) => {
                Some(torus.hops(torus.router_of_leaf(a), torus.router_of_leaf(b)))
            }
            Wiring::HyperX(hyperx) => {
                Some(hyperx.hops(hyperx.switch_of_leaf(a), hyperx.switch_of_leaf(b)))
            }
        }
    }
}
