//! The machine as arrays: groups by level, ranges of nodes, hops.

mod blocks;
mod build;
mod cables;
mod counting;
mod describe;
mod domains;
mod nesting;
mod only;
mod rails;
mod wired;

use std::collections::HashMap;
use std::ops::Range;

use crate::description::Cabling;
use crate::ids::{CableId, GroupIndex, NodeIndex};
use crate::node_kind::NodeKind;
use crate::resources::Resources;
use crate::wiring::Wiring;

pub use blocks::BlockIndex;
pub use domains::DomainIndex;
pub(crate) use domains::check_sizes;
pub use rails::{CrossRail, RailRoute};

/// The groups of one level. At level 0, the nodes.
#[derive(Debug, Clone, Default)]
struct LevelGroups {
    /// The first node of each group; then one past the last node of the level.
    start: Vec<NodeIndex>,
    /// The first child of each group at the level below; then the number of children.
    first_child: Vec<GroupIndex>,
    /// The parent of each group at the next level; empty at the top.
    parent: Vec<GroupIndex>,
    /// The group of each node.
    of_node: Vec<GroupIndex>,
    /// The first uplink of each group; then one past the last uplink of the level.
    first_cable: Vec<CableId>,
    /// Whether the group only pads a branch that is shorter than the others.
    padding: Vec<bool>,
    names: Vec<String>,
    switches: Vec<Vec<String>>,
    /// See [`Fabric::uplinks_per_node`].
    uplinks_per_node: f64,
}

#[derive(Debug, Clone)]
struct SiteCabling {
    /// The levels of switches of this site alone, without padding.
    depth: usize,
    /// `cabling[l]` connects level `l` to `l + 1`.
    cabling: Vec<Cabling>,
    /// `width[l]` is the number of parallel switches of a group of level `l`; 1 at level 0.
    width: Vec<u32>,
}

#[derive(Debug, Clone)]
struct WanLink {
    between: (u32, u32),
    latency: f64,
    bandwidth: f64,
}

/// An immutable machine with every group, node and cable numbered: a hierarchy of nested groups, and a wiring between the
/// switches. It is one or more sites, each a fat tree, or another [`Wiring`] at one site.
#[derive(Debug, Clone)]
pub struct Fabric {
    name: String,
    levels: Vec<LevelGroups>,
    sites: Vec<SiteCabling>,
    wans: Vec<WanLink>,
    /// WAN links on the shortest route between two sites; `u32::MAX` if there is none.
    site_hops: Vec<u32>,
    kinds: Vec<NodeKind>,
    kind_of: Vec<u32>,
    resources: Resources,
    /// For each node kind, the amount of every resource.
    counts: Vec<Vec<u64>>,
    /// The largest amount of every resource on any node.
    most: Vec<u64>,
    node_names: Vec<String>,
    node_by_name: HashMap<String, NodeIndex>,
    domains: domains::Domains,
    blocks: blocks::Blocks,
    /// Ids of missing cables, ascending.
    missing: Vec<CableId>,
    /// Links climbed from a node's leaf to each level: `climb[node * depth + level - 1]`. Empty if no branch is padded;
    /// then it is always `level - 1`.
    climb: Vec<u8>,
    cables: u32,
    wiring: Wiring,
}

impl Fabric {
    /// The name of the machine.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of nodes.
    pub fn nodes(&self) -> u32 {
        self.node_names.len() as u32
    }

    /// The number of switch levels: 1 for a single switch, 3 for a tree with pods. The groups of level `depth()` are
    /// the sites.
    pub fn depth(&self) -> usize {
        self.levels.len() - 1
    }

    /// The number of groups at `level` (0: nodes).
    #[inline]
    pub fn groups(&self, level: usize) -> u32 {
        self.levels[level].start.len() as u32 - 1
    }

    /// The number of sites.
    pub fn sites(&self) -> u32 {
        self.sites.len() as u32
    }

    /// The nodes of a group: one contiguous range.
    #[inline]
    pub fn node_range(&self, level: usize, group: GroupIndex) -> Range<NodeIndex> {
        let start = &self.levels[level].start;
        start[group as usize]..start[group as usize + 1]
    }

    /// The number of uplinks of a group that exist: those that its cabling implies, minus the missing ones.
    pub fn present_uplinks(&self, level: usize, group: GroupIndex) -> u32 {
        let uplinks = self.uplinks(level, group);
        let below = |end| self.missing_cables().partition_point(|&cable| cable < end) as u32;
        uplinks.end - uplinks.start - (below(uplinks.end) - below(uplinks.start))
    }

    /// The groups directly below a group, at `level - 1`; `level` is at least 1.
    #[inline]
    pub fn children(&self, level: usize, group: GroupIndex) -> Range<GroupIndex> {
        let first = &self.levels[level].first_child;
        first[group as usize]..first[group as usize + 1]
    }

    /// The group of level `level` that contains a node.
    #[inline]
    pub fn group(&self, level: usize, node: NodeIndex) -> GroupIndex {
        self.levels[level].of_node[node as usize]
    }

    /// The group above a group of `level`, which must be below `depth()`.
    #[inline]
    pub fn parent(&self, level: usize, group: GroupIndex) -> GroupIndex {
        self.levels[level].parent[group as usize]
    }

    /// The site of a group.
    pub fn site_of_group(&self, level: usize, group: GroupIndex) -> u32 {
        let node = self.levels[level].start[group as usize];
        self.levels[self.depth()].of_node.get(node as usize).copied().unwrap_or_default()
    }

    /// The groups of `level` in `site`.
    pub fn level_range(&self, site: u32, level: usize) -> Range<GroupIndex> {
        let nodes = self.node_range(self.depth(), site);
        let of_node = &self.levels[level].of_node;
        of_node[nodes.start as usize]..of_node[nodes.end as usize - 1] + 1
    }

    /// The name of a group; at level 0, of a node.
    pub fn group_name(&self, level: usize, group: GroupIndex) -> &str {
        if level == 0 {
            return self.node_name(group);
        }
        &self.levels[level].names[group as usize]
    }

    /// The names of the parallel switches of a group of `level` >= 1; empty if they have none.
    pub fn switch_names(&self, level: usize, group: GroupIndex) -> &[String] {
        &self.levels[level].switches[group as usize]
    }

    /// Whether the group only pads a branch that is shorter than the others.
    pub fn is_padding(&self, level: usize, group: GroupIndex) -> bool {
        self.levels[level].padding[group as usize]
    }

    /// The name of a node.
    pub fn node_name(&self, node: NodeIndex) -> &str {
        &self.node_names[node as usize]
    }

    /// The node with this name; `None` if there is none.
    pub fn node_named(&self, name: &str) -> Option<NodeIndex> {
        self.node_by_name.get(name).copied()
    }

    /// The kind of a node: its cores, memory and interfaces.
    #[inline]
    pub fn kind(&self, node: NodeIndex) -> &NodeKind {
        &self.kinds[self.kind_of[node as usize] as usize]
    }

    /// The index of a node's kind in [`Fabric::kinds`].
    pub fn kind_index(&self, node: NodeIndex) -> u32 {
        self.kind_of[node as usize]
    }

    /// The kinds of node.
    pub fn kinds(&self) -> &[NodeKind] {
        &self.kinds
    }

    /// The resources of the machine: cores, memory, and whatever some node counts.
    pub fn resources(&self) -> &Resources {
        &self.resources
    }

    /// The amount of every resource on a node, by index.
    #[inline]
    pub fn counts(&self, node: NodeIndex) -> &[u64] {
        &self.counts[self.kind_of[node as usize] as usize]
    }

    /// The largest amount of every resource on any node, by index.
    pub fn most_of_a_node(&self) -> &[u64] {
        &self.most
    }

    /// The cabling between `level` and `level + 1` in `site`.
    pub fn cabling(&self, site: u32, level: usize) -> Cabling {
        self.sites[site as usize].cabling[level]
    }

    /// The number of parallel switches of a group of `level` in `site`; 1 at level 0.
    pub fn width(&self, site: u32, level: usize) -> u32 {
        self.sites[site as usize].width[level]
    }

    /// The WAN links: id, the two sites, one-way latency (s), bandwidth (B/s).
    pub fn wans(&self) -> impl Iterator<Item = (CableId, (u32, u32), f64, f64)> + '_ {
        self.wans
            .iter()
            .enumerate()
            .map(|(i, wan)| (self.cables + i as u32, wan.between, wan.latency, wan.bandwidth))
    }

    /// WAN links on the shortest route between two sites; `None` if there is none.
    #[inline]
    pub fn site_hops(&self, a: u32, b: u32) -> Option<u32> {
        let hops = self.site_hops[a as usize * self.sites.len() + b as usize];
        (hops != u32::MAX).then_some(hops)
    }

    /// The cables between the switches.
    #[inline]
    pub fn wiring(&self) -> &Wiring {
        &self.wiring
    }

    /// Whether every node can reach every other.
    pub fn is_connected(&self) -> bool {
        self.site_hops.iter().all(|&hops| hops != u32::MAX)
    }

    /// The lowest level at which both nodes are in one group; `None` if they are at two sites.
    #[inline]
    pub fn common_level(&self, a: NodeIndex, b: NodeIndex) -> Option<usize> {
        (0..=self.depth()).find(|&level| self.group(level, a) == self.group(level, b))
    }

    /// Links between switches climbed from the leaf of `node` to its group of `level` >= 1.
    #[inline]
    pub fn climb(&self, node: NodeIndex, level: usize) -> u32 {
        if self.climb.is_empty() {
            level as u32 - 1
        } else {
            u32::from(self.climb[node as usize * self.depth() + level - 1])
        }
    }

    /// Whether any branch of the tree is shorter than the others.
    pub fn is_padded(&self) -> bool {
        !self.climb.is_empty()
    }

    /// Hops between two nodes: links between switches on the route, without the links of the nodes (0 on one leaf, 2 in
    /// one pod, 4 across pods; a WAN link counts 1; at least 1 between other switches). 0 within one domain, which has its own network. `None` if no link
    /// connects their sites. Takes O(depth).
    #[inline]
    pub fn hops(&self, a: NodeIndex, b: NodeIndex) -> Option<u32> {
        if self.share_domain(a, b) {
            return Some(0);
        }
        match self.common_level(a, b) {
            Some(0) => Some(0),
            Some(_) if !self.wiring.is_tree() => {
                self.wiring.hops(self.group(1, a), self.group(1, b))
            }
            Some(level) => Some(self.climb(a, level) + self.climb(b, level)),
            None => {
                let top = self.depth();
                let wan = self.site_hops(self.group(top, a), self.group(top, b))?;
                Some(self.climb(a, top) + self.climb(b, top) + wan)
            }
        }
    }
}
