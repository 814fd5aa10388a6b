//! The description of a machine: readers produce it, writers consume it.

use serde::{Deserialize, Serialize};

use crate::node_kind::NodeKind;

/// A whole machine, before it is checked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Description {
    /// Name of the machine, as shown in tables and figures.
    pub name: String,
    /// The sites in order; a machine at one site has one entry.
    pub sites: Vec<SiteDescription>,
    /// Links between sites. A job cannot use two sites that no chain of links connects.
    pub wans: Vec<WanDescription>,
    /// Kinds of node; nodes refer to them by index. Never empty in a valid machine.
    pub kinds: Vec<NodeKind>,
    /// Sets of nodes that a faster network connects. A node is in at most one.
    pub domains: Vec<DomainDescription>,
    /// Block sizes that a scheduler uses for domains (`BlockSizes` of Slurm's topology/block), in nodes and ascending:
    /// the base block, then power-of-two multiples of it. Empty if none are configured.
    pub block_sizes: Vec<u32>,
    /// The cables between switches, if they do not form a tree.
    pub wiring: WiringDescription,
}

/// The cables between the switches of a machine.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum WiringDescription {
    /// Those that the cabling of each site says.
    #[default]
    Tree,
    /// A dragonfly. The machine has one site of three levels: switches with nodes, groups, all. The cabling above the
    /// nodes means nothing.
    Dragonfly(DragonflyDescription),
    /// A torus or mesh. The machine has one site. The cabling above the nodes means nothing.
    Torus(TorusDescription),
    /// A HyperX. The machine has one site. The cabling above the nodes means nothing.
    HyperX(HyperXDescription),
}

/// Routers at the points of a grid, joined along each dimension.
///
/// Routers are numbered with the last dimension fastest; with cubes, cube by cube, and inside a cube likewise.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TorusDescription {
    /// The number of routers in each dimension.
    pub dimensions: Vec<u32>,
    /// For each dimension, whether cables join its ends to rings. Means nothing for fewer than 3 routers.
    pub wrap: Vec<bool>,
    /// The routers of a cube in each dimension, if optical switches join whole faces of cubes in any order; otherwise
    /// empty.
    pub cube: Vec<u32>,
    /// The names of the routers in the order of their numbers. A leaf is the router of its name; other routers have no
    /// nodes. If empty, the leaves of the machine, in order.
    pub routers: Vec<String>,
    /// Bandwidth of a cable of each dimension in each direction, in bytes per second.
    pub bandwidth: Vec<f64>,
}

/// Switches at the points of a grid, joined all to all along each dimension. They are numbered with the last dimension
/// fastest.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HyperXDescription {
    /// The number of switches in each dimension.
    pub dimensions: Vec<u32>,
    /// The number of parallel cables between two switches, for each dimension.
    pub cables: Vec<u32>,
    /// The names of the switches in the order of their numbers. A leaf is the switch of its name; other switches have no
    /// nodes. If empty, the leaves of the machine, in order.
    pub switches: Vec<String>,
    /// Bandwidth of a cable of each dimension in each direction, in bytes per second.
    pub bandwidth: Vec<f64>,
}

impl WiringDescription {
    /// Whether the cabling of each site says all cables.
    pub fn is_tree(&self) -> bool {
        matches!(self, WiringDescription::Tree)
    }
}

/// Groups of switches, and every cable between switches.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DragonflyDescription {
    /// The names of the switches of each group. A leaf is the switch of its name; other switches have no nodes.
    pub groups: Vec<Vec<String>>,
    /// All cables between switches.
    pub cables: Vec<SwitchCable>,
    /// How far the routing of messages between groups adapts to load; `None` if it is minimal.
    pub detours: Option<Detours>,
}

/// A routing that adapts to load, and what jobs keep of the cables between groups under it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Detours {
    /// The most that goes over a third group of the bytes between two groups, as a part of them: over 0, and up to 1. All
    /// groups are third groups equally often.
    pub part: f64,
    /// The share of each cable between its groups that other jobs leave to a job to which links are promised: over 0,
    /// and below 1.
    pub share: f64,
}

/// Parallel cables between two switches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SwitchCable {
    /// The numbers of both switches, counted over all groups in order.
    pub between: (u32, u32),
    /// The number of cables.
    pub count: u32,
    /// Bandwidth of one cable in each direction, in bytes per second.
    pub bandwidth: f64,
}

/// Nodes connected by a network that is faster than the fabric, such as an NVLink domain. They need not be a group of
/// the tree.
#[derive(Debug, Clone, PartialEq)]
pub struct DomainDescription {
    /// Name of the domain, unique among the domains.
    pub name: String,
    /// Names of its nodes.
    pub nodes: Vec<String>,
    /// Bandwidth of each node inside the domain, in each direction, in bytes per second.
    pub bandwidth: f64,
}

/// One site: a tree of groups and the cabling of each of its levels.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteDescription {
    /// The group that holds the whole site; its name is the site's name.
    pub root: Group,
    /// `cabling[l]` joins level `l` to level `l + 1` (0: nodes to leaves). One entry per level.
    pub cabling: Vec<Cabling>,
    /// Cables that the cabling implies but that do not exist.
    pub missing: Vec<MissingCable>,
}

/// The links of one level of a parallel-port generalised fat tree (PGFT; Zahavi 2010).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cabling {
    /// Parent switches of every node or switch of the lower level.
    pub parents: u32,
    /// Parallel cables to each parent.
    pub cables: u32,
    /// Bandwidth of one cable in each direction, in bytes per second.
    pub bandwidth: f64,
    /// Whether all parallel switches of a group lead to the same parents, so that rails meet there. Always false at the
    /// level of the nodes. If false, every parallel switch has parents of its own.
    #[serde(default)]
    pub joined: bool,
}

impl Cabling {
    /// Returns the cabling of a PGFT: every parallel switch has parents of its own.
    pub const fn new(parents: u32, cables: u32, bandwidth: f64) -> Cabling {
        Cabling { parents, cables, bandwidth, joined: false }
    }

    /// Returns the same cabling with joined switches: the parallel switches of a group share their parents.
    #[must_use]
    pub const fn meeting(self) -> Cabling {
        Cabling { joined: true, ..self }
    }

    /// The number of a parent, among the parallel switches of the group above: parent `parent` of switch `switch`.
    #[inline]
    pub const fn upper(&self, switch: u32, parent: u32) -> u32 {
        if self.joined { parent } else { switch * self.parents + parent }
    }

    /// The number of parallel switches of a group above, if the groups below have `width` each; `None` if it exceeds
    /// `u32`.
    pub const fn width_above(&self, width: u32) -> Option<u32> {
        if self.joined { Some(self.parents) } else { width.checked_mul(self.parents) }
    }
}

/// The position of a missing cable, by its lower end: from switch `switch` of group `group` (its index at `level`) to
/// parent `parent`, parallel cable `cable`; all from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingCable {
    /// Level of the lower end: 0 a node, 1 a leaf.
    pub level: usize,
    /// Index of the group at that level within the site.
    pub group: u32,
    /// Number of the switch among the group's parallel switches.
    pub switch: u32,
    /// Number of the parent.
    pub parent: u32,
    /// Number of the cable among the parallel cables.
    pub cable: u32,
}

/// A subtree: a leaf with nodes, or a pod, core or site with groups below.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Name of the group: of its switch, if that has one.
    pub name: String,
    /// Names of its parallel switches, in order; empty if they have none.
    pub switches: Vec<String>,
    /// The nodes or groups directly below.
    pub children: Children,
}

/// The nodes or groups directly below a group.
#[derive(Debug, Clone, PartialEq)]
pub enum Children {
    /// The nodes of a leaf.
    Nodes(Vec<NodeDescription>),
    /// Groups: leaves or deeper subtrees.
    Groups(Vec<Group>),
}

/// One node of a leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeDescription {
    /// Host name, unique on the machine.
    pub name: String,
    /// Index into [`Description::kinds`].
    pub kind: u32,
}

/// A link between two sites.
#[derive(Debug, Clone, PartialEq)]
pub struct WanDescription {
    /// Names of the two sites.
    pub between: (String, String),
    /// One-way latency in seconds.
    pub latency: f64,
    /// Bandwidth in each direction, in bytes per second.
    pub bandwidth: f64,
}
