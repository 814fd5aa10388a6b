//! Who holds what at this moment: the only mutable state.

use std::fmt;
use std::sync::Arc;

use topolane_fabric::resources::{CORES, MEMORY};
use topolane_fabric::{CableId, Fabric, GroupIndex, NodeIndex, NodeSet, Routing};

use crate::amounts::Amounts;
use crate::dedicated::uplink_slots::UplinkSlots;
use crate::free_slots::FreeSlots;
use crate::network_load::{LaidTraffic, NetworkLoad};
use crate::placement::Placement;
use crate::request::{Request, Share};
use crate::service::{CutOff, Region};
use crate::what_if::WhatIf;

/// Marks a node that is held whole, among the slots held on it.
const WHOLE: u32 = 1 << 31;

/// What is free of every resource of every node, idle nodes per group, and which placements may meet on which uplinks.
#[derive(Debug)]
pub struct Occupancy {
    fabric: Arc<Fabric>,
    /// What is free of every resource, node after node; empty until a part of a node is taken, so that whole nodes cost
    /// nothing here. What is held of a node that is held whole is not taken off.
    free: Vec<u64>,
    /// Slots held on each node, with [`WHOLE`] if one of them is the whole node.
    held: Vec<u32>,
    /// How many nodes are held whole.
    whole: u32,
    /// Nodes that placements which share nodes cross: `crossing` at level 0 is not 0.
    crossed_nodes: NodeSet,
    /// Nodes that were taken out of service.
    drained: NodeSet,
    /// All others that a link leads to.
    in_service: NodeSet,
    /// Nodes in service with no slot held.
    idle: NodeSet,
    /// Idle nodes of every group by level; level 0 is left empty.
    idle_in: Vec<Vec<u32>>,
    /// Placements that cross each group, by level; at level 0 only those that share nodes.
    crossing: Vec<Vec<u32>>,
    /// Those of them that own their links.
    isolated_crossing: Vec<Vec<u32>>,
    slots: UplinkSlots,
    cut_off: CutOff,
    /// What the placements send; `None` unless it is asked for.
    network: Option<Box<NetworkLoad>>,
    /// The empty machine; `None` in that one itself.
    empty: Option<Arc<Occupancy>>,
}

/// A claim that would hold more than there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OccupancyError {
    /// The node that cannot take the slot, or the first below the switch whose uplink is not free.
    pub node: NodeIndex,
}

impl fmt::Display for OccupancyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} has not enough left for the placement", self.node)
    }
}

impl std::error::Error for OccupancyError {}

impl Clone for Occupancy {
    fn clone(&self) -> Self {
        Occupancy { network: self.network.clone(), ..self.without_network() }
    }

    /// Copies into the memory already held: a queue does so at every pass.
    fn clone_from(&mut self, source: &Self) {
        // A field that is forgotten here does not compile.
        let Occupancy {
            fabric,
            free,
            held,
            whole,
            crossed_nodes,
            drained,
            in_service,
            idle,
            idle_in,
            crossing,
            isolated_crossing,
            slots,
            cut_off,
            network,
            empty,
        } = source;
        self.fabric.clone_from(fabric);
        self.free.clone_from(free);
        self.held.clone_from(held);
        self.whole = *whole;
        self.crossed_nodes.clone_from(crossed_nodes);
        self.drained.clone_from(drained);
        self.in_service.clone_from(in_service);
        self.idle.clone_from(idle);
        self.idle_in.clone_from(idle_in);
        self.crossing.clone_from(crossing);
        self.isolated_crossing.clone_from(isolated_crossing);
        self.slots.clone_from(slots);
        self.cut_off.clone_from(cut_off);
        self.network.clone_from(network);
        self.empty.clone_from(empty);
    }
}

impl Occupancy {
    /// Nobody on any node, all nodes in service.
    pub fn new(fabric: Arc<Fabric>) -> Self {
        let empty = Occupancy::unheld(fabric);
        Occupancy { empty: Some(Arc::new(empty.clone())), ..empty }
    }

    fn unheld(fabric: Arc<Fabric>) -> Self {
        let nodes = fabric.nodes();
        let per_group = |level| vec![0; fabric.groups(level) as usize];
        let slots = UplinkSlots::new(&fabric);
        let mut idle_in: Vec<Vec<u32>> = vec![Vec::new()];
        for level in 1..=fabric.depth() {
            let count = |group| fabric.node_range(level, group).len() as u32;
            idle_in.push((0..fabric.groups(level)).map(count).collect());
        }
        Occupancy {
            free: Vec::new(),
            held: vec![0; nodes as usize],
            whole: 0,
            crossed_nodes: NodeSet::empty(nodes),
            drained: NodeSet::empty(nodes),
            in_service: NodeSet::full(nodes),
            idle: NodeSet::full(nodes),
            idle_in,
            crossing: (0..=fabric.depth()).map(per_group).collect(),
            isolated_crossing: (0..=fabric.depth()).map(per_group).collect(),
            cut_off: CutOff::of(&fabric, &slots),
            slots,
            network: None,
            empty: None,
            fabric,
        }
    }

    /// The same, which keeps count of what placements send over a routing of its machine. To be asked for before any is
    /// claimed.
    #[must_use]
    pub fn with_network(self, routing: Arc<dyn Routing>) -> Self {
        Occupancy { network: Some(Box::new(NetworkLoad::new(routing))), ..self }
    }

    /// A copy that does not count what placements send: cheaper, for questions in which that plays no part.
    #[must_use]
    pub fn without_network(&self) -> Self {
        Occupancy {
            fabric: Arc::clone(&self.fabric),
            free: self.free.clone(),
            held: self.held.clone(),
            whole: self.whole,
            crossed_nodes: self.crossed_nodes.clone(),
            drained: self.drained.clone(),
            in_service: self.in_service.clone(),
            idle: self.idle.clone(),
            idle_in: self.idle_in.clone(),
            crossing: self.crossing.clone(),
            isolated_crossing: self.isolated_crossing.clone(),
            slots: self.slots.clone(),
            cut_off: self.cut_off.clone(),
            network: None,
            empty: self.empty.clone(),
        }
    }

    /// What the placements send, if it is counted.
    pub fn network(&self) -> Option<&NetworkLoad> {
        self.network.as_deref()
    }

    /// Says what time it is, seconds: what is lost to a job present counts for as long as it still runs.
    pub fn set_time(&mut self, now: f64) {
        if let Some(network) = &mut self.network {
            network.set_time(now);
        }
    }

    /// Changes when the job of a placement must have ended; answers the placement as it is then. To be called for a placement
    /// that is held.
    #[must_use]
    pub fn set_end(&mut self, placement: Arc<Placement>, end: f64) -> Arc<Placement> {
        let (Some(network), Some(traffic)) = (&mut self.network, placement.traffic()) else {
            return placement;
        };
        network.set_end(traffic.job(), end);
        let traffic = traffic.clone().until(end);
        Arc::new(Placement::clone(&placement).with_traffic(Some(traffic)))
    }

    /// What a request would send on these nodes, for its placement; `None` if that is not known or not counted.
    pub fn lay(&self, request: &Request, nodes: &[NodeIndex]) -> Option<LaidTraffic> {
        Some(self.network()?.newcomer(request)?.lay(nodes))
    }

    /// Node-seconds that the jobs present would lose each second to a request on these nodes; 0 if that is not counted.
    pub fn lost_by_others(&self, request: &Request, nodes: &[NodeIndex]) -> f64 {
        let newcomer = self.network().and_then(|network| network.newcomer(request));
        newcomer.map_or(0.0, |newcomer| newcomer.losses(&mut newcomer.outlook(), nodes).1)
    }

    /// The same machine, empty and with all nodes in service: what could be had at best.
    pub fn empty(&self) -> &Occupancy {
        self.empty.as_deref().unwrap_or(self)
    }

    /// The machine.
    pub fn fabric(&self) -> &Arc<Fabric> {
        &self.fabric
    }

    /// Nodes in service that no placement holds.
    pub fn idle(&self) -> &NodeSet {
        &self.idle
    }

    /// Nodes in service.
    pub fn in_service(&self) -> &NodeSet {
        &self.in_service
    }

    /// Number of idle nodes.
    #[inline]
    pub fn idle_nodes(&self) -> u32 {
        self.idle_in.last().map_or(0, |sites| sites.iter().sum())
    }

    /// Idle nodes of every group, by level; level 0 is empty (see [`Occupancy::idle`]).
    pub(crate) fn idle_counts(&self) -> &[Vec<u32>] {
        &self.idle_in
    }

    /// Idle nodes of a group of `level` >= 1.
    #[inline]
    pub fn idle_in(&self, level: usize, group: GroupIndex) -> u32 {
        self.idle_in[level][group as usize]
    }

    /// Placements that cross the group, and so may use its uplinks. At level 0 (the link of a
    /// node) only placements that leave room for others on the node are counted.
    #[inline]
    pub fn crossing(&self, level: usize, group: GroupIndex) -> u32 {
        self.crossing[level][group as usize]
    }

    /// Isolated placements that cross the group: no other may use its uplinks.
    #[inline]
    pub fn isolated_crossing(&self, level: usize, group: GroupIndex) -> u32 {
        self.isolated_crossing[level][group as usize]
    }

    /// Free slots of a switch of a group of a level from 1 to below the top, one bit each: what is left of its
    /// uplinks for jobs that own theirs. None where a placement without links of its own crosses the group, and
    /// none where a switch has more than 64 uplinks, or a leaf several switches.
    #[inline]
    pub fn free_uplink_slots(&self, level: usize, group: GroupIndex, switch: u32) -> u64 {
        self.slots.free(level, group, switch)
    }

    pub(crate) fn slots(&self) -> &UplinkSlots {
        &self.slots
    }

    /// Appends the cables of some free slots of a switch (level, group, number).
    pub fn cables_of(
        &self,
        switch: (usize, GroupIndex, u32),
        slots: u64,
        cables: &mut Vec<CableId>,
    ) {
        self.slots.cables(switch, slots, cables);
    }

    /// Takes a cable out of service, or puts it back. A placement that owns it keeps it. A node that no link in service leads to is
    /// out of service too; a group that none leaves is a part of the machine by itself. What is no cable of the
    /// tree is passed over.
    pub fn set_link_in_service(&mut self, cable: CableId, in_service: bool) {
        if self.fabric.cable_place(cable).is_none() {
            return;
        }
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

    /// Cores of a node that no placement holds.
    pub fn cores_free(&self, node: NodeIndex) -> u32 {
        if self.is_whole(node) { 0 } else { self.free(node)[CORES] as u32 }
    }

    /// Memory of a node that no share of it holds, bytes; a node held whole does not count.
    pub fn memory_free(&self, node: NodeIndex) -> u64 {
        self.free(node)[MEMORY]
    }

    /// What no share of a node holds of each resource, by index; a node held whole does not count.
    #[inline]
    pub fn free(&self, node: NodeIndex) -> &[u64] {
        if self.free.is_empty() {
            return self.fabric.counts(node);
        }
        let counted = self.fabric.resources().names().len();
        &self.free[node as usize * counted..][..counted]
    }

    /// The same to change.
    fn free_mut(&mut self, node: NodeIndex) -> &mut [u64] {
        if self.free.is_empty() {
            let counts = (0..self.fabric.nodes()).flat_map(|node| self.fabric.counts(node));
            self.free = counts.copied().collect();
        }
        let counted = self.fabric.resources().names().len();
        &mut self.free[node as usize * counted..][..counted]
    }

    fn is_whole(&self, node: NodeIndex) -> bool {
        self.held[node as usize] & WHOLE != 0
    }

    fn set_whole(&mut self, node: NodeIndex, whole: bool) {
        if self.is_whole(node) != whole {
            self.held[node as usize] ^= WHOLE;
            self.whole = if whole { self.whole + 1 } else { self.whole - 1 };
        }
    }

    /// Whether any node is held whole.
    pub fn holds_whole_nodes(&self) -> bool {
        self.whole > 0
    }

    /// Nodes with a placement of several nodes that shares them.
    pub fn crossed_nodes(&self) -> &NodeSet {
        &self.crossed_nodes
    }

    /// Slots held on a node.
    pub fn held(&self, node: NodeIndex) -> u32 {
        self.held[node as usize] & !WHOLE
    }

    /// The room there is for a request.
    pub fn free_slots(&self, request: &Request) -> FreeSlots<'_> {
        FreeSlots::of(self, request)
    }

    /// Whether the node can take one more slot of that share.
    #[inline]
    pub fn fits(&self, node: NodeIndex, share: &Share) -> bool {
        match share {
            Share::Whole => self.idle.contains(node),
            Share::Part(amounts) => {
                !self.is_whole(node)
                    && amounts.fit_in(self.free(node))
                    && self.in_service.contains(node)
            }
        }
    }

    /// How many slots of these amounts the node has.
    #[inline]
    pub fn slots_on(&self, node: NodeIndex, amounts: &Amounts) -> u32 {
        if self.is_whole(node) || !self.in_service.contains(node) {
            return 0;
        }
        amounts.slots_in(self.free(node))
    }

    /// Takes a placement's slots.
    ///
    /// # Errors
    /// The first node that cannot take its slot; nothing is claimed then.
    pub fn claim(&mut self, placement: &Placement) -> Result<(), OccupancyError> {
        if let Some(&cable) = placement.links().iter().find(|&&cable| !self.slots.is_free(cable)) {
            return Err(self.no_link(cable));
        }
        self.claim_nodes(placement)?;
        self.take_links(placement);
        Ok(())
    }

    fn no_link(&self, cable: CableId) -> OccupancyError {
        let place = self.fabric.cable_place(cable);
        let node = place.map_or(0, |(level, group, ..)| self.fabric.node_range(level, group).start);
        OccupancyError { node }
    }

    fn claim_nodes(&mut self, placement: &Placement) -> Result<(), OccupancyError> {
        let share = placement.share();
        for (index, node) in placement.held().enumerate() {
            if node >= self.fabric.nodes() || !self.fits(node, share) {
                for taken in placement.held().take(index) {
                    self.give_back(taken, share);
                }
                return Err(OccupancyError { node });
            }
            self.take(node, share);
        }
        Ok(())
    }

    fn take_links(&mut self, placement: &Placement) {
        self.count_crossings(placement, |count| *count += 1);
        self.slots.take(placement.links());
        self.change_strangers(placement, true);
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

    /// Takes a placement that is known to hold its nodes already, in service or not: a running
    /// job found by a driver that starts.
    ///
    /// # Errors
    /// As [`Occupancy::claim`], but a node or a link out of service is no obstacle.
    pub fn adopt(&mut self, placement: &Placement) -> Result<(), OccupancyError> {
        if let Some(&cable) = placement.links().iter().find(|&&cable| self.slots.is_taken(cable)) {
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

    /// Gives back what [`Occupancy::claim`] took for the same placement.
    pub fn release(&mut self, placement: &Placement) {
        for node in placement.held() {
            self.give_back(node, placement.share());
        }
        self.count_crossings(placement, |count| *count -= 1);
        self.slots.give_back(placement.links());
        self.change_strangers(placement, false);
        if let (Some(network), Some(traffic)) = (&mut self.network, placement.traffic()) {
            network.leave(traffic);
        }
    }

    /// Lays a placement over whatever is there, as far as there is something left: for a state
    /// that stands for a span of time, in which placements hold the same node one after another.
    pub fn overlay(&mut self, placement: &Placement) {
        for node in placement.held() {
            match placement.share() {
                Share::Whole => self.set_whole(node, true),
                Share::Part(amounts) => {
                    for (free, amount) in self.free_mut(node).iter_mut().zip(amounts.iter()) {
                        *free = free.saturating_sub(amount);
                    }
                }
            }
            self.held[node as usize] += 1;
            if self.idle.contains(node) {
                self.mark_busy(node);
            }
        }
        self.take_links(placement);
    }

    /// Takes a node out of service, or puts it back. What holds it keeps it. A node that is not on
    /// the machine is passed over.
    pub fn set_in_service(&mut self, node: NodeIndex, in_service: bool) {
        if node >= self.fabric.nodes() {
            return;
        }
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

    fn put_in_service(&mut self, node: NodeIndex, in_service: bool) {
        if self.in_service.contains(node) == in_service {
            return;
        }
        if in_service {
            self.in_service.insert(node);
            if self.held[node as usize] == 0 {
                self.mark_idle(node);
            }
        } else {
            self.in_service.remove(node);
            if self.held[node as usize] == 0 {
                self.mark_busy(node);
            }
        }
    }

    /// A state to try things on; dropping it undoes them.
    pub fn what_if(&mut self) -> WhatIf<'_> {
        WhatIf::new(self, None)
    }

    /// The same, in which nothing is counted that placements send: cheaper, for questions in which that plays no part.
    pub fn what_if_without_network(&mut self) -> WhatIf<'_> {
        let network = self.network.take();
        WhatIf::new(self, network)
    }

    pub(crate) fn restore_network(&mut self, network: Box<NetworkLoad>) {
        self.network = Some(network);
    }

    #[inline]
    fn take(&mut self, node: NodeIndex, share: &Share) {
        let index = node as usize;
        match share {
            Share::Whole => self.set_whole(node, true),
            Share::Part(amounts) => {
                for (free, amount) in self.free_mut(node).iter_mut().zip(amounts.iter()) {
                    *free -= amount;
                }
            }
        }
        self.held[index] += 1;
        if self.held(node) == 1 {
            self.mark_busy(node);
        }
    }

    #[inline]
    fn give_back(&mut self, node: NodeIndex, share: &Share) {
        let index = node as usize;
        match share {
            Share::Whole => self.set_whole(node, false),
            Share::Part(amounts) => {
                for (free, amount) in self.free_mut(node).iter_mut().zip(amounts.iter()) {
                    *free += amount;
                }
            }
        }
        self.held[index] -= 1;
        if self.held[index] == 0 && self.in_service.contains(node) {
            self.mark_idle(node);
        }
    }

    #[inline]
    fn mark_idle(&mut self, node: NodeIndex) {
        self.idle.insert(node);
        for level in 1..=self.fabric.depth() {
            self.idle_in[level][self.fabric.group(level, node) as usize] += 1;
        }
    }

    #[inline]
    fn mark_busy(&mut self, node: NodeIndex) {
        self.idle.remove(node);
        for level in 1..=self.fabric.depth() {
            self.idle_in[level][self.fabric.group(level, node) as usize] -= 1;
        }
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
