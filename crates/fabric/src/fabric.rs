//! The machine laid out in arrays: groups by level, node ranges, cable numbers, hops.

use std::collections::HashMap;
use std::ops::Range;

use crate::description::{Cabling, Children, Description, Group, NodeDescription, NodeKind};
use crate::error::InputError;

/// A node, numbered in leaf order.
pub type NodeIndex = u32;
/// A group, numbered in node order within its level.
pub type GroupIndex = u32;
/// A cable of the tree or, after all of those, a WAN link.
pub type CableId = u32;

/// Groups of one level. Level 0 is the nodes themselves.
#[derive(Debug, Clone, Default)]
struct Level {
    /// First node of each group, and one past the last node of the level at the end.
    start: Vec<NodeIndex>,
    /// First child of each group at the level below, and their number at the end.
    first_child: Vec<GroupIndex>,
    /// The group above, at the next level; empty at the top.
    parent: Vec<GroupIndex>,
    /// The group of each node.
    of_node: Vec<GroupIndex>,
    /// First uplink of each group, and one past the last of the level at the end.
    first_cable: Vec<CableId>,
    /// Whether the group stands only to fill up a branch shorter than the others.
    padding: Vec<bool>,
    names: Vec<String>,
    switches: Vec<Vec<String>>,
}

#[derive(Debug, Clone)]
struct Site {
    /// `cabling[l]` joins level `l` to `l + 1`.
    cabling: Vec<Cabling>,
    /// `width[l]`: parallel switches of a group of level `l` (level 0: the node, 1).
    width: Vec<u32>,
}

#[derive(Debug, Clone)]
struct Wan {
    between: (u32, u32),
    latency: f64,
    bandwidth: f64,
}

/// An immutable machine: sites of fat trees, every group, node and cable numbered.
#[derive(Debug, Clone)]
pub struct Fabric {
    name: String,
    levels: Vec<Level>,
    sites: Vec<Site>,
    wans: Vec<Wan>,
    /// WAN links on the way between two sites, `u32::MAX` where there is no way.
    site_hops: Vec<u32>,
    kinds: Vec<NodeKind>,
    kind_of: Vec<u32>,
    node_names: Vec<String>,
    node_by_name: HashMap<String, NodeIndex>,
    /// Ascending.
    missing: Vec<CableId>,
    /// Links climbed from a node's leaf to each level: `climb[node * depth + level - 1]`; empty
    /// where no branch is padded and it is `level - 1` for all.
    climb: Vec<u8>,
    cables: u32,
}

/// The deepest tree that is accepted.
const DEEPEST: usize = 16;
/// The most nodes or cables that are accepted.
const MOST: u64 = 1 << 30;

impl Fabric {
    /// Checks a description and lays it out.
    ///
    /// # Errors
    /// No site, no node or no node kind; two nodes or two sites of one name; a group without
    /// children; cabling for another number of levels than the tree has, or with a zero or an
    /// impossible bandwidth; a missing cable or a WAN link that names what is not there.
    pub fn build(description: &Description) -> Result<Fabric, InputError> {
        check_kinds(description)?;
        if description.sites.is_empty() {
            return Err(InputError::whole("the machine has no site"));
        }
        let mut depth = 1;
        for site in &description.sites {
            let own = depth_of(&site.root, 1)?;
            check_cabling(&site.root.name, &site.cabling, own)?;
            depth = depth.max(own);
        }
        let mut fabric = Fabric {
            name: description.name.clone(),
            levels: vec![Level::default(); depth + 1],
            sites: Vec::new(),
            wans: Vec::new(),
            site_hops: Vec::new(),
            kinds: description.kinds.clone(),
            kind_of: Vec::new(),
            node_names: Vec::new(),
            node_by_name: HashMap::new(),
            missing: Vec::new(),
            climb: Vec::new(),
            cables: 0,
        };
        for site in &description.sites {
            let mut cabling = site.cabling.clone();
            while cabling.len() < depth {
                cabling.push(Cabling { parents: 1, cables: 1, bandwidth: 1.0 });
            }
            let mut width = vec![1u32];
            for level in &cabling {
                let wider = width.last().and_then(|w| w.checked_mul(level.parents));
                width.push(wider.ok_or_else(|| too_large(&site.root.name))?);
            }
            fabric.sites.push(Site { cabling, width });
            fabric.add_group(&site.root, depth)?;
        }
        fabric.close_levels();
        fabric.number_cables()?;
        fabric.mark_missing(description)?;
        fabric.join_sites(description)?;
        fabric.measure_climbs();
        Ok(fabric)
    }

    /// Adds `group` at `level`, padded down while it is shorter than the tree is deep.
    fn add_group(&mut self, group: &Group, level: usize) -> Result<GroupIndex, InputError> {
        let start = self.node_names.len() as NodeIndex;
        let first_child = self.levels[level - 1].start.len() as GroupIndex;
        let index = self.levels[level].start.len() as GroupIndex;
        let own = &mut self.levels[level];
        own.start.push(start);
        own.first_child.push(first_child);
        own.names.push(group.name.clone());
        own.switches.push(group.switches.clone());
        own.padding.push(false);
        match &group.children {
            // The leaf itself stands at level 1; what is above it on a short branch is padding.
            Children::Nodes(_) if level > 1 => {
                self.levels[level].padding[index as usize] = true;
                let child = self.add_group(group, level - 1)?;
                self.set_parent(level - 1, child, index);
            }
            Children::Nodes(nodes) => self.add_nodes(&group.name, nodes, index)?,
            Children::Groups(groups) => {
                for child in groups {
                    let child = self.add_group(child, level - 1)?;
                    self.set_parent(level - 1, child, index);
                }
            }
        }
        Ok(index)
    }

    fn set_parent(&mut self, level: usize, child: GroupIndex, parent: GroupIndex) {
        let parents = &mut self.levels[level].parent;
        parents.resize(parents.len().max(child as usize + 1), 0);
        parents[child as usize] = parent;
    }

    fn add_nodes(
        &mut self,
        leaf: &str,
        nodes: &[NodeDescription],
        parent: GroupIndex,
    ) -> Result<(), InputError> {
        for node in nodes {
            let index = self.node_names.len();
            if index as u64 >= MOST {
                return Err(too_large(leaf));
            }
            if node.kind as usize >= self.kinds.len() {
                return Err(InputError::whole(format!(
                    "node {} is of kind {}, but there are {} kinds",
                    node.name,
                    node.kind,
                    self.kinds.len()
                )));
            }
            if self.node_by_name.insert(node.name.clone(), index as u32).is_some() {
                return Err(InputError::whole(format!("node {} stands in two places", node.name)));
            }
            self.node_names.push(node.name.clone());
            self.kind_of.push(node.kind);
            let level = &mut self.levels[0];
            level.start.push(index as u32);
            level.parent.push(parent);
            level.padding.push(false);
        }
        Ok(())
    }

    fn close_levels(&mut self) {
        let nodes = self.node_names.len() as u32;
        let children: Vec<u32> = self.levels.iter().map(|l| l.start.len() as u32).collect();
        for (index, level) in self.levels.iter_mut().enumerate() {
            level.start.push(nodes);
            if index > 0 {
                level.first_child.push(children[index - 1]);
            }
            level.of_node = Vec::with_capacity(nodes as usize);
            for group in 0..level.start.len() - 1 {
                let upto = level.start[group + 1] as usize;
                level.of_node.resize(upto, group as u32);
            }
        }
    }

    fn number_cables(&mut self) -> Result<(), InputError> {
        let mut next = 0u64;
        for index in 0..self.depth() {
            let mut first = Vec::with_capacity(self.levels[index].start.len());
            for group in 0..self.groups(index) {
                first.push(next as CableId);
                let site = &self.sites[self.site_of_group(index, group) as usize];
                let cabling = site.cabling[index];
                if self.has_switch_above(index, group) {
                    next += u64::from(site.width[index])
                        * u64::from(cabling.parents)
                        * u64::from(cabling.cables);
                }
                if next > MOST {
                    return Err(too_large(&self.name));
                }
            }
            first.push(next as CableId);
            self.levels[index].first_cable = first;
        }
        self.cables = next as u32;
        Ok(())
    }

    /// Whether cables leave the group: it is not padding, and something above it is not either.
    fn has_switch_above(&self, level: usize, group: GroupIndex) -> bool {
        let node = self.levels[level].start[group as usize];
        !self.levels[level].padding[group as usize]
            && (level + 1..=self.depth())
                .any(|above| level == 0 || !self.is_padding(above, self.group(above, node)))
    }

    fn mark_missing(&mut self, description: &Description) -> Result<(), InputError> {
        for (index, site) in description.sites.iter().enumerate() {
            for cable in &site.missing {
                let offset = (cable.level < self.depth())
                    .then(|| self.level_range(index as u32, cable.level).start)
                    .unwrap_or_default();
                let id = self.cable(
                    cable.level,
                    offset.saturating_add(cable.group),
                    cable.switch,
                    cable.parent,
                    cable.cable,
                );
                match id {
                    Some(id) => self.missing.push(id),
                    None => {
                        return Err(InputError::whole(format!(
                            "missing cable (level {}, group {}, switch {}, parent {}, cable {}) \
                             names a place that {} does not have",
                            cable.level,
                            cable.group,
                            cable.switch,
                            cable.parent,
                            cable.cable,
                            site.root.name
                        )));
                    }
                }
            }
        }
        self.missing.sort_unstable();
        self.missing.dedup();
        Ok(())
    }

    fn join_sites(&mut self, description: &Description) -> Result<(), InputError> {
        let count = self.sites.len();
        let mut by_name = HashMap::new();
        for (index, site) in description.sites.iter().enumerate() {
            if by_name.insert(site.root.name.as_str(), index).is_some() {
                return Err(InputError::whole(format!("two sites are named {}", site.root.name)));
            }
        }
        self.site_hops = vec![u32::MAX; count * count];
        for site in 0..count {
            self.site_hops[site * count + site] = 0;
        }
        for wan in &description.wans {
            let site = |name: &str| {
                by_name.get(name).copied().ok_or_else(|| {
                    InputError::whole(format!("a WAN link names site {name}, which is not there"))
                })
            };
            let (a, b) = (site(&wan.between.0)?, site(&wan.between.1)?);
            if a == b || !(wan.latency >= 0.0) || !positive(wan.bandwidth) {
                return Err(InputError::whole(format!(
                    "the WAN link between {} and {} must join two sites with a latency of at \
                     least 0 and a bandwidth above 0, not {} s and {} B/s",
                    wan.between.0, wan.between.1, wan.latency, wan.bandwidth
                )));
            }
            self.site_hops[a * count + b] = 1;
            self.site_hops[b * count + a] = 1;
            self.wans.push(Wan {
                between: (a as u32, b as u32),
                latency: wan.latency,
                bandwidth: wan.bandwidth,
            });
        }
        for via in 0..count {
            for a in 0..count {
                for b in 0..count {
                    let (x, y) = (self.site_hops[a * count + via], self.site_hops[via * count + b]);
                    let both = x.saturating_add(y);
                    let direct = &mut self.site_hops[a * count + b];
                    *direct = (*direct).min(both);
                }
            }
        }
        Ok(())
    }

    fn measure_climbs(&mut self) {
        if !self.levels.iter().any(|level| level.padding.contains(&true)) {
            return;
        }
        let depth = self.depth();
        let mut climb = vec![0u8; self.node_names.len() * depth];
        for node in 0..self.nodes() {
            let mut links = 0;
            for level in 2..=depth {
                links += u8::from(!self.levels[level].padding[self.group(level, node) as usize]);
                climb[node as usize * depth + level - 1] = links;
            }
        }
        self.climb = climb;
    }

    /// Name of the machine.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number of nodes.
    pub fn nodes(&self) -> u32 {
        self.node_names.len() as u32
    }

    /// Levels of switches: 1 for a single switch, 3 for a tree with pods. The groups of level
    /// `depth()` are the sites.
    pub fn depth(&self) -> usize {
        self.levels.len() - 1
    }

    /// Number of groups at `level` (0: nodes).
    #[inline]
    pub fn groups(&self, level: usize) -> u32 {
        self.levels[level].start.len() as u32 - 1
    }

    /// Number of sites.
    pub fn sites(&self) -> u32 {
        self.sites.len() as u32
    }

    /// The nodes of a group: one contiguous range.
    #[inline]
    pub fn node_range(&self, level: usize, group: GroupIndex) -> Range<NodeIndex> {
        let start = &self.levels[level].start;
        start[group as usize]..start[group as usize + 1]
    }

    /// The groups directly below a group, at `level - 1`; `level` is at least 1.
    #[inline]
    pub fn children(&self, level: usize, group: GroupIndex) -> Range<GroupIndex> {
        let first = &self.levels[level].first_child;
        first[group as usize]..first[group as usize + 1]
    }

    /// The group of `node` at `level`.
    #[inline]
    pub fn group(&self, level: usize, node: NodeIndex) -> GroupIndex {
        self.levels[level].of_node[node as usize]
    }

    /// The group above `group` of `level`, which is below `depth()`.
    #[inline]
    pub fn parent(&self, level: usize, group: GroupIndex) -> GroupIndex {
        self.levels[level].parent[group as usize]
    }

    /// The site of a group.
    pub fn site_of_group(&self, level: usize, group: GroupIndex) -> u32 {
        let node = self.levels[level].start[group as usize];
        self.levels[self.depth()].of_node.get(node as usize).copied().unwrap_or_default()
    }

    /// The groups of `level` that lie in `site`.
    pub fn level_range(&self, site: u32, level: usize) -> Range<GroupIndex> {
        let nodes = self.node_range(self.depth(), site);
        let of_node = &self.levels[level].of_node;
        of_node[nodes.start as usize]..of_node[nodes.end as usize - 1] + 1
    }

    /// Name of a group; a node's own name at level 0.
    pub fn group_name(&self, level: usize, group: GroupIndex) -> &str {
        if level == 0 {
            return self.node_name(group);
        }
        &self.levels[level].names[group as usize]
    }

    /// Names of the parallel switches of a group of `level` >= 1; empty where nobody named them.
    pub fn switch_names(&self, level: usize, group: GroupIndex) -> &[String] {
        &self.levels[level].switches[group as usize]
    }

    /// Whether the group stands only to fill up a branch shorter than the others.
    pub fn is_padding(&self, level: usize, group: GroupIndex) -> bool {
        self.levels[level].padding[group as usize]
    }

    /// Name of a node.
    pub fn node_name(&self, node: NodeIndex) -> &str {
        &self.node_names[node as usize]
    }

    /// The node of that name.
    pub fn node_named(&self, name: &str) -> Option<NodeIndex> {
        self.node_by_name.get(name).copied()
    }

    /// The inside of a node.
    #[inline]
    pub fn kind(&self, node: NodeIndex) -> &NodeKind {
        &self.kinds[self.kind_of[node as usize] as usize]
    }

    /// Index of the node's kind among [`Fabric::kinds`].
    pub fn kind_index(&self, node: NodeIndex) -> u32 {
        self.kind_of[node as usize]
    }

    /// The kinds of node.
    pub fn kinds(&self) -> &[NodeKind] {
        &self.kinds
    }

    /// The cabling between `level` and `level + 1` in `site`.
    pub fn cabling(&self, site: u32, level: usize) -> Cabling {
        self.sites[site as usize].cabling[level]
    }

    /// Parallel switches of a group of `level` in `site` (1 at level 0).
    pub fn width(&self, site: u32, level: usize) -> u32 {
        self.sites[site as usize].width[level]
    }

    /// Number of links with an id: the cables, the missing ones included, then the WAN links.
    pub fn links(&self) -> u32 {
        self.cables + self.wans.len() as u32
    }

    /// The uplinks of a group of a level below the top: one contiguous range of ids.
    pub fn uplinks(&self, level: usize, group: GroupIndex) -> Range<CableId> {
        let first = &self.levels[level].first_cable;
        first[group as usize]..first[group as usize + 1]
    }

    /// Id of a cable from its lower end; `None` where the tree has no such place.
    pub fn cable(
        &self,
        level: usize,
        group: GroupIndex,
        switch: u32,
        parent: u32,
        cable: u32,
    ) -> Option<CableId> {
        if level >= self.depth() || group >= self.groups(level) {
            return None;
        }
        let site = &self.sites[self.site_of_group(level, group) as usize];
        let cabling = site.cabling[level];
        let there = !self.uplinks(level, group).is_empty()
            && switch < site.width[level]
            && parent < cabling.parents
            && cable < cabling.cables;
        there.then(|| {
            self.uplinks(level, group).start
                + (switch * cabling.parents + parent) * cabling.cables
                + cable
        })
    }

    /// Level, group, switch, parent and parallel cable of a cable id; `None` for a WAN link.
    pub fn cable_place(&self, id: CableId) -> Option<(usize, GroupIndex, u32, u32, u32)> {
        if id >= self.cables {
            return None;
        }
        let level = (0..self.depth())
            .find(|&level| self.levels[level].first_cable.last().is_some_and(|&end| id < end))?;
        let first = &self.levels[level].first_cable;
        let group = first.partition_point(|&start| start <= id) as u32 - 1;
        let offset = id - first[group as usize];
        let cabling = self.cabling(self.site_of_group(level, group), level);
        let up = offset / cabling.cables;
        Some((level, group, up / cabling.parents, up % cabling.parents, offset % cabling.cables))
    }

    /// Whether the link is there.
    pub fn has_cable(&self, id: CableId) -> bool {
        id < self.links() && self.missing.binary_search(&id).is_err()
    }

    /// Ids of the cables that the cabling implies and that are not there, ascending.
    pub fn missing_cables(&self) -> &[CableId] {
        &self.missing
    }

    /// The WAN links: id, the two sites, one-way latency (s), bandwidth (B/s).
    pub fn wans(&self) -> impl Iterator<Item = (CableId, (u32, u32), f64, f64)> + '_ {
        self.wans
            .iter()
            .enumerate()
            .map(|(i, wan)| (self.cables + i as u32, wan.between, wan.latency, wan.bandwidth))
    }

    /// WAN links on the shortest way between two sites; `None` where there is no way.
    #[inline]
    pub fn site_hops(&self, a: u32, b: u32) -> Option<u32> {
        let hops = self.site_hops[a as usize * self.sites.len() + b as usize];
        (hops != u32::MAX).then_some(hops)
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

    /// Inter-switch links climbed from the leaf of `node` to its group of `level` >= 1.
    #[inline]
    pub fn climb(&self, node: NodeIndex, level: usize) -> u32 {
        if self.climb.is_empty() {
            level as u32 - 1
        } else {
            u32::from(self.climb[node as usize * self.depth() + level - 1])
        }
    }

    /// Whether a branch of the tree is shorter than the others.
    pub fn is_padded(&self) -> bool {
        !self.climb.is_empty()
    }

    /// Hops between two nodes: inter-switch links on the route, the node-to-leaf link not
    /// counted (0 on one leaf, 2 in one pod, 4 across pods; a WAN link counts 1). `None` where
    /// no link joins their sites. Takes O(depth).
    #[inline]
    pub fn hops(&self, a: NodeIndex, b: NodeIndex) -> Option<u32> {
        match self.common_level(a, b) {
            Some(0) => Some(0),
            Some(level) => Some(self.climb(a, level) + self.climb(b, level)),
            None => {
                let top = self.depth();
                let wan = self.site_hops(self.group(top, a), self.group(top, b))?;
                Some(self.climb(a, top) + self.climb(b, top) + wan)
            }
        }
    }
}

fn positive(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

fn too_large(name: &str) -> InputError {
    InputError::whole(format!("{name} is too large: more than {MOST} nodes or cables"))
}

fn check_kinds(description: &Description) -> Result<(), InputError> {
    if description.kinds.is_empty() {
        return Err(InputError::whole("the machine has no kind of node"));
    }
    for kind in &description.kinds {
        let sound = kind.sockets > 0
            && kind.cores_per_socket > 0
            && kind.sockets.checked_mul(kind.cores_per_socket).is_some()
            && kind.nics > 0
            && positive(kind.core_speed)
            && positive(kind.nic_bandwidth);
        if !sound {
            return Err(InputError::whole(format!(
                "a node needs at least one socket, core and NIC and speeds above 0, not {kind:?}"
            )));
        }
    }
    Ok(())
}

fn check_cabling(site: &str, cabling: &[Cabling], depth: usize) -> Result<(), InputError> {
    if cabling.len() != depth {
        return Err(InputError::whole(format!(
            "{site} has {depth} levels of switches, but cabling for {}",
            cabling.len()
        )));
    }
    for (level, c) in cabling.iter().enumerate() {
        if c.parents == 0 || c.cables == 0 || !positive(c.bandwidth) {
            return Err(InputError::whole(format!(
                "{site}: level {} needs parents, cables and bandwidth above 0, not {}, {}, {} B/s",
                level + 1,
                c.parents,
                c.cables,
                c.bandwidth
            )));
        }
    }
    Ok(())
}

fn depth_of(group: &Group, level: usize) -> Result<usize, InputError> {
    if level > DEEPEST {
        return Err(InputError::whole(format!(
            "{} lies more than {DEEPEST} levels deep",
            group.name
        )));
    }
    match &group.children {
        Children::Nodes(nodes) if nodes.is_empty() => {
            Err(InputError::whole(format!("switch {} has no nodes", group.name)))
        }
        Children::Nodes(_) => Ok(1),
        Children::Groups(groups) => {
            let mut deepest = 0;
            for child in groups {
                deepest = deepest.max(depth_of(child, level + 1)?);
            }
            if deepest == 0 {
                return Err(InputError::whole(format!("switch {} has no switches", group.name)));
            }
            Ok(deepest + 1)
        }
    }
}
