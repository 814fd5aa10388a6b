//! Claims and releases of placements. A release exactly undoes its claim.

use topolane_fabric::{CableId, GroupIndex, NodeIndex};

use super::{Occupancy, OccupancyError};
use crate::amounts::Amounts;
use crate::gpus::GpuSet;
use crate::placement::Placement;
use crate::request::Share;

impl Occupancy {
    /// Takes the slots of a placement.
    ///
    /// # Errors
    /// Returns the first node that cannot take its slot; then nothing is claimed.
    pub fn claim(&mut self, placement: &Placement) -> Result<(), OccupancyError> {
        if let Some(cable) = self.not_free(placement, |cable| self.slots.is_free(cable)) {
            return Err(self.no_link(cable));
        }
        self.claim_nodes(placement)?;
        self.take_links(placement);
        Ok(())
    }

    /// A link of a placement that it cannot own. `is_free` says so of an uplink.
    fn not_free(
        &self,
        placement: &Placement,
        is_free: impl Fn(CableId) -> bool,
    ) -> Option<CableId> {
        let mut links = placement.links().iter().copied();
        if self.wired.is_some() {
            return links.next().filter(|_| !self.shares_no_owned_link(placement));
        }
        links.find(|&cable| !is_free(cable))
    }

    fn no_link(&self, cable: CableId) -> OccupancyError {
        let place = self.fabric.cable_place(cable);
        let node = place.map_or(0, |(level, group, ..)| self.fabric.node_range(level, group).start);
        OccupancyError { node }
    }

    fn claim_nodes(&mut self, placement: &Placement) -> Result<(), OccupancyError> {
        let Share::Part(amounts) = placement.share() else { return self.take_whole(placement) };
        for (index, (node, gpus)) in placement.slots().enumerate() {
            if node >= self.fabric.nodes() || !self.has_slot(node, amounts, gpus) {
                for (taken, gpus) in placement.slots().take(index) {
                    self.give_back(taken, amounts, gpus);
                }
                return Err(OccupancyError { node });
            }
            self.take(node, amounts, gpus);
        }
        Ok(())
    }

    /// Whether a node can take a slot, with these GPUs if the set is not empty.
    fn has_slot(&self, node: NodeIndex, amounts: &Amounts, gpus: GpuSet) -> bool {
        if gpus.is_empty() {
            self.fits_part(node, amounts) && self.counts_gpu_part(node, amounts)
        } else {
            self.takes_shares(node) && self.has_gpus(node, amounts, gpus)
        }
    }

    fn take_links(&mut self, placement: &Placement) {
        self.count_crossings(placement, |count| *count += 1);
        self.slots.take(placement.links());
        self.change_strangers(placement, true);
        if let (Some(load), Some(links)) = (&mut self.wired, placement.wired()) {
            load.enter(links);
        }
        if let (Some(network), Some(traffic)) = (&mut self.network, placement.traffic()) {
            network.enter(traffic);
        }
    }

    fn change_strangers(&mut self, placement: &Placement, comes: bool) {
        if placement.links().is_empty() {
            for &(level, group) in placement.crossed() {
                self.slots.change_strangers(&self.fabric, usize::from(level), group, comes);
            }
        }
    }

    /// Whether [`Occupancy::claim`] would succeed without sharing owned links, and whether links in service lead out of
    /// all groups that the placement crosses.
    pub fn has_room_for(&self, placement: &Placement) -> bool {
        let crossed = match placement.share() {
            Share::Part(_) if placement.spans_nodes() => placement.nodes(),
            _ => &[],
        };
        let mut crossed =
            placement.crossed().iter().copied().chain(crossed.iter().map(|&node| (0, node)));
        let is_tree = self.wired.is_none();
        let is_barred = |(level, group): (u8, GroupIndex)| {
            // On other wirings jobs may cross one group and share no link: see `wired`.
            if level > 0 && !is_tree {
                return false;
            }
            let others = if placement.is_isolated() {
                self.crossing(level.into(), group)
            } else {
                self.isolated_crossing(level.into(), group)
            };
            others > 0 || self.cut_off.contains(level.into(), group)
        };
        let keeps_links = if placement.links().is_empty() || !is_tree {
            !crossed.any(is_barred)
        } else {
            placement.links().iter().all(|&cable| self.slots.is_free(cable))
        };
        keeps_links
            && self.shares_no_owned_link(placement)
            && match placement.share() {
                Share::Whole => placement.held().all(|node| self.idle.contains(node)),
                Share::Part(amounts) => self.has_slots(placement, amounts),
            }
    }

    fn shares_no_owned_link(&self, placement: &Placement) -> bool {
        match (&self.wired, placement.wired()) {
            (Some(load), Some(links)) => load.has_room_for(links),
            _ => true,
        }
    }

    fn has_slots(&self, placement: &Placement, amounts: &Amounts) -> bool {
        let mut slots: Vec<(NodeIndex, GpuSet)> = placement.slots().collect();
        slots.sort_by_key(|&(node, _)| node);
        slots.chunk_by(|a, b| a.0 == b.0).all(|slots| {
            let node = slots[0].0;
            self.slots_on(node, amounts) as usize >= slots.len()
                && slots.iter().all(|&(_, gpus)| self.has_slot(node, amounts, gpus))
        })
    }

    /// Takes a placement whose job already runs on its nodes, in service or not. A driver calls this for running jobs
    /// when it starts.
    ///
    /// # Errors
    /// As [`Occupancy::claim`], except that nodes and links out of service are accepted.
    pub fn adopt(&mut self, placement: &Placement) -> Result<(), OccupancyError> {
        if let Some(cable) = self.not_free(placement, |cable| !self.slots.is_taken(cable)) {
            return Err(self.no_link(cable));
        }
        let out: Vec<NodeIndex> = placement
            .held()
            .filter(|&node| node < self.fabric.nodes() && !self.in_service.contains(node))
            .collect();
        for &node in &out {
            self.put_in_service(node, true);
        }
        let claimed = self.claim_nodes(placement);
        for &node in &out {
            self.put_in_service(node, false);
        }
        claimed?;
        self.take_links(placement);
        Ok(())
    }

    /// Gives back what [`Occupancy::claim`] took for this placement.
    pub fn release(&mut self, placement: &Placement) {
        match placement.share() {
            Share::Whole => self.give_back_whole(placement),
            Share::Part(amounts) => {
                placement.slots().for_each(|(node, gpus)| self.give_back(node, amounts, gpus));
            }
        }
        self.count_crossings(placement, |count| *count -= 1);
        self.slots.give_back(placement.links());
        self.change_strangers(placement, false);
        if let (Some(load), Some(links)) = (&mut self.wired, placement.wired()) {
            load.leave(links);
        }
        if let (Some(network), Some(traffic)) = (&mut self.network, placement.traffic()) {
            network.leave(traffic);
        }
    }

    /// Adds a placement on top of others, even if nodes have nothing left. This is for a state that covers a span of
    /// time, in which placements use the same node one after another.
    pub fn overlay(&mut self, placement: &Placement) {
        for node in placement.held() {
            match placement.share() {
                Share::Whole => self.set_whole(node, true),
                Share::Part(amounts) => self.overlay_amounts(node, amounts),
            }
            self.hold_slot(node);
        }
        self.take_links(placement);
    }

    /// Subtracts the amounts, down to 0. GPUs are only counted.
    fn overlay_amounts(&mut self, node: NodeIndex, amounts: &Amounts) {
        self.count_shares();
        let counted = self.fabric.resources().names().len();
        let free = &mut self.free[node as usize * counted..][..counted];
        for (free, amount) in free.iter_mut().zip(amounts.iter()) {
            *free = free.saturating_sub(amount);
        }
    }

    #[inline]
    fn take(&mut self, node: NodeIndex, amounts: &Amounts, gpus: GpuSet) {
        self.change_amounts(node, amounts, gpus, true);
        self.hold_slot(node);
    }

    #[inline]
    fn give_back(&mut self, node: NodeIndex, amounts: &Amounts, gpus: GpuSet) {
        self.change_amounts(node, amounts, gpus, false);
        self.give_back_slot(node);
    }

    /// Records one more slot held on a node.
    fn hold_slot(&mut self, node: NodeIndex) {
        self.held[node as usize] += 1;
        if self.held(node) == 1 {
            self.count_held(node..node + 1, true);
        }
        if self.idle.contains(node) {
            self.mark_busy(node..node + 1);
        }
        self.note_changes(node..node + 1);
    }

    /// Records one slot less held on a node.
    pub(super) fn give_back_slot(&mut self, node: NodeIndex) {
        let index = node as usize;
        self.held[index] -= 1;
        if self.held[index] == 0 {
            self.count_held(node..node + 1, false);
            if self.in_service.contains(node) {
                self.mark_idle(node..node + 1);
            }
        }
        self.note_changes(node..node + 1);
    }

    fn count_crossings(&mut self, placement: &Placement, change: impl Fn(&mut u32)) {
        let mut count = |level: usize, group: GroupIndex| {
            change(&mut self.crossing[level][group as usize]);
            if placement.is_isolated() {
                change(&mut self.isolated_crossing[level][group as usize]);
            }
        };
        for &(level, group) in placement.crossed() {
            count(level as usize, group);
        }
        if matches!(placement.share(), Share::Part(_)) && placement.spans_nodes() {
            let nodes = placement.nodes();
            let are_distinct = nodes.windows(2).all(|pair| pair[0] < pair[1]);
            for (index, &node) in nodes.iter().enumerate() {
                if are_distinct || !nodes[..index].contains(&node) {
                    count(0, node);
                }
            }
            for &node in nodes {
                if self.crossing[0][node as usize] > 0 {
                    self.crossed_nodes.insert(node);
                } else {
                    self.crossed_nodes.remove(node);
                }
            }
        }
    }
}
