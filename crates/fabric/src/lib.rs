//! Machines: fat trees of any depth, dragonflies, tori, HyperX, sites, and the inside of nodes.
//!
//! A reader turns text into a [`Description`]. [`Fabric::build`] checks it and builds arrays that all other parts share
//! read-only.

mod check;
mod description;
mod error;
mod fabric;
mod hostlist;
mod ids;
mod join;
mod link;
mod node_kind;
mod nodeset;
mod presets;
pub mod read;
pub mod resources;
mod route;
mod routing;
mod scramble;
mod wiring;
pub mod write;

pub use description::{
    Cabling, Children, Description, Detours, DomainDescription, DragonflyDescription, Group,
    HyperXDescription, MissingCable, NodeDescription, SiteDescription, SwitchCable,
    TorusDescription, WanDescription, WiringDescription,
};
pub use error::{InputError, is_printable, printable, shown};
pub use fabric::{BlockIndex, CrossRail, DomainIndex, Fabric, RailRoute};
pub use hostlist::{compress, expand};
pub use ids::{CableId, GroupIndex, NodeIndex};
pub use join::{Joined, join};
pub use link::{Channel, Direction, Link, Route};
pub use node_kind::{NodeKind, Penalty};
pub use nodeset::NodeSet;
pub use presets::{PRESETS, fat_tree, pgft, preset};
pub use routing::{
    AdaptiveRouting, BuiltRouting, DEFAULT_ROUTING, DedicatedRouting, Fixed, GridRouting,
    HashedRouting, JobLinks, ROUTINGS, RememberedRoutes, RouteStep, Routing, RoutingArguments,
    RoutingInfo, Rule, Service, SplitTable, Splits, SpreadRouting, SwitchPlace, Tables,
    Unreachable, routing, routing_named,
};
pub use scramble::scramble;
pub use wiring::{Dragonfly, GroupPart, HyperX, Lane, LinkSet, Prism, SwitchSet, Torus, Wiring};
