//! Tracks what is free of each GPU, and chooses the GPUs that a placement gets.

use std::collections::BTreeMap;
use std::sync::Arc;

use topolane_fabric::{Fabric, NodeIndex};

use super::Occupancy;
use crate::amounts::{Amounts, WHOLE_GPU};
use crate::gpus::{GpuLayout, GpuSet, MOST_GPUS, NodeGpus, NodeGpusMut};
use crate::placement::Placement;
use crate::request::Share;

/// What is free of every GPU of the machine.
#[derive(Debug, Clone)]
pub(super) struct Gpus {
    /// `None` if GPUs are not tracked one by one: there are none, or too many on one node.
    layout: Option<Arc<GpuLayout>>,
    /// Free thousandths of every GPU, [`GpuLayout::most`] entries per node. Empty until a slot takes GPUs, so that
    /// whole nodes cost nothing here.
    free: Vec<u16>,
}

impl Gpus {
    pub(super) fn new(fabric: &Fabric) -> Self {
        Gpus { layout: GpuLayout::of(fabric).map(Arc::new), free: Vec::new() }
    }
}

/// The GPUs of a node on which no job holds a GPU; then those of a node held whole.
static ALL_FREE: [u16; MOST_GPUS] = [WHOLE_GPU; MOST_GPUS];
static NONE_FREE: [u16; MOST_GPUS] = [0; MOST_GPUS];

impl Occupancy {
    /// For each GPU of a node, by index, its free thousandths: 1000 if it is wholly free, 540 if jobs hold 460. All 0
    /// if a job holds the whole node. Empty if the node has no GPU, or if some node of the machine has more than
    /// [`MOST_GPUS`]. Nodes out of service are treated like others.
    ///
    /// GPUs that a placement holds without naming them ([`Occupancy::name_gpus`]) appear as free here;
    /// [`Occupancy::free`] counts them.
    pub fn gpus_free(&self, node: NodeIndex) -> &[u16] {
        let Some(layout) = &self.gpus.layout else { return &[] };
        let gpus = layout.gpus(self.fabric.counts(node));
        if self.is_whole(node) {
            return &NONE_FREE[..gpus];
        }
        self.unheld_gpus(layout, node)
    }

    /// The resource index of a GPU's type, or of `gpu` if it has no type. `None` if the node has no such GPU.
    pub fn gpu_type(&self, node: NodeIndex, gpu: usize) -> Option<usize> {
        let layout = self.gpus.layout.as_ref()?;
        let has = self.fabric.counts(node);
        (gpu < layout.gpus(has)).then(|| layout.type_of(has, gpu))
    }

    /// Which resources are GPUs; `None` if GPUs are not tracked one by one.
    pub(crate) fn gpu_layout(&self) -> Option<&GpuLayout> {
        self.gpus.layout.as_deref()
    }

    /// What shares leave free of a node's GPUs. A job that holds the whole node does not reduce it.
    fn unheld_gpus(&self, layout: &GpuLayout, node: NodeIndex) -> &[u16] {
        let gpus = layout.gpus(self.fabric.counts(node));
        if self.gpus.free.is_empty() {
            return &ALL_FREE[..gpus];
        }
        &self.gpus.free[node as usize * layout.most()..][..gpus]
    }

    fn node_gpus<'a>(&'a self, layout: &'a GpuLayout, node: NodeIndex) -> NodeGpus<'a> {
        NodeGpus {
            layout,
            has: self.fabric.counts(node),
            left: self.free(node),
            free: self.unheld_gpus(layout, node),
        }
    }

    /// The number of slots with a part of one GPU that fit on the node's GPUs; `None` if the amounts have no such part.
    pub(super) fn gpu_parts_on(&self, node: NodeIndex, amounts: &Amounts) -> Option<u64> {
        let part = amounts.gpu_part()?;
        let layout = self.gpus.layout.as_deref();
        Some(layout.map_or(0, |layout| self.node_gpus(layout, node).parts(part)))
    }

    /// Whether the node has a GPU for a slot that takes a part of one. For whole GPUs the counts decide, so this
    /// returns true.
    #[inline]
    pub(super) fn gpu_part_fits(&self, node: NodeIndex, amounts: &Amounts) -> bool {
        amounts.gpu_part().is_none() || self.gpu_parts_on(node, amounts) > Some(0)
    }

    /// Returns the placement with its GPUs named. Returns it unchanged if it takes no GPUs or has them named already,
    /// as placements of policies do. Call this before claiming a placement that you built by hand: otherwise the claim
    /// only counts GPUs, and counts a part of a GPU as a whole one.
    ///
    /// All nodes of a job get the same GPU indices if possible, so that its traffic stays on their rails. A slot with
    /// whole GPUs gets them from the smallest aligned block of 1, 2, 4, 8, ... GPUs that has enough, and among these
    /// from the one with the fewest free. A slot with a part of a GPU gets it from the GPU already cut that has the
    /// least left.
    #[must_use]
    pub fn name_gpus(&self, placement: Placement) -> Placement {
        if placement.share().is_whole() || !placement.gpus().is_empty() {
            return placement;
        }
        let nodes: Vec<NodeIndex> = placement.held().collect();
        match self.gpus_for(placement.share(), &nodes) {
            Some(gpus) => placement.with_gpus(gpus),
            None => placement,
        }
    }

    /// The GPUs that slots on these nodes would get; `None` if they get no named GPUs.
    pub(crate) fn gpus_for(&self, share: &Share, nodes: &[NodeIndex]) -> Option<Vec<GpuSet>> {
        let (Share::Part(amounts), Some(layout)) = (share, &self.gpus.layout) else { return None };
        let are_there = nodes.iter().all(|&node| node < self.fabric.nodes());
        if !layout.is_taken_by(amounts) || !are_there {
            return None;
        }
        if nodes.windows(2).all(|pair| pair[0] < pair[1]) {
            self.gpus_of_nodes(layout, amounts, nodes)
        } else {
            self.gpus_of_slots(layout, amounts, nodes)
        }
    }

    /// Chooses the GPUs of slots on different nodes.
    fn gpus_of_nodes(
        &self,
        layout: &GpuLayout,
        amounts: &Amounts,
        nodes: &[NodeIndex],
    ) -> Option<Vec<GpuSet>> {
        let common = self.common_gpus(layout, amounts, nodes);
        nodes.iter().map(|&node| self.node_gpus(layout, node).choose(amounts, common)).collect()
    }

    /// Whole GPUs that are free on all nodes of a job with several nodes.
    fn common_gpus(
        &self,
        layout: &GpuLayout,
        amounts: &Amounts,
        nodes: &[NodeIndex],
    ) -> Option<GpuSet> {
        let (&first, others) = nodes.split_first()?;
        if others.is_empty() || amounts.gpu_part().is_some() {
            return None;
        }
        let all = self.node_gpus(layout, first).available();
        let common = others
            .iter()
            .fold(all, |common, &node| common & self.node_gpus(layout, node).available());
        self.node_gpus(layout, first).whole(amounts, common)
    }

    /// Chooses the GPUs of slots that may share a node: each slot gets GPUs that earlier slots left.
    fn gpus_of_slots(
        &self,
        layout: &GpuLayout,
        amounts: &Amounts,
        nodes: &[NodeIndex],
    ) -> Option<Vec<GpuSet>> {
        let common = self.common_gpus(layout, amounts, nodes);
        let mut tried: BTreeMap<NodeIndex, (Vec<u64>, Vec<u16>)> = BTreeMap::new();
        let mut gpus = Vec::with_capacity(nodes.len());
        for &node in nodes {
            let has = self.fabric.counts(node);
            let (left, free) = tried.entry(node).or_insert_with(|| {
                (self.free(node).to_vec(), self.unheld_gpus(layout, node).to_vec())
            });
            let chosen = NodeGpus { layout, has, left, free }.choose(amounts, common)?;
            NodeGpusMut { layout, has, left, free }.take(amounts, chosen);
            gpus.push(chosen);
        }
        Some(gpus)
    }

    /// Whether a node can give a slot these GPUs and everything else that the slot takes.
    pub(super) fn has_gpus(&self, node: NodeIndex, amounts: &Amounts, gpus: GpuSet) -> bool {
        let Some(layout) = self.gpus.layout.as_deref() else { return false };
        let node = self.node_gpus(layout, node);
        let enough = |(index, count)| layout.is_gpu(index) || node.left[index] >= count;
        node.can_give(amounts, gpus) && amounts.iter().enumerate().all(enough)
    }

    /// Subtracts from a node what a slot takes, or adds it back: the named GPUs or, if none is named, only their
    /// number, and all other amounts.
    pub(super) fn change_amounts(
        &mut self,
        node: NodeIndex,
        amounts: &Amounts,
        gpus: GpuSet,
        takes: bool,
    ) {
        self.count_shares();
        let (has, index) = (self.fabric.counts(node), node as usize);
        let left = &mut self.free[index * has.len()..][..has.len()];
        let change = |left: &mut u64, count| if takes { *left -= count } else { *left += count };
        let layout = self.gpus.layout.as_deref();
        let named = layout.filter(|_| !gpus.is_empty());
        for (index, (left, count)) in left.iter_mut().zip(amounts.iter()).enumerate() {
            if named.is_none_or(|layout| !layout.is_gpu(index)) {
                change(left, count);
            }
        }
        if let Some(layout) = named {
            if self.gpus.free.is_empty() {
                self.gpus.free = vec![WHOLE_GPU; self.held.len() * layout.most()];
            }
            let free = &mut self.gpus.free[index * layout.most()..][..layout.gpus(has)];
            let mut node = NodeGpusMut { layout, has, left, free };
            if takes { node.take(amounts, gpus) } else { node.give_back(amounts, gpus) }
        } else if let (Some(layout), Some(part)) = (layout, amounts.gpu_part()) {
            for index in layout.counts_of(part) {
                change(&mut left[index], 1);
            }
        }
    }

    /// Whether a slot with a part of a GPU that it does not name finds a whole GPU to count.
    pub(super) fn counts_gpu_part(&self, node: NodeIndex, amounts: &Amounts) -> bool {
        let (Some(part), Some(layout)) = (amounts.gpu_part(), &self.gpus.layout) else {
            return true;
        };
        layout.counts_of(part).all(|index| self.free(node)[index] > 0)
    }
}
