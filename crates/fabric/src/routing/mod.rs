//! Which route traffic takes: one file per rule, one line each in [`ROUTINGS`].

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

pub use adaptive::Adaptive;
pub use dedicated::{Dedicated, JobLinks, Service};
pub use fixed::Fixed;
pub use remembered::Remembered;
pub(crate) use routes::above;
pub use routes::{Step, SwitchPlace};
pub use rule::Rule;
pub use tables::Tables;
pub(crate) use tables::{Fault, Hop, NO_PORT, PORTS, To};

/// The routes between the nodes of one machine.
pub trait Routing: fmt::Debug + Send + Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// The machine.
    fn fabric(&self) -> &Arc<Fabric>;

    /// Number of channels; they are numbered from 0. Unless a routing spreads its traffic, a channel
    /// is one direction of one link.
    fn channels(&self) -> u32 {
        2 * self.fabric().links()
    }

    /// Bandwidth of a channel, bytes per second.
    fn capacity(&self, channel: Channel) -> f64;

    /// The links that make up a channel; each carries an equal share of its load.
    fn links(&self, channel: Channel) -> Vec<Link> {
        vec![link_of(channel)]
    }

    /// Appends the channels from one node to another in order, node links included; nothing from
    /// a node to itself, and nothing between nodes of one domain, which do not use the tree
    /// ([`Fabric::share_domain`]).
    ///
    /// # Errors
    /// Two nodes that no route joins; nothing is appended then.
    fn path(
        &self,
        from: NodeIndex,
        to: NodeIndex,
        path: &mut Vec<Channel>,
    ) -> Result<(), Unreachable>;

    /// Whether the routes from the nodes of a leaf to a node differ in their first channel only, which is the same to all nodes.
    fn by_leaf(&self) -> bool {
        false
    }

    /// Whether traffic on different rails takes different channels. If not, [`Routing::rail_path`] is the same on all.
    fn distinguishes_rails(&self) -> bool {
        false
    }

    /// As [`Routing::path`], from the adapter that one node has on rail `rails.0` to the one that the other has on rail
    /// `rails.1`. Between different rails the data first goes over NVLink inside a node, if that way is whole
    /// ([`CrossRail::NvLink`](crate::CrossRail::NvLink)).
    ///
    /// # Errors
    /// Two adapters that no route joins; nothing is appended then.
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

/// Two nodes that no route joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreachable {
    /// Where the route should begin.
    pub from: NodeIndex,
    /// Where it should end.
    pub to: NodeIndex,
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no route leads from node {} to node {}", self.from, self.to)
    }
}

impl Unreachable {
    /// The same with the names of the nodes.
    pub fn on(&self, fabric: &Fabric) -> String {
        let name = |node| fabric.node_name(node);
        format!("no route leads from node {} to node {}", name(self.from), name(self.to))
    }
}

impl std::error::Error for Unreachable {}

/// A routing that can be asked for by name.
pub struct RoutingInfo {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Builds it; the seed matters to those that draw at random.
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
        build: |fabric, _| Box::new(Adaptive::new(fabric)),
    },
];

/// The routing of that name; `None` where there is none.
pub fn routing(name: &str, fabric: &Arc<Fabric>, seed: u64) -> Option<Box<dyn Routing>> {
    let info = ROUTINGS.iter().find(|info| info.name == name)?;
    Some((info.build)(Arc::clone(fabric), seed))
}
