//! The nested levels of a machine, and the free slots of their groups.

use topolane_fabric::{Fabric, NodeIndex};

use crate::{FreeSlots, Level};

/// The levels of a machine from the nodes up: those of the tree, plus the domains if they nest in it and differ from
/// all its levels. The level of domains has an extra group for each group above it: the nodes there that are in no
/// domain.
pub(super) struct KueueLevels<'a> {
    fabric: &'a Fabric,
    free: &'a FreeSlots<'a>,
    levels: Vec<Level>,
    /// The level of the tree above the domains, and the free slots of each group of the domain level.
    domains: Option<(usize, Vec<u32>)>,
}

impl<'a> KueueLevels<'a> {
    pub(super) fn of(free: &'a FreeSlots<'a>) -> Self {
        let fabric = free.fabric();
        let own = fabric.level_of_domains().is_none();
        let above = fabric.level_above_domains().filter(|_| own);
        let mut levels = Vec::with_capacity(fabric.depth() + 2);
        for level in 0..=fabric.depth() {
            if above == Some(level) {
                levels.push(Level::Domain);
            }
            levels.push(Level::Tree(level as u8));
        }
        let domains = above.map(|above| (above, in_domains(free, above)));
        KueueLevels { fabric, free, levels, domains }
    }

    /// The number of a level in this list, 0 for nodes; `None` if the machine does not have it.
    pub(super) fn number(&self, level: Level) -> Option<usize> {
        let level = match (level, self.fabric.level_of_domains()) {
            (Level::Domain, Some(same)) => Level::Tree(same as u8),
            _ => level,
        };
        self.levels.iter().position(|&of| of == level)
    }

    /// The number of the domain level; of the leaf level if there are no domains or they do not nest.
    pub(super) fn of_domains(&self) -> usize {
        self.number(Level::Domain).unwrap_or(1)
    }

    /// The highest level that a Kueue topology would name: the level below the site, or the sites if there are several.
    pub(super) fn top(&self) -> usize {
        let highest = self.levels.len() - 1;
        if self.fabric.sites() > 1 { highest } else { highest.saturating_sub(1).max(1) }
    }

    /// The number of groups of a level.
    pub(super) fn groups(&self, at: usize) -> u32 {
        match (self.levels[at], &self.domains) {
            (Level::Tree(level), _) => self.fabric.groups(level.into()),
            (Level::Domain, domains) => domains.as_ref().map_or(0, |(_, slots)| slots.len() as u32),
        }
    }

    /// The free slots of a group.
    pub(super) fn slots(&self, at: usize, group: u32) -> u32 {
        match (self.levels[at], &self.domains) {
            (Level::Domain, Some((_, slots))) => slots[group as usize],
            (Level::Tree(level), _) => self.free.count(level.into(), group),
            (Level::Domain, None) => 0,
        }
    }

    /// The number of whole slices of `size` slots if each lies inside one group of a level.
    pub(super) fn slices(&self, (size, at): (u32, usize)) -> u32 {
        if size == 1 {
            return self.free.total();
        }
        let of_blocks = at == self.of_domains() && self.domains.is_none();
        let parts = |slots: u32, number: u32| (slots / size).saturating_mul(number);
        match self.free.blocks_with().filter(|_| of_blocks) {
            Some(blocks) => (0..).zip(blocks).map(|(slots, &number)| parts(slots, number)).sum(),
            None => (0..self.groups(at)).map(|group| parts(self.slots(at, group), 1)).sum(),
        }
    }

    /// The group of the next level that contains a group.
    pub(super) fn above(&self, at: usize, group: u32) -> u32 {
        let fabric = self.fabric;
        match (self.levels[at], self.levels[at + 1]) {
            (Level::Tree(level), Level::Tree(_)) => fabric.parent(level.into(), group),
            (Level::Tree(level), Level::Domain) => {
                let above = self.domains.as_ref().map_or(0, |(above, _)| *above);
                domain_of(fabric, above, fabric.node_range(level.into(), group).start)
            }
            (Level::Domain, Level::Tree(level)) => match group.checked_sub(fabric.domains()) {
                None => fabric.group(level.into(), fabric.domain_nodes(group)[0]),
                Some(group) => group,
            },
            (Level::Domain, Level::Domain) => group,
        }
    }

    /// Appends the groups one level below a group to `below`.
    pub(super) fn below(&self, at: usize, group: u32, below: &mut Vec<u32>) {
        let fabric = self.fabric;
        match (self.levels[at], self.levels[at - 1]) {
            (Level::Tree(level), Level::Tree(0)) => {
                below.extend(fabric.node_range(level.into(), group));
            }
            (Level::Tree(level), Level::Tree(_)) => {
                below.extend(fabric.children(level.into(), group));
            }
            (Level::Domain, Level::Tree(0)) if group < fabric.domains() => {
                below.extend(fabric.domain_nodes(group));
            }
            _ => below.extend(
                (0..self.groups(at - 1)).filter(|&child| self.above(at - 1, child) == group),
            ),
        }
    }
}

/// The group of the domain level that contains a node.
fn domain_of(fabric: &Fabric, above: usize, node: NodeIndex) -> u32 {
    fabric.domain(node).unwrap_or_else(|| fabric.domains() + fabric.group(above, node))
}

fn in_domains(free: &FreeSlots<'_>, above: usize) -> Vec<u32> {
    let fabric = free.fabric();
    let mut slots = vec![0u32; (fabric.domains() + fabric.groups(above)) as usize];
    for node in free.nodes() {
        let of = &mut slots[domain_of(fabric, above, node) as usize];
        *of = of.saturating_add(free.count(0, node));
    }
    slots
}
