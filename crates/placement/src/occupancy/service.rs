//! Nodes and links that are taken out of service and put back.

use std::sync::Arc;

use topolane_fabric::{CableId, NodeIndex};

use super::Occupancy;
use crate::service::Region;

impl Occupancy {
    /// Takes a cable out of service, or puts it back. A placement that owns it keeps it. A node that no link in service leads to is
    /// out of service too; a group that none leaves is a part of the machine by itself. What is no cable of the
    /// tree is passed over.
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

    /// How many times a node or a link was taken out of service or put back.
    pub fn service_changes(&self) -> u64 {
        self.service_changes
    }

    /// Whether links in service join all nodes in service, as far as whole groups go.
    pub fn is_joined(&self) -> bool {
        self.fabric.is_connected() && self.cut_off.is_empty()
    }

    /// Whether a node is in a part of the machine that no link in service joins to others.
    pub(crate) fn is_in(&self, node: NodeIndex, region: Region) -> bool {
        self.cut_off.is_in(&self.fabric, node, region)
    }

    pub(crate) fn regions(&self) -> Vec<Region> {
        self.cut_off.regions(&self.fabric)
    }

    /// Takes a node out of service, or puts it back. What holds it keeps it. A node that is not on
    /// the machine is passed over.
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
