//! Who holds what at this moment: the only mutable state.

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
use crate::job_traffic::LaidTraffic;
use crate::network_load::NetworkLoad;
use crate::placement::Placement;
use crate::request::{Request, Share};
use crate::service::CutOff;
pub(crate) use blocks::BlockSlots;
use gpus::Gpus;
use part_slots::PartSlots;
pub(crate) use part_slots::{Mark, SharedSlots};

/// Marks a node that is held whole, among the slots held on it.
const WHOLE: u32 = 1 << 31;

/// What is free of every resource of every node, idle nodes per group, and which placements may meet on which uplinks.
#[derive(Debug)]
pub struct Occupancy {
    fabric: Arc<Fabric>,
    /// What is free of every resource, node after node; empty until a part of a node is taken, so that whole nodes cost
    /// nothing here. What is held of a node that is held whole is not taken off.
    free: Vec<u64>,
    gpus: Gpus,
    part_slots: PartSlots,
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
    /// How many times a node or a link was taken out of service or put back.
    service_changes: u64,
    /// Nodes in service with no slot held.
    idle: NodeSet,
    /// Idle nodes of every group by level; level 0 is left empty.
    idle_in: Vec<Vec<u32>>,
    idle_by_block: BlockSlots,
    /// Nodes of every block on which a slot is held.
    held_in_blocks: Vec<u32>,
    /// Placements that cross each group, by level; at level 0 only those that share nodes.
    crossing: Vec<Vec<u32>>,
    /// Those of them that own their links.
    isolated_crossing: Vec<Vec<u32>>,
    slots: UplinkSlots,
    cut_off: CutOff,
    /// What the placements send; `None` unless it is asked for.
    network: Option<Box<NetworkLoad>>,
    /// What requests to expect, for policies that prepare for them.
    demand: Arc<Demand>,
    /// The most nodes of a group of each level; at level 0 a node.
    largest: Arc<[u32]>,
    /// The fewest nodes of a leaf.
    smallest_leaf: u32,
    /// By level and size the most nodes of a block of the empty machine; see [`block_sizes`].
    largest_blocks: Arc<[Vec<(u32, u32)>]>,
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
            gpus,
            part_slots,
            held,
            whole,
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
        self.whole = *whole;
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
    /// No job on any node, all nodes in service.
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
            whole: 0,
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
            gpus: self.gpus.clone(),
            part_slots: self.part_slots.clone(),
            held: self.held.clone(),
            whole: self.whole,
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
            cut_off: self.cut_off.clone(),
            network: None,
            demand: Arc::clone(&self.demand),
            largest: Arc::clone(&self.largest),
            smallest_leaf: self.smallest_leaf,
            largest_blocks: Arc::clone(&self.largest_blocks),
            empty: self.empty.clone(),
        }
    }

    /// What the placements send, if it is counted.
    pub fn network(&self) -> Option<&NetworkLoad> {
        self.network.as_deref()
    }

    /// The requests seen so far, by kind; none unless a scheduler counts them.
    pub fn demand(&self) -> &Arc<Demand> {
        &self.demand
    }

    /// Says which requests to expect.
    pub fn set_demand(&mut self, demand: Arc<Demand>) {
        self.demand = demand;
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

    /// What a request sends in a placement, whose GPUs are named; `None` if that is not known or not counted.
    pub fn lay(&self, request: &Request, placement: &Placement) -> Option<LaidTraffic> {
        Some(self.newcomer(request)?.lay(placement))
    }

    /// Node-seconds that the jobs present would lose each second to a request on these nodes; 0 if that is not counted.
    pub fn lost_by_others(&self, request: &Request, nodes: &[NodeIndex]) -> f64 {
        let newcomer = self.newcomer(request);
        newcomer.map_or(0.0, |newcomer| newcomer.losses(&mut newcomer.outlook(), nodes).1)
    }

    /// The same machine, empty and with all nodes in service: what could be had at best.
    pub fn empty(&self) -> &Occupancy {
        self.empty.as_deref().unwrap_or(self)
    }

    /// The most nodes of a group of a level.
    #[inline]
    pub fn largest_group(&self, level: usize) -> u32 {
        self.largest[level]
    }

    /// The fewest nodes of a leaf.
    pub(crate) fn smallest_leaf(&self) -> u32 {
        self.smallest_leaf
    }

    /// Level and size of the smallest blocks ([`block_sizes`]) one of which has `nodes` nodes; at level 1 a leaf.
    pub(crate) fn smallest_block(&self, nodes: u32) -> Option<(usize, u32)> {
        let level = (1..=self.fabric.depth()).find(|&level| self.largest_group(level) >= nodes)?;
        if level == 1 {
            return Some((1, 1));
        }
        let mut blocks = self.largest_blocks[level].iter();
        blocks.find(|&&(_, most)| most >= nodes).map(|&(size, _)| (level, size))
    }

    /// Whether each node of the empty machine is one slot for the request.
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

    /// Whether it is what [`Occupancy::empty`] gives.
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
    /// none where a switch has more than 64 uplinks, or all rails share it. On rails, `switch` stands for the switches of
    /// that number in all of them: a slot is free if it is in every one.
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

    /// Nodes with a placement of several nodes that shares them.
    pub fn crossed_nodes(&self) -> &NodeSet {
        &self.crossed_nodes
    }

    /// Slots held on a node.
    pub fn held(&self, node: NodeIndex) -> u32 {
        self.held[node as usize] & !WHOLE
    }

    /// Takes out what placements send, until [`restore_network`](Occupancy::restore_network).
    pub(crate) fn take_network(&mut self) -> Option<Box<NetworkLoad>> {
        self.network.take()
    }

    pub(crate) fn restore_network(&mut self, network: Box<NetworkLoad>) {
        self.network = Some(network);
    }

    /// Counts nodes of one leaf as idle that were not.
    #[inline]
    fn mark_idle(&mut self, nodes: Range<NodeIndex>) {
        for level in 1..=self.fabric.depth() {
            let group = self.fabric.group(level, nodes.start);
            self.idle_in[level][group as usize] += nodes.len() as u32;
        }
        self.idle_by_block.change(&self.fabric, nodes.clone(), true);
        nodes.for_each(|node| self.idle.insert(node));
    }

    /// Counts nodes of one leaf as not idle that were.
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

/// Sizes of the blocks of a level from 2 on, the smallest first: 2, 4, 8, ... of the groups directly below a group, from a multiple
/// of that number on, and at last all of them.
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
