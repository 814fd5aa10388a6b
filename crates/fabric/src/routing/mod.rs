//! Routings: which route traffic takes. One file per rule, one line each in [`ROUTINGS`].

mod adaptive;
mod dedicated;
mod dragonfly;
mod fixed;
mod grid;
mod node_channels;
mod remembered;
mod routes;
pub(crate) mod rule;
mod splits;
mod tables;

use std::fmt;
use std::sync::Arc;

use crate::error::{InputError, shown};
use crate::fabric::Fabric;
use crate::ids::NodeIndex;
use crate::link::{Channel, Link, link_of};
use crate::wiring::{Dragonfly, Wiring};

pub use adaptive::AdaptiveRouting;
pub use dedicated::{DedicatedRouting, JobLinks, Service};
pub use dragonfly::{HashedRouting, SpreadRouting};
pub use fixed::Fixed;
pub use grid::GridRouting;
pub use remembered::RememberedRoutes;
pub(crate) use routes::above;
pub use routes::{RouteStep, SwitchPlace};
pub use rule::Rule;
pub use splits::{SplitTable, Splits};
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

    /// The sets of channels that routes name where this routing divides traffic. Most routings have none.
    fn splits(&self) -> Splits {
        Splits::default()
    }

    /// The links that make up a channel; each carries a share of its load, in proportion to its bandwidth.
    fn links(&self, channel: Channel) -> Vec<Link> {
        vec![link_of(channel)]
    }

    /// Appends the channels, and [splits](Routing::splits), from one node to another, including the links of the nodes: a
    /// node's own link first, the other's last. Appends nothing from
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
    /// The kinds of wiring on which it works, by their names.
    pub wirings: &'static [&'static str],
    /// What the routing does, in one line.
    pub summary: &'static str,
    /// Whether the name may have a parameter: `name(fraction=F)`.
    pub has_fraction: bool,
    /// Builds the routing.
    pub build: fn(fabric: Arc<Fabric>, arguments: RoutingArguments) -> BuiltRouting,
}

/// The parameters of a routing.
#[derive(Debug, Clone, Copy)]
pub struct RoutingArguments {
    /// The seed of routings that draw at random.
    pub seed: u64,
    /// The part of the traffic to which the routing applies, from 0 to 1; `None` if it is not given.
    pub fraction: Option<f64>,
}

/// A routing, or why there is none.
pub type BuiltRouting = Result<Box<dyn Routing>, InputError>;

/// The name that stands for the first routing of a machine's wiring in [`ROUTINGS`].
pub const DEFAULT_ROUTING: &str = "default";

/// All routings that need no tables. The first of each kind of wiring is its default.
pub const ROUTINGS: &[RoutingInfo] = &[
    RoutingInfo {
        name: "d-mod-k",
        wirings: &["tree"],
        summary: "static, the port by the destination (what a fat-tree subnet manager installs)",
        has_fraction: false,
        build: |fabric, _| Ok(Box::new(Fixed::new(fabric, Rule::DestinationModK))),
    },
    RoutingInfo {
        name: "s-mod-k",
        wirings: &["tree"],
        summary: "static, the port by the source",
        has_fraction: false,
        build: |fabric, _| Ok(Box::new(Fixed::new(fabric, Rule::SourceModK))),
    },
    RoutingInfo {
        name: "random",
        wirings: &["tree"],
        summary: "static, a port drawn for every pair, seeded",
        has_fraction: false,
        build: |fabric, RoutingArguments { seed, .. }| {
            Ok(Box::new(Fixed::new(fabric, Rule::Random { seed })))
        },
    },
    RoutingInfo {
        name: "adaptive",
        wirings: &["tree"],
        summary: "ideal: spread evenly over all shortest routes",
        has_fraction: false,
        build: |fabric, _| Ok(Box::new(AdaptiveRouting::new(fabric))),
    },
    RoutingInfo {
        name: "minimal",
        wirings: &["dragonfly", "HyperX"],
        summary: "spread evenly over all minimal routes",
        has_fraction: false,
        build: |fabric, _| match fabric.wiring() {
            Wiring::HyperX(_) => Ok(Box::new(GridRouting::in_all_orders(fabric)?)),
            _ => Ok(Box::new(SpreadRouting::new(fabric, "minimal".to_owned(), 0.0)?)),
        },
    },
    RoutingInfo {
        name: "minimal-hashed",
        wirings: &["dragonfly"],
        summary: "static, one minimal route by a hash of the source's switch and the destination, seeded",
        has_fraction: false,
        build: |fabric, RoutingArguments { seed, .. }| {
            Ok(Box::new(HashedRouting::new(fabric, seed)?))
        },
    },
    RoutingInfo {
        name: "valiant",
        wirings: &["dragonfly"],
        summary: "over a group drawn from all; valiant(fraction=F): for the part F of all bytes, minimal for others",
        has_fraction: true,
        build: |fabric, RoutingArguments { fraction, .. }| {
            let name = match fraction {
                Some(fraction) => format!("valiant(fraction={fraction})"),
                None => "valiant".to_owned(),
            };
            Ok(Box::new(SpreadRouting::new(fabric, name, fraction.unwrap_or(1.0))?))
        },
    },
    RoutingInfo {
        name: "dimension-order",
        wirings: &["torus", "HyperX"],
        summary: "one dimension after another, in order; half each way around a ring if both are equally short",
        has_fraction: false,
        build: |fabric, _| Ok(Box::new(GridRouting::in_order(fabric)?)),
    },
];

/// Returns the routing of this name: one of [`ROUTINGS`], if need be with a fraction, or [`DEFAULT_ROUTING`]. The default of
/// a dragonfly with [`Detours`](crate::Detours) is Valiant's for their part of the bytes.
///
/// # Errors
/// An unknown name, a fraction that is none, or a routing of another wiring.
pub fn routing(name: &str, fabric: &Arc<Fabric>, seed: u64) -> BuiltRouting {
    let kind = fabric.wiring().name();
    let detours = fabric.wiring().dragonfly().and_then(Dragonfly::detours);
    let (info, fraction) = match (routing_named(name)?, detours) {
        (Some(named), _) => named,
        (None, Some(detours)) => {
            return routing(&format!("valiant(fraction={})", detours.part), fabric, seed);
        }
        (None, None) => match ROUTINGS.iter().find(|info| info.wirings.contains(&kind)) {
            Some(info) => (info, None),
            None => return Err(InputError::whole(format!("no routing is for a {kind}"))),
        },
    };
    if !info.wirings.contains(&kind) {
        let known: Vec<&str> = ROUTINGS
            .iter()
            .filter(|info| info.wirings.contains(&kind))
            .map(|info| info.name)
            .collect();
        return Err(InputError::whole(format!(
            "routing {} needs a {}, but {} is a {kind}: take one of {}",
            info.name,
            info.wirings.join(" or a "),
            fabric.name(),
            known.join(", ")
        )));
    }
    (info.build)(Arc::clone(fabric), RoutingArguments { seed, fraction })
}

/// Parses the name of a routing: the routing and its fraction, or `None` for the default.
///
/// # Errors
/// An unknown name, or a fraction that is none.
pub fn routing_named(
    text: &str,
) -> Result<Option<(&'static RoutingInfo, Option<f64>)>, InputError> {
    if text == DEFAULT_ROUTING {
        return Ok(None);
    }
    let (name, arguments) =
        text.split_once('(').map_or((text, None), |(name, rest)| (name, Some(rest)));
    let info = ROUTINGS.iter().find(|info| info.name == name.trim()).ok_or_else(|| {
        let names: Vec<&str> = ROUTINGS.iter().map(|info| info.name).collect();
        InputError::whole(format!(
            "unknown routing {}; there are {DEFAULT_ROUTING}, {}",
            shown(text),
            names.join(", ")
        ))
    })?;
    let Some(arguments) = arguments else { return Ok(Some((info, None))) };
    let fraction = arguments.trim().strip_suffix(')').and_then(|inside| {
        let (key, value) = inside.split_once('=')?;
        let value = value.trim().parse::<f64>().ok().filter(|value| (0.0..=1.0).contains(value))?;
        (info.has_fraction && key.trim() == "fraction").then_some(value)
    });
    let fraction = fraction.ok_or_else(|| {
        let form = if info.has_fraction { "(fraction=F), with F from 0 to 1" } else { "" };
        InputError::whole(format!("routing {} is not {}{form}", shown(text), info.name))
    })?;
    Ok(Some((info, Some(fraction))))
}
