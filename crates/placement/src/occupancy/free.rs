//! The free amount of every resource on every node.

use topolane_fabric::NodeIndex;
use topolane_fabric::resources::{CORES, MEMORY};

use super::{Occupancy, WHOLE};
use crate::amounts::Amounts;
use crate::request::Share;

impl Occupancy {
    /// Cores of a node that no job holds.
    pub fn cores_free(&self, node: NodeIndex) -> u32 {
        if self.is_whole(node) { 0 } else { self.free(node)[CORES] as u32 }
    }

    /// Free memory of a node in bytes. A job that holds the whole node does not reduce it.
    pub fn memory_free(&self, node: NodeIndex) -> u64 {
        self.free(node)[MEMORY]
    }

    /// The free amount of each resource on a node, by index. A job that holds the whole node does not reduce it.
    #[inline]
    pub fn free(&self, node: NodeIndex) -> &[u64] {
        if self.free.is_empty() {
            return self.fabric.counts(node);
        }
        let counted = self.fabric.resources().names().len();
        &self.free[node as usize * counted..][..counted]
    }

    /// Starts tracking what shares of nodes take.
    pub(super) fn count_shares(&mut self) {
        if self.free.is_empty() {
            let counts = (0..self.fabric.nodes()).flat_map(|node| self.fabric.counts(node));
            self.free = counts.copied().collect();
        }
    }

    /// Whether one job holds the whole node.
    pub fn is_whole(&self, node: NodeIndex) -> bool {
        self.held[node as usize] & WHOLE != 0
    }

    pub(super) fn set_whole(&mut self, node: NodeIndex, whole: bool) {
        if self.is_whole(node) != whole {
            self.held[node as usize] ^= WHOLE;
        }
    }

    /// Whether the node can take one more slot of this share.
    #[inline]
    pub fn fits(&self, node: NodeIndex, share: &Share) -> bool {
        match share {
            Share::Whole => self.idle.contains(node),
            Share::Part(amounts) => self.fits_part(node, amounts),
        }
    }

    /// Whether the node can take one more slot of these amounts.
    #[inline]
    pub(super) fn fits_part(&self, node: NodeIndex, amounts: &Amounts) -> bool {
        !self.is_whole(node)
            && amounts.fit_in(self.free(node))
            && self.in_service.contains(node)
            && self.gpu_part_fits(node, amounts)
    }

    /// Whether a node is in service and has a free core for a slot that shares it.
    pub(super) fn takes_shares(&self, node: NodeIndex) -> bool {
        self.in_service.contains(node) && self.cores_free(node) > 0
    }

    /// The number of further slots of these amounts that fit on the node.
    #[inline]
    pub fn slots_on(&self, node: NodeIndex, amounts: &Amounts) -> u32 {
        if self.is_whole(node) || !self.in_service.contains(node) {
            return 0;
        }
        let slots = amounts.slots_in(self.free(node));
        match self.gpu_parts_on(node, amounts) {
            Some(parts) => slots.min(u32::try_from(parts).unwrap_or(u32::MAX)),
            None => slots,
        }
    }
}
