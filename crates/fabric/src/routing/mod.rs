//! Routings: which route traffic takes. One file per rule, one line each in [`ROUTINGS`].

mod adaptive;
mod dedicated;
mod fixed;
mod remembered;
mod routes;
pub(crate) mod rule;
mod tables;

use std::fmt;
use std::sync::Arc;

use crate::fabric::{Fabric, NodeIndex};
use crate::link::{Channel, Link, link_of};

pub use adaptive::AdaptiveRouting;
pub use dedicated::{DedicatedRouting, JobLinks, Service};
pub use fixed::Fixed;
pub use remembered::RememberedRoutes;
pub(crate) use routes::above;
pub use routes::{RouteStep, SwitchPlace};
pub use rule::Rule;
pub use tables::Tables;
pub(crate) use tables::{Hop, NO_PORT, NextDevice, PORTS, RouteFault};

/// The routes between the nodes of one machine.
pub trait Routing: fmt::Debug + Send + Sync {
    /// The name of the routing.
    fn name(&self) -> &str;

    /// The machine.
    fn fabric(&self) -> &Arc<Fabric>;

    /// The number of channels; they are numbered from 0. Unless a routing spreads traffic, a channel is one direction
    /// of one link.
    fn channels(&self) -> u32 {
        2 * self.fabric().links()
    }

    /// Bandwidth of a channel in bytes per second.
    fn capacity(&self, channel: Channel) -> f64;

    /// The links that make up a channel; each carries an equal share of its load.
    fn links(&self, channel: Channel) -> Vec<Link> {
        vec![link_of(channel)]
    }

    /// Appends the channels from one node to another, in order, including the links of the nodes. Appends nothing from
    /// a node to itself, or between nodes of one domain, which do not use the tree ([`Fabric::share_domain`]).
    ///
    /// # Errors
    /// No route connects the nodes; nothing is appended then.
    fn path(
        &self,
        from: NodeIndex,
        to: NodeIndex,
        path: &mut Vec<Channel>,
    ) -> Result<(), Unreachable>;

    /// Whether all nodes of a leaf use the same route to a destination except for their own link, and each node's own
    /// link is the same for all destinations.
    fn by_leaf(&self) -> bool {
        false
    }

    /// Whether traffic on different rails uses different channels. If not, [`Routing::rail_path`] gives the same path
    /// for all rails.
    fn distinguishes_rails(&self) -> bool {
        false
    }

    /// Appends the channels from one node's adapter on rail `rails.0` to the other's adapter on rail `rails.1`, as
    /// [`Routing::path`] does. Between different rails, the data first goes over NVLink inside a node, if that route is
    /// complete ([`CrossRail::NvLink`](crate::CrossRail::NvLink)).
    ///
    /// # Errors
    /// No route connects the adapters; nothing is appended then.
    fn rail_path(
        &self,
        (from, to): (NodeIndex, NodeIndex),
        rails: (u32, u32),
        path: &mut Vec<Channel>,
    ) -> Result<(), Unreachable> {
        let _ = rails;
        self.path(from, to, path)
    }
}

/// The error for two nodes without a route between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreachable {
    /// The first node of the route.
    pub from: NodeIndex,
    /// The last node of the route.
    pub to: NodeIndex,
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no route leads from node {} to node {}", self.from, self.to)
    }
}

impl Unreachable {
    /// Returns the error as a sentence with the names of the nodes.
    pub fn on(&self, fabric: &Fabric) -> String {
        let name = |node| fabric.node_name(node);
        format!("no route leads from node {} to node {}", name(self.from), name(self.to))
    }
}

impl std::error::Error for Unreachable {}

/// A registered routing.
pub struct RoutingInfo {
    /// The name of the routing.
    pub name: &'static str,
    /// What the routing does, in one line.
    pub summary: &'static str,
    /// Builds the routing; only routings that draw at random use the seed.
    pub build: fn(fabric: Arc<Fabric>, seed: u64) -> Box<dyn Routing>,
}

/// All routings that need no tables.
pub const ROUTINGS: &[RoutingInfo] = &[
    RoutingInfo {
        name: "d-mod-k",
        summary: "static, the port by the destination (what a fat-tree subnet manager installs)",
        build: |fabric, _| Box::new(Fixed::new(fabric, Rule::DestinationModK)),
    },
    RoutingInfo {
        name: "s-mod-k",
        summary: "static, the port by the source",
        build: |fabric, _| Box::new(Fixed::new(fabric, Rule::SourceModK)),
    },
    RoutingInfo {
        name: "random",
        summary: "static, a port drawn for every pair, seeded",
        build: |fabric, seed| Box::new(Fixed::new(fabric, Rule::Random { seed })),
    },
    RoutingInfo {
        name: "adaptive",
        summary: "ideal: spread evenly over all shortest routes",
        build: |fabric, _| Box::new(AdaptiveRouting::new(fabric)),
    },
];

/// Returns the routing of this name; `None` if there is none.
pub fn routing(name: &str, fabric: &Arc<Fabric>, seed: u64) -> Option<Box<dyn Routing>> {
    let info = ROUTINGS.iter().find(|info| info.name == name)?;
    Some((info.build)(Arc::clone(fabric), seed))
}
