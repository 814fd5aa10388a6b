//! The occupancy: which job holds what at this moment. It is the only mutable state.

mod blocks;
mod claims;
mod free;
mod gpus;
mod part_slots;
mod service;
mod whole;

use std::fmt;
use std::iter::successors;
use std::ops::Range;
use std::sync::Arc;

use topolane_fabric::{CableId, Fabric, GroupIndex, NodeIndex, NodeSet, Routing};

use crate::dedicated::uplink_slots::UplinkSlots;
use crate::demand::Demand;
use crate::detours::DetourLoad;
use crate::job_traffic::LaidTraffic;
use crate::kept_bound::KeptBound;
use crate::link_load::{LinkLoad, WiredLoad};
use crate::network_load::NetworkLoad;
use crate::placement::Placement;
use crate::request::{Request, Share};
use crate::service::CutOff;
pub(crate) use blocks::BlockSlots;
use gpus::Gpus;
use part_slots::PartSlots;
pub(crate) use part_slots::{Mark, SharedSlots};

/// A bit in `held` that marks a node held whole.
const WHOLE: u32 = 1 << 31;

/// The free resources of every node, the idle nodes per group, and the placements that may use each uplink.
#[derive(Debug)]
pub struct Occupancy {
    fabric: Arc<Fabric>,
    /// The free amount of every resource, node after node. Empty until a job takes a part of a node, so that whole
    /// nodes cost nothing here. A job that holds a whole node does not reduce it.
    free: Vec<u64>,
    gpus: Gpus,
    part_slots: PartSlots,
    /// The number of slots held on each node, with [`WHOLE`] set if a job holds the whole node.
    held: Vec<u32>,
    /// Nodes whose link is used by a placement that shares the node: `crossing` at level 0 is not 0.
    crossed_nodes: NodeSet,
    /// Nodes that were taken out of service.
    drained: NodeSet,
    /// All other nodes that a link in service leads to.
    in_service: NodeSet,
    /// The number of times a node or link was taken out of service or put back.
    service_changes: u64,
    /// Nodes in service on which no slot is held.
    idle: NodeSet,
    /// By level: the idle nodes of every group. Level 0 stays empty.
    idle_in: Vec<Vec<u32>>,
    idle_by_block: BlockSlots,
    /// For every block, the nodes on which a slot is held.
    held_in_blocks: Vec<u32>,
    /// By level: the number of placements that cross each group. At level 0, only placements that share nodes count.
    crossing: Vec<Vec<u32>>,
    /// By level: the number of isolated placements that cross each group.
    isolated_crossing: Vec<Vec<u32>>,
    slots: UplinkSlots,
    /// The load of a wiring that is not a tree.
    wired: Option<Box<WiredLoad>>,
    cut_off: CutOff,
    /// What the placements send; `None` if not tracked.
    network: Option<Box<NetworkLoad>>,
    /// The requests to expect, for policies that prepare for them.
    demand: Arc<Demand>,
    /// By level: the most nodes in any group. At level 0 this is 1.
    largest: Arc<[u32]>,
    /// The fewest nodes of a leaf.
    smallest_leaf: u32,
    /// By level from 2: each block size with the most nodes of such a block on the empty machine; see [`block_sizes`].
    largest_blocks: Arc<[Vec<(u32, u32)>]>,
    /// The empty machine; `None` in the empty machine itself.
    empty: Option<Arc<Occupancy>>,
}

/// The error for a claim of something that is not free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OccupancyError {
    /// The node that cannot take the slot, or the first node below the switch whose uplink is not free.
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

    /// Reuses memory that is already allocated, because a queue copies the state at every pass.
    fn clone_from(&mut self, source: &Self) {
        // Destructure without `..`, so that a new field that is not copied fails to compile.
        let Occupancy {
            fabric,
            free,
            gpus,
            part_slots,
            held,
            crossed_nodes,
            drained,
            in_service,
            service_changes,
            idle,
            idle_in,
            idle_by_block,
            held_in_blocks,
            crossing,
            isolated_crossing,
            slots,
            wired,
            cut_off,
            network,
            demand,
            largest,
            smallest_leaf,
            largest_blocks,
            empty,
        } = source;
        self.fabric.clone_from(fabric);
        self.free.clone_from(free);
        self.gpus.clone_from(gpus);
        self.part_slots.clone_from(part_slots);
        self.held.clone_from(held);
        self.crossed_nodes.clone_from(crossed_nodes);
        self.drained.clone_from(drained);
        self.in_service.clone_from(in_service);
        self.service_changes = *service_changes;
        self.idle.clone_from(idle);
        self.idle_in.clone_from(idle_in);
        self.idle_by_block.clone_from(idle_by_block);
        self.held_in_blocks.clone_from(held_in_blocks);
        self.crossing.clone_from(crossing);
        self.isolated_crossing.clone_from(isolated_crossing);
        self.slots.clone_from(slots);
        self.wired.clone_from(wired);
        self.cut_off.clone_from(cut_off);
        self.network.clone_from(network);
        self.demand.clone_from(demand);
        self.largest.clone_from(largest);
        self.smallest_leaf = *smallest_leaf;
        self.largest_blocks.clone_from(largest_blocks);
        self.empty.clone_from(empty);
    }
}

impl Occupancy {
    /// Returns the state of an idle machine with all nodes in service.
    pub fn new(fabric: Arc<Fabric>) -> Self {
        let empty = Occupancy::unheld(fabric);
        Occupancy { empty: Some(Arc::new(empty.clone())), ..empty }
    }

    fn unheld(fabric: Arc<Fabric>) -> Self {
        let nodes = fabric.nodes();
        let per_group = |level| vec![0; fabric.groups(level) as usize];
        let size = |level, group| fabric.node_range(level, group).len() as u32;
        let largest =
            |level| (0..fabric.groups(level)).map(|group| size(level, group)).max().unwrap_or(0);
        let smallest_leaf = (0..fabric.groups(1)).map(|leaf| size(1, leaf)).min().unwrap_or(0);
        let slots = UplinkSlots::new(&fabric);
        let mut idle_in: Vec<Vec<u32>> = vec![Vec::new()];
        for level in 1..=fabric.depth() {
            idle_in.push((0..fabric.groups(level)).map(|group| size(level, group)).collect());
        }
        Occupancy {
            free: Vec::new(),
            gpus: Gpus::new(&fabric),
            part_slots: PartSlots::default(),
            held: vec![0; nodes as usize],
            crossed_nodes: NodeSet::empty(nodes),
            drained: NodeSet::empty(nodes),
            in_service: NodeSet::full(nodes),
            service_changes: 0,
            idle: NodeSet::full(nodes),
            idle_in,
            idle_by_block: BlockSlots::all(&fabric),
            held_in_blocks: vec![0; fabric.blocks() as usize],
            crossing: (0..=fabric.depth()).map(per_group).collect(),
            isolated_crossing: (0..=fabric.depth()).map(per_group).collect(),
            cut_off: CutOff::of(&fabric, &slots),
            slots,
            wired: WiredLoad::of(&fabric),
            network: None,
            demand: Arc::default(),
            largest: (0..=fabric.depth()).map(largest).collect(),
            smallest_leaf,
            largest_blocks: (0..=fabric.depth())
                .map(|level| largest_blocks(&fabric, level))
                .collect(),
            empty: None,
            fabric,
        }
    }

    /// Returns the same state, which from now on tracks the traffic of placements over a routing. Call this before any
    /// claim.
    #[must_use]
    pub fn with_network(self, routing: Arc<dyn Routing>) -> Self {
        Occupancy { network: Some(Box::new(NetworkLoad::new(routing))), ..self }
    }

    /// Returns a copy that does not track traffic. It is cheaper, for questions where traffic does not matter.
    #[must_use]
    pub fn without_network(&self) -> Self {
        Occupancy {
            fabric: Arc::clone(&self.fabric),
            free: self.free.clone(),
            gpus: self.gpus.clone(),
            part_slots: self.part_slots.clone(),
            held: self.held.clone(),
            crossed_nodes: self.crossed_nodes.clone(),
            drained: self.drained.clone(),
            in_service: self.in_service.clone(),
            service_changes: self.service_changes,
            idle: self.idle.clone(),
            idle_in: self.idle_in.clone(),
            idle_by_block: self.idle_by_block.clone(),
            held_in_blocks: self.held_in_blocks.clone(),
            crossing: self.crossing.clone(),
            isolated_crossing: self.isolated_crossing.clone(),
            slots: self.slots.clone(),
            wired: self.wired.clone(),
            cut_off: self.cut_off.clone(),
            network: None,
            demand: Arc::clone(&self.demand),
            largest: Arc::clone(&self.largest),
            smallest_leaf: self.smallest_leaf,
            largest_blocks: Arc::clone(&self.largest_blocks),
            empty: self.empty.clone(),
        }
    }

    /// The traffic of the placements, if it is tracked.
    pub fn network(&self) -> Option<&NetworkLoad> {
        self.network.as_deref()
    }

    /// The requests seen so far, by kind; empty unless a scheduler counts them.
    pub fn demand(&self) -> &Arc<Demand> {
        &self.demand
    }

    /// Sets which requests to expect.
    pub fn set_demand(&mut self, demand: Arc<Demand>) {
        self.demand = demand;
    }

    /// Sets the time in seconds. The loss of a running job counts only until its end.
    pub fn set_time(&mut self, now: f64) {
        if let Some(network) = &mut self.network {
            network.set_time(now);
        }
    }

    /// Changes the time by which the job of a held placement must have ended. Returns the changed placement.
    #[must_use]
    pub fn set_end(&mut self, placement: Arc<Placement>, end: f64) -> Arc<Placement> {
        let (Some(network), Some(traffic)) = (&mut self.network, placement.traffic()) else {
            return placement;
        };
        network.set_end(traffic.job(), end);
        let traffic = traffic.clone().until(end);
        Arc::new(Placement::clone(&placement).with_traffic(Some(traffic)))
    }

    /// The traffic of a request in a placement whose GPUs are named; `None` if unknown or not tracked.
    pub fn lay(&self, request: &Request, placement: &Placement) -> Option<LaidTraffic> {
        Some(self.newcomer(request)?.lay(placement))
    }

    /// Node-seconds that running jobs would lose per second if the request got these nodes; 0 if traffic is not
    /// tracked.
    pub fn lost_by_others(&self, request: &Request, nodes: &[NodeIndex]) -> f64 {
        let newcomer = self.newcomer(request);
        newcomer.map_or(0.0, |newcomer| newcomer.losses(&mut newcomer.outlook(), nodes).1)
    }

    /// The same machine without jobs and with all nodes in service.
    pub fn empty(&self) -> &Occupancy {
        self.empty.as_deref().unwrap_or(self)
    }

    /// The most nodes in any group of a level.
    #[inline]
    pub fn largest_group(&self, level: usize) -> u32 {
        self.largest[level]
    }

    /// The fewest nodes of any leaf.
    pub(crate) fn smallest_leaf(&self) -> u32 {
        self.smallest_leaf
    }

    /// The level and size of the smallest kind of block ([`block_sizes`]) of which one has at least `nodes` nodes.
    /// Level 1 means a leaf.
    pub(crate) fn smallest_block(&self, nodes: u32) -> Option<(usize, u32)> {
        let level = (1..=self.fabric.depth()).find(|&level| self.largest_group(level) >= nodes)?;
        if level == 1 {
            return Some((1, 1));
        }
        let mut blocks = self.largest_blocks[level].iter();
        blocks.find(|&&(_, most)| most >= nodes).map(|&(size, _)| (level, size))
    }

    /// Whether every node of the empty machine has exactly one slot for the request.
    pub(crate) fn any_node_holds(&self, request: &Request) -> bool {
        let is_counted = !request.stacked && request.slots.is_none();
        request.eligible.is_none()
            && match &request.share {
                Share::Whole => true,
                Share::Part(amounts) => {
                    is_counted && self.empty().part_total(amounts) == self.fabric.nodes()
                }
            }
    }

    /// Whether this is the empty machine that [`Occupancy::empty`] returns.
    pub(crate) fn is_best(&self) -> bool {
        self.empty.is_none()
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

    /// The number of idle nodes.
    #[inline]
    pub fn idle_nodes(&self) -> u32 {
        self.idle_in.last().map_or(0, |sites| sites.iter().sum())
    }

    /// By level: the idle nodes of every group. Level 0 is empty (see [`Occupancy::idle`]).
    pub(crate) fn idle_counts(&self) -> &[Vec<u32>] {
        &self.idle_in
    }

    /// The number of idle nodes in a group of level 1 or above.
    #[inline]
    pub fn idle_in(&self, level: usize, group: GroupIndex) -> u32 {
        self.idle_in[level][group as usize]
    }

    /// The number of placements that cross the group and so may use its uplinks. At level 0 (the link of a node), only
    /// placements that share the node count.
    #[inline]
    pub fn crossing(&self, level: usize, group: GroupIndex) -> u32 {
        self.crossing[level][group as usize]
    }

    /// The number of isolated placements that cross the group. No other job may use its uplinks.
    #[inline]
    pub fn isolated_crossing(&self, level: usize, group: GroupIndex) -> u32 {
        self.isolated_crossing[level][group as usize]
    }

    /// The free slots of a switch, one bit each: the uplinks that a job could still own. The level is at least 1 and
    /// below the top. Empty if a placement without links of its own crosses the group, if the switch has more than 64
    /// uplinks, or if all rails share it. With rails, `switch` stands for the switches of that number in all rails, and
    /// a slot is free if it is free in every rail.
    #[inline]
    pub fn free_uplink_slots(&self, level: usize, group: GroupIndex, switch: u32) -> u64 {
        self.slots.free(level, group, switch)
    }

    pub(crate) fn slots(&self) -> &UplinkSlots {
        &self.slots
    }

    /// The links that placements may use on a wiring that is not a tree.
    pub(crate) fn used_links(&self) -> Option<&LinkLoad> {
        self.wired.as_deref().map(WiredLoad::used)
    }

    /// The bound of idle nodes with links that no placement uses, on a wiring that is not a tree.
    pub(crate) fn kept_bound(&self) -> Option<&KeptBound> {
        self.wired.as_deref().map(WiredLoad::bound)
    }

    /// What placements leave to each other of the cables between groups, on a dragonfly with detours.
    pub(crate) fn detours(&self) -> Option<&DetourLoad> {
        self.wired.as_deref().and_then(WiredLoad::detours)
    }

    /// The links that some placement uses and no other may use, on a wiring that is not a tree.
    pub(crate) fn owned_links(&self) -> Option<&LinkLoad> {
        self.wired.as_deref().map(WiredLoad::owned)
    }

    /// Appends the cables of some free slots of a switch, which is given by level, group and number.
    pub fn cables_of(
        &self,
        switch: (usize, GroupIndex, u32),
        slots: u64,
        cables: &mut Vec<CableId>,
    ) {
        self.slots.cables(switch, slots, cables);
    }

    /// Nodes shared by a placement of several nodes.
    pub fn crossed_nodes(&self) -> &NodeSet {
        &self.crossed_nodes
    }

    /// The number of slots held on a node.
    pub fn held(&self, node: NodeIndex) -> u32 {
        self.held[node as usize] & !WHOLE
    }

    /// Removes the traffic of placements, until [`restore_network`](Occupancy::restore_network) puts it back.
    pub(crate) fn take_network(&mut self) -> Option<Box<NetworkLoad>> {
        self.network.take()
    }

    pub(crate) fn restore_network(&mut self, network: Box<NetworkLoad>) {
        self.network = Some(network);
    }

    /// Marks busy nodes of one leaf as idle.
    #[inline]
    fn mark_idle(&mut self, nodes: Range<NodeIndex>) {
        if let Some(load) = &mut self.wired {
            load.forget_bound();
        }
        for level in 1..=self.fabric.depth() {
            let group = self.fabric.group(level, nodes.start);
            self.idle_in[level][group as usize] += nodes.len() as u32;
        }
        self.idle_by_block.change(&self.fabric, nodes.clone(), true);
        nodes.for_each(|node| self.idle.insert(node));
    }

    /// Marks idle nodes of one leaf as busy.
    #[inline]
    fn mark_busy(&mut self, nodes: Range<NodeIndex>) {
        for level in 1..=self.fabric.depth() {
            let group = self.fabric.group(level, nodes.start);
            self.idle_in[level][group as usize] -= nodes.len() as u32;
        }
        self.idle_by_block.change(&self.fabric, nodes.clone(), false);
        nodes.for_each(|node| self.idle.remove(node));
    }
}

/// The sizes of the blocks of a level, the smallest first; the level is at least 2. A block is 2, 4, 8, ...
/// neighbouring subgroups of a group, aligned to a multiple of that number, or all of them.
pub(crate) fn block_sizes(fabric: &Fabric, level: usize) -> impl Iterator<Item = u32> + use<> {
    let children = |group| fabric.children(level, group).len() as u32;
    let all = (0..fabric.groups(level)).map(children).max().unwrap_or(1);
    let powers = successors(Some(2u32), |size| size.checked_mul(2));
    powers.take_while(move |&size| size < all).chain([all])
}

fn largest_blocks(fabric: &Fabric, level: usize) -> Vec<(u32, u32)> {
    if level < 2 {
        return Vec::new();
    }
    let nodes = |groups: Range<GroupIndex>| {
        groups.map(|group| fabric.node_range(level - 1, group).len() as u32).sum::<u32>()
    };
    let most = |size: u32| {
        let blocks = (0..fabric.groups(level)).flat_map(|group| {
            let Range { start, end } = fabric.children(level, group);
            let block = move |first: GroupIndex| first..end.min(first.saturating_add(size));
            (start..end).step_by(size.max(1) as usize).map(block)
        });
        (size, blocks.map(nodes).max().unwrap_or(0))
    };
    block_sizes(fabric, level).map(most).collect()
}
