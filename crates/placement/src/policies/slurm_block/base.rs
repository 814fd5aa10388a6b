//! The base blocks of a machine, and what is free in them.

use topolane_fabric::NodeIndex;

use crate::free_slots::FreeSlots;

/// The domains or, on a machine without domains, the leaves, with the slots that a request may use.
pub(super) struct BaseBlocks<'a> {
    free: &'a FreeSlots<'a>,
    are_domains: bool,
}

impl<'a> BaseBlocks<'a> {
    /// Of a machine.
    pub(super) fn of(free: &'a FreeSlots<'a>) -> Self {
        BaseBlocks { free, are_domains: free.fabric().domains() > 0 }
    }

    /// Free slots of each.
    pub(super) fn counts(&self) -> Vec<u32> {
        let fabric = self.free.fabric();
        if !self.are_domains {
            return (0..fabric.groups(1)).map(|leaf| self.free.count(1, leaf)).collect();
        }
        let slots = |&node: &NodeIndex| self.free.count(0, node);
        let count = |domain| fabric.domain_nodes(domain).iter().map(slots);
        (0..fabric.domains()).map(|domain| count(domain).fold(0, u32::saturating_add)).collect()
    }

    /// Appends so many slots of a block, those of lowest index, a node once per slot.
    pub(super) fn take(&self, block: u32, wanted: u32, taken: &mut Vec<NodeIndex>) {
        if !self.are_domains {
            self.free.take(1, block, wanted, taken);
            return;
        }
        let mut left = wanted;
        for &node in self.free.fabric().domain_nodes(block) {
            let slots = self.free.count(0, node).min(left);
            taken.extend(std::iter::repeat_n(node, slots as usize));
            left -= slots;
        }
    }
}
