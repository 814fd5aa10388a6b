//! The description of a machine: what every reader produces and every writer consumes.

use serde::{Deserialize, Serialize};

use crate::node_kind::NodeKind;

/// A whole machine, not yet checked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Description {
    /// Name of the machine, as shown in tables and figures.
    pub name: String,
    /// The sites in order; a machine in one place has one.
    pub sites: Vec<SiteDescription>,
    /// Links between sites. Two sites that no chain of links joins cannot share a job.
    pub wans: Vec<WanDescription>,
    /// Kinds of node; nodes refer to them by index. Never empty in a valid machine.
    pub kinds: Vec<NodeKind>,
    /// Sets of nodes that a faster network joins. A node is in one at most.
    pub domains: Vec<DomainDescription>,
    /// Sizes of the blocks of domains that a scheduler plans with (`BlockSizes` of Slurm's topology/block), in nodes and
    /// ascending: the base block, then power-of-two multiples of it. Empty if none were chosen.
    pub block_sizes: Vec<u32>,
}

/// Nodes that a network joins which is faster than the fabric, such as an NVLink domain. They need not be a group of the tree.
#[derive(Debug, Clone, PartialEq)]
pub struct DomainDescription {
    /// Name of the domain, unique among the domains.
    pub name: String,
    /// Names of its nodes.
    pub nodes: Vec<String>,
    /// Bandwidth of a node inside of it in each direction, bytes per second.
    pub bandwidth: f64,
}

/// One site: a tree of groups and the cabling of each of its levels.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteDescription {
    /// The group that holds the whole site; its name is the site's name.
    pub root: Group,
    /// `cabling[l]` joins level `l` to level `l + 1` (0: nodes to leaves). One entry per level.
    pub cabling: Vec<Cabling>,
    /// Cables that the cabling implies and that are not there.
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
    /// Bandwidth of one cable in each direction, bytes per second.
    pub bandwidth: f64,
    /// Whether the parallel switches of a group all lead to the same parents: rails meet there. Never at the level of the
    /// nodes. Otherwise every one of them has parents of its own.
    #[serde(default)]
    pub joined: bool,
}

impl Cabling {
    /// Cabling of a PGFT: every parallel switch has parents of its own.
    pub const fn new(parents: u32, cables: u32, bandwidth: f64) -> Cabling {
        Cabling { parents, cables, bandwidth, joined: false }
    }

    /// The same with the parallel switches of a group joined: they share their parents.
    #[must_use]
    pub const fn meeting(self) -> Cabling {
        Cabling { joined: true, ..self }
    }

    /// The number, among the parallel switches of the group above, of the parent number `parent` of switch `switch`.
    #[inline]
    pub const fn upper(&self, switch: u32, parent: u32) -> u32 {
        if self.joined { parent } else { switch * self.parents + parent }
    }

    /// Parallel switches of a group above, if the groups below have `width`; `None` beyond `u32`.
    pub const fn width_above(&self, width: u32) -> Option<u32> {
        if self.joined { Some(self.parents) } else { width.checked_mul(self.parents) }
    }
}

/// A cable named by where it starts: switch `switch` of group `group` (by index at `level`),
/// to its parent number `parent`, parallel cable `cable`; all from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingCable {
    /// Level of the lower end: 0 a node, 1 a leaf.
    pub level: usize,
    /// Index of the group at that level, within the site.
    pub group: u32,
    /// Which of the group's parallel switches.
    pub switch: u32,
    /// Which parent.
    pub parent: u32,
    /// Which of the parallel cables.
    pub cable: u32,
}

/// A subtree: a leaf with nodes, or a pod, core or site with groups below.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Name of the group (of its switch, where it has one).
    pub name: String,
    /// Names of its parallel switches in order; empty if they have no names.
    pub switches: Vec<String>,
    /// What hangs below.
    pub children: Children,
}

/// What a group holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Children {
    /// A leaf: nodes.
    Nodes(Vec<NodeDescription>),
    /// Groups, each a leaf or deeper.
    Groups(Vec<Group>),
}

/// One node of a leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeDescription {
    /// Host name, unique in the machine.
    pub name: String,
    /// Index into [`Description::kinds`].
    pub kind: u32,
}

/// A link between two sites.
#[derive(Debug, Clone, PartialEq)]
pub struct WanDescription {
    /// Names of the two sites.
    pub between: (String, String),
    /// One-way latency, seconds.
    pub latency: f64,
    /// Bandwidth in each direction, bytes per second.
    pub bandwidth: f64,
}
