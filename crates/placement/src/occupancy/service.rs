//! Takes nodes and links out of service and puts them back.

use std::sync::Arc;

use topolane_fabric::{CableId, NodeIndex};

use super::Occupancy;
use crate::service::Region;

impl Occupancy {
    /// Takes a cable out of service, or puts it back. A placement that owns the cable keeps it. A node without links in
    /// service is out of service too. A group without links in service becomes a part of the machine of its own. Ids
    /// that are not cables of the tree are ignored.
    pub fn set_link_in_service(&mut self, cable: CableId, in_service: bool) {
        if self.fabric.cable_place(cable).is_none() {
            return;
        }
        self.service_changes += 1;
        self.slots.set_in_service(cable, in_service);
        let fabric = Arc::clone(&self.fabric);
        if let Some((0, node)) = self.cut_off.follow(&fabric, &self.slots, cable) {
            self.follow_node(node);
        }
    }

    /// Cables out of service, by their ids.
    pub fn links_out(&self) -> impl Iterator<Item = CableId> + '_ {
        self.slots.failed().iter()
    }

    /// The number of times a node or link was taken out of service or put back.
    pub fn service_changes(&self) -> u64 {
        self.service_changes
    }

    /// Whether links in service connect all groups of the machine.
    pub fn is_joined(&self) -> bool {
        self.fabric.is_connected() && self.cut_off.is_empty()
    }

    /// Whether a node is in this region: a part of the machine that links in service do not connect to the rest.
    pub(crate) fn is_in(&self, node: NodeIndex, region: Region) -> bool {
        self.cut_off.is_in(&self.fabric, node, region)
    }

    pub(crate) fn regions(&self) -> Vec<Region> {
        self.cut_off.regions(&self.fabric)
    }

    /// Takes a node out of service, or puts it back. Jobs on it keep it. Nodes that are not on the machine are ignored.
    pub fn set_in_service(&mut self, node: NodeIndex, in_service: bool) {
        if node >= self.fabric.nodes() {
            return;
        }
        self.service_changes += 1;
        if in_service {
            self.drained.remove(node);
        } else {
            self.drained.insert(node);
        }
        self.follow_node(node);
    }

    fn follow_node(&mut self, node: NodeIndex) {
        let in_service = !self.drained.contains(node) && !self.cut_off.contains(0, node);
        self.put_in_service(node, in_service);
    }

    pub(super) fn put_in_service(&mut self, node: NodeIndex, in_service: bool) {
        if self.in_service.contains(node) == in_service {
            return;
        }
        if in_service {
            self.in_service.insert(node);
            if self.held[node as usize] == 0 {
                self.mark_idle(node..node + 1);
            }
        } else {
            self.in_service.remove(node);
            if self.held[node as usize] == 0 {
                self.mark_busy(node..node + 1);
            }
        }
        self.note_changes(node..node + 1);
    }
}
