//! Finds the parts of the machine that links out of service separate from the rest.

use std::collections::BTreeSet;

use topolane_fabric::{CableId, Fabric, GroupIndex, NodeIndex};

use crate::dedicated::uplink_slots::UplinkSlots;

/// The groups without an uplink in service: nodes inside can only reach each other.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CutOff {
    /// Level and index. At level 0, only nodes whose links were taken out of service.
    groups: BTreeSet<(usize, GroupIndex)>,
}

/// A set of nodes that can reach each other: a group that is cut off, or connected sites, given by their first site.
pub(crate) type Region = (usize, GroupIndex);

impl CutOff {
    /// Finds the groups whose uplinks are all missing.
    pub fn of(fabric: &Fabric, slots: &UplinkSlots) -> Self {
        let mut cut_off = CutOff::default();
        for &cable in fabric.missing_cables() {
            if let Some((level @ 1.., group, ..)) = fabric.cable_place(cable) {
                cut_off.look(fabric, slots, level, group);
            }
        }
        cut_off
    }

    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    pub fn contains(&self, level: usize, group: GroupIndex) -> bool {
        self.groups.contains(&(level, group))
    }

    /// Updates the group of a cable that was added or removed. Returns the group.
    pub fn follow(
        &mut self,
        fabric: &Fabric,
        slots: &UplinkSlots,
        cable: CableId,
    ) -> Option<(usize, GroupIndex)> {
        let (level, group, ..) = fabric.cable_place(cable)?;
        self.look(fabric, slots, level, group);
        Some((level, group))
    }

    fn look(&mut self, fabric: &Fabric, slots: &UplinkSlots, level: usize, group: GroupIndex) {
        if fabric.uplinks(level, group).any(|cable| slots.is_there(cable)) {
            self.groups.remove(&(level, group));
        } else {
            self.groups.insert((level, group));
        }
    }

    /// Whether a node is in a region.
    pub fn is_in(&self, fabric: &Fabric, node: NodeIndex, region: Region) -> bool {
        let top = fabric.depth();
        let group = |level| (level, fabric.group(level, node));
        match (1..top).map(group).find(|group| self.groups.contains(group)) {
            Some(alone) => alone == region,
            None => {
                region.0 == top && fabric.site_hops(region.1, fabric.group(top, node)).is_some()
            }
        }
    }

    /// All regions: first connected sites, then groups that are cut off, by level and index.
    pub fn regions(&self, fabric: &Fabric) -> Vec<Region> {
        let top = fabric.depth();
        let joined = |a, b| fabric.site_hops(a, b).is_some();
        let is_first = |&site: &u32| (0..site).all(|other| !joined(other, site));
        let sites = (0..fabric.sites()).filter(is_first).map(|site| (top, site));
        sites.chain(self.groups.iter().copied().filter(|group| group.0 > 0)).collect()
    }
}
