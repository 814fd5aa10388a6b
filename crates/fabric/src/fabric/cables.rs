//! The numbers of the cables.

use std::ops::Range;

use super::{CableId, Fabric, GroupIndex};

impl Fabric {
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

    /// Bandwidth of a link in each direction, bytes per second; a node's link carries no more than
    /// the node's interface does. 0 for a missing cable.
    pub fn bandwidth(&self, id: CableId) -> f64 {
        if !self.has_cable(id) {
            return 0.0;
        }
        let Some((level, group, ..)) = self.cable_place(id) else {
            return self.wans[(id - self.cables) as usize].bandwidth;
        };
        let bandwidth = self.cabling(self.site_of_group(level, group), level).bandwidth;
        if level == 0 { bandwidth.min(self.kind(group).nic_bandwidth) } else { bandwidth }
    }

    /// Ids of the cables that the cabling implies and that are not there, ascending.
    pub fn missing_cables(&self) -> &[CableId] {
        &self.missing
    }
}
