//! Builds a fabric, that is arrays, from a description.

use std::collections::{HashMap, VecDeque};

use super::blocks::Blocks;
use super::domains::Domains;
use super::{Fabric, LevelGroups, SiteCabling, WanLink};
use crate::check::{
    MOST_NODES, MOST_SWITCHES, check_cabling, check_kinds, check_name, check_sites, check_wan,
    depth_of, most_cables, too_many_cables, too_many_nodes, too_many_switches,
};
use crate::description::{Cabling, Children, Description, Group, MissingCable, NodeDescription};
use crate::error::InputError;
use crate::ids::{CableId, GroupIndex, NodeIndex};
use crate::resources::Resources;
use crate::wiring::Wiring;

impl Fabric {
    /// Checks a description and builds the fabric.
    ///
    /// # Errors
    /// No site, no node or no node kind; two nodes or two sites with one name; a group without children; cabling for
    /// another number of levels than the tree has, or with a zero or impossible bandwidth; a domain without nodes, or
    /// with a node that does not exist or is in another domain; block sizes without domains, or that are not
    /// power-of-two multiples of the first; a missing cable or a WAN link that names what does not exist; a name with a
    /// control character; too many nodes, switches or cables.
    pub fn build(description: &Description) -> Result<Fabric, InputError> {
        check_name("machine", &description.name)?;
        check_kinds(description)?;
        check_sites(description)?;
        let mut depth = 1;
        for site in &description.sites {
            let own = depth_of(&site.root, 1)?;
            check_cabling(&site.root.name, &site.cabling, own)?;
            depth = depth.max(own);
        }
        let mut fabric = Fabric {
            name: description.name.clone(),
            levels: vec![LevelGroups::default(); depth + 1],
            sites: Vec::new(),
            wans: Vec::new(),
            site_hops: Vec::new(),
            kinds: description.kinds.clone(),
            kind_of: Vec::new(),
            resources: Resources::default(),
            counts: Vec::new(),
            most: Vec::new(),
            node_names: Vec::new(),
            node_by_name: HashMap::new(),
            domains: Domains::default(),
            blocks: Blocks::default(),
            missing: Vec::new(),
            climb: Vec::new(),
            cables: 0,
            wiring: Wiring::Tree,
        };
        let mut switches = 0;
        for site in &description.sites {
            // A shorter site is padded above its leaves, so its cabling is padded there too.
            let own = site.cabling.len();
            let mut cabling = site.cabling.clone();
            let padding = Cabling::new(1, 1, 1.0);
            let above_leaves = own.min(2);
            cabling.splice(above_leaves..above_leaves, vec![padding; depth - own]);
            let mut width = vec![1u32];
            for level in &cabling {
                let wider = width.last().and_then(|&width| level.width_above(width));
                width.push(wider.ok_or_else(|| too_many_switches(&site.root.name))?);
            }
            fabric.sites.push(SiteCabling { depth: own, cabling, width });
            fabric.add_group(&site.root, depth, &mut switches)?;
        }
        fabric.close_levels();
        fabric.check_joined()?;
        fabric.count_resources()?;
        fabric.domains = Domains::of(description, &fabric.node_by_name)?;
        fabric.nest_domains();
        fabric.blocks = Blocks::of(&fabric);
        fabric.measure_climbs();
        fabric.wiring = Wiring::build(&description.wiring, &fabric.leaves())?;
        fabric.number_cables()?;
        fabric.count_uplinks_per_node();
        fabric.mark_missing(description)?;
        fabric.join_sites(description)?;
        Ok(fabric)
    }

    /// Adds `group` at `level`, with padding below if its branch is shorter than the tree. Adds its switches to the
    /// total so far.
    fn add_group(
        &mut self,
        group: &Group,
        level: usize,
        switches: &mut u64,
    ) -> Result<GroupIndex, InputError> {
        check_name("switch", &group.name)?;
        for name in &group.switches {
            check_name("switch", name)?;
        }
        *switches += self.sites.last().map_or(1, |site| u64::from(site.width[level]));
        if *switches > MOST_SWITCHES {
            return Err(too_many_switches(&self.name));
        }
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
            // The leaf itself is at level 1; the levels above it on a short branch are padding.
            Children::Nodes(_) if level > 1 => {
                self.levels[level].padding[index as usize] = true;
                let child = self.add_group(group, level - 1, switches)?;
                self.set_parent(level - 1, child, index);
            }
            Children::Nodes(nodes) => self.add_nodes(&group.name, nodes, index)?,
            Children::Groups(groups) => {
                for child in groups {
                    let child = self.add_group(child, level - 1, switches)?;
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
            check_name("node", &node.name)?;
            let index = self.node_names.len();
            if index >= MOST_NODES {
                return Err(too_many_nodes(leaf));
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

    /// Refuses a joined level that a short branch skips, because all its switches would be cabled to the same switch
    /// above.
    fn check_joined(&self) -> Result<(), InputError> {
        for level in 2..self.depth() {
            for group in 0..self.groups(level) {
                let site = self.site_of_group(level, group);
                if self.is_padding(level, group) && self.cabling(site, level).joined {
                    return Err(InputError::whole(format!(
                        "{}: level {level} is joined, but {} hangs directly on a level above",
                        self.group_name(self.depth(), site),
                        self.group_name(level, group)
                    )));
                }
            }
        }
        Ok(())
    }

    fn count_resources(&mut self) -> Result<(), InputError> {
        for kind in &self.kinds {
            for (name, _) in kind.resources.iter() {
                self.resources.add(name).map_err(InputError::whole)?;
            }
        }
        self.counts = self.kinds.iter().map(|kind| kind.counts(&self.resources)).collect();
        self.most = vec![0; self.resources.names().len()];
        for node in 0..self.nodes() {
            let counts = &self.counts[self.kind_of[node as usize] as usize];
            for (most, &count) in self.most.iter_mut().zip(counts) {
                *most = count.max(*most);
            }
        }
        Ok(())
    }

    fn number_cables(&mut self) -> Result<(), InputError> {
        let mut next = 0u64;
        let most = most_cables(self.nodes());
        for index in 0..self.depth() {
            let mut first = Vec::with_capacity(self.levels[index].start.len());
            for group in 0..self.groups(index) {
                first.push(next as CableId);
                let site = &self.sites[self.site_of_group(index, group) as usize];
                let cabling = site.cabling[index];
                if self.has_switch_above(index, group) && (index == 0 || self.wiring.is_tree()) {
                    next += u64::from(site.width[index])
                        * u64::from(cabling.parents)
                        * u64::from(cabling.cables);
                }
                if next > most {
                    return Err(too_many_cables(&self.name, self.nodes()));
                }
            }
            first.push(next as CableId);
            self.levels[index].first_cable = first;
        }
        self.cables = next as u32 + self.wiring.cables();
        Ok(())
    }

    /// Whether cables leave the group: it is not padding, and some group above it is not either.
    fn has_switch_above(&self, level: usize, group: GroupIndex) -> bool {
        let node = self.levels[level].start[group as usize];
        !self.levels[level].padding[group as usize]
            && (level + 1..=self.depth())
                .any(|above| level == 0 || !self.is_padding(above, self.group(above, node)))
    }

    fn mark_missing(&mut self, description: &Description) -> Result<(), InputError> {
        for (index, site) in description.sites.iter().enumerate() {
            for cable in &site.missing {
                let id = self.cable_at(index as u32, *cable).ok_or_else(|| {
                    InputError::whole(format!(
                        "missing cable (level {}, group {}, switch {}, parent {}, cable {}) names \
                         a place that {} does not have",
                        cable.level,
                        cable.group,
                        cable.switch,
                        cable.parent,
                        cable.cable,
                        site.root.name
                    ))
                })?;
                self.missing.push(id);
            }
        }
        self.missing.sort_unstable();
        self.missing.dedup();
        Ok(())
    }

    /// The id of a cable at a position in a site; `None` if the site has no such position.
    pub(crate) fn cable_at(&self, site: u32, cable: MissingCable) -> Option<CableId> {
        let own = self.sites[site as usize].depth;
        if cable.level >= own {
            return None;
        }
        let level = cable.level + if cable.level > 1 { self.depth() - own } else { 0 };
        let groups = self.level_range(site, level);
        let group = groups.start.checked_add(cable.group).filter(|group| groups.contains(group))?;
        self.cable(level, group, cable.switch, cable.parent, cable.cable)
    }

    fn join_sites(&mut self, description: &Description) -> Result<(), InputError> {
        let count = self.sites.len();
        let mut by_name = HashMap::new();
        for (index, site) in description.sites.iter().enumerate() {
            if by_name.insert(site.root.name.as_str(), index).is_some() {
                return Err(InputError::whole(format!("two sites are named {}", site.root.name)));
            }
        }
        let mut joined = vec![Vec::new(); count];
        for wan in &description.wans {
            check_wan(wan)?;
            let site = |name: &str| {
                by_name.get(name).copied().ok_or_else(|| {
                    InputError::whole(format!("a WAN link names site {name}, which is not there"))
                })
            };
            let (a, b) = (site(&wan.between.0)?, site(&wan.between.1)?);
            joined[a].push(b);
            joined[b].push(a);
            self.wans.push(WanLink {
                between: (a as u32, b as u32),
                latency: wan.latency,
                bandwidth: wan.bandwidth,
            });
        }
        self.site_hops = vec![u32::MAX; count * count];
        for from in 0..count {
            let hops = &mut self.site_hops[from * count..(from + 1) * count];
            hops[from] = 0;
            let mut reached = VecDeque::from([from]);
            while let Some(site) = reached.pop_front() {
                for &next in &joined[site] {
                    if hops[next] == u32::MAX {
                        hops[next] = hops[site] + 1;
                        reached.push_back(next);
                    }
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
}
