//! Numbers the cables of a machine.

use std::ops::Range;

use super::Fabric;
use crate::description::SwitchCable;
use crate::ids::{CableId, GroupIndex};

impl Fabric {
    /// The number of links with an id: cables (including missing ones), then WAN links.
    pub fn links(&self) -> u32 {
        self.cables + self.wans.len() as u32
    }

    /// The ids of the uplinks of a group below the top level: one contiguous range.
    pub fn uplinks(&self, level: usize, group: GroupIndex) -> Range<CableId> {
        let first = &self.levels[level].first_cable;
        first[group as usize]..first[group as usize + 1]
    }

    /// The number of uplinks per node that a group of this level has in one rail, but at most what carries a node's
    /// full bandwidth. It is the minimum over all groups of the level that have uplinks; infinite if none has.
    pub fn uplinks_per_node(&self, level: usize) -> f64 {
        self.levels[level].uplinks_per_node
    }

    pub(super) fn count_uplinks_per_node(&mut self) {
        for level in 0..self.depth() {
            let of_group = |group| {
                let site = self.site_of_group(level, group);
                let bandwidth = |level| self.cabling(site, level).bandwidth;
                let rails = f64::from(self.rails(site));
                let uplinks = self.uplinks(level, group).len() as f64 / rails;
                let nodes = self.node_range(level, group).len() as f64;
                (uplinks > 0.0).then(|| (bandwidth(0) / bandwidth(level)).min(uplinks / nodes))
            };
            let least = (0..self.groups(level)).filter_map(of_group).fold(f64::INFINITY, f64::min);
            self.levels[level].uplinks_per_node = least;
        }
    }

    /// The id of a cable, given its lower end; `None` if the tree has no such position.
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

    /// The level, group, switch, parent and parallel cable of a cable id; `None` for a WAN link, and for
    /// cables of a wiring that is not a tree.
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

    /// Whether the link exists.
    pub fn has_cable(&self, id: CableId) -> bool {
        id < self.links() && self.missing.binary_search(&id).is_err()
    }

    /// Bandwidth of a link in each direction, in bytes per second. A node's link is limited by the node's interface. 0
    /// for a missing cable.
    pub fn bandwidth(&self, id: CableId) -> f64 {
        if !self.has_cable(id) {
            return 0.0;
        }
        let Some((level, group, ..)) = self.cable_place(id) else {
            return match id.checked_sub(self.cables) {
                Some(wan) => self.wans[wan as usize].bandwidth,
                None => self.wired_cable(id).map_or(0.0, |cable| cable.bandwidth),
            };
        };
        let bandwidth = self.cabling(self.site_of_group(level, group), level).bandwidth;
        if level == 0 { bandwidth.min(self.kind(group).nic_bandwidth) } else { bandwidth }
    }

    /// The ends of a cable between switches of a wiring that is not a tree; `None` for any other link. The cables of
    /// nodes come first.
    pub fn wired_cable(&self, id: CableId) -> Option<SwitchCable> {
        let below = self.levels[0].first_cable.last()?;
        let cable = id.checked_sub(*below).filter(|_| id < self.cables)?;
        self.wiring.cable(cable)
    }

    /// Ids of the cables that the cabling implies but that do not exist, ascending.
    pub fn missing_cables(&self) -> &[CableId] {
        &self.missing
    }
}
