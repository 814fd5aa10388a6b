//! A copy of one node's free resources, on which to try requests.

use topolane_fabric::NodeIndex;

use crate::gpus::{GpuLayout, NodeGpus, NodeGpusMut};
use crate::{Amounts, GpuPart, GpuSet, Occupancy, WHOLE_GPU};

/// What is free on one node.
#[derive(Debug, Clone)]
pub(super) struct NodeState<'a> {
    layout: &'a GpuLayout,
    has: &'a [u64],
    is_of_one_type: bool,
    /// The free amount of every resource.
    left: Vec<u64>,
    /// Free thousandths of every GPU.
    free: Vec<u16>,
}

impl<'a> NodeState<'a> {
    /// Copies the state of a node; `None` for a node without GPUs.
    pub(super) fn of(occupancy: &'a Occupancy, node: NodeIndex) -> Option<Self> {
        let layout = occupancy.gpu_layout()?;
        let free = occupancy.gpus_free(node);
        if free.is_empty() {
            return None;
        }
        let has = occupancy.fabric().counts(node);
        let is_of_one_type = is_of_one_type(layout, has);
        let (left, free) = (occupancy.free(node).to_vec(), free.to_vec());
        Some(NodeState { layout, has, is_of_one_type, left, free })
    }

    fn gpus(&self) -> NodeGpus<'_> {
        NodeGpus { layout: self.layout, has: self.has, left: &self.left, free: &self.free }
    }

    /// Returns the state after a slot takes these GPUs, which must be free.
    pub(super) fn after(&self, amounts: &Amounts, gpus: GpuSet) -> NodeState<'a> {
        let mut after = self.clone();
        for (index, count) in amounts.iter().enumerate() {
            if !self.layout.is_gpu(index) {
                after.left[index] = after.left[index].saturating_sub(count);
            }
        }
        let (left, free) = (&mut after.left[..], &mut after.free[..]);
        NodeGpusMut { layout: self.layout, has: self.has, left, free }.take(amounts, gpus);
        after
    }

    /// The GPU sets that a slot might take. For a part of a GPU: one GPU for each distinct number of free thousandths.
    /// For whole GPUs: the set that the occupancy would choose.
    pub(super) fn choices(&self, amounts: &Amounts) -> Vec<GpuSet> {
        let Some(part) = amounts.gpu_part() else {
            return self.whole(amounts).into_iter().collect();
        };
        let of_type = self.gpus().usable_for(part);
        let mut found: Vec<(u16, usize)> =
            of_type.iter().map(|gpu| (self.free[gpu], gpu)).collect();
        found.retain(|&(free, _)| free >= part.thousandths());
        found.sort_unstable();
        found.dedup_by_key(|&mut (free, _)| free);
        found.into_iter().map(|(_, gpu)| GpuSet::one(gpu)).collect()
    }

    /// The whole GPUs for a slot. If all GPUs are of one type, the measures do not depend on which ones.
    fn whole(&self, amounts: &Amounts) -> Option<GpuSet> {
        if !self.is_of_one_type {
            return self.gpus().choose(amounts, None);
        }
        let wanted = self.layout.wanted(amounts);
        let available = self.gpus().available();
        (available.len() >= wanted).then(|| available.lowest(wanted))
    }

    /// Free thousandths of all GPUs.
    pub(super) fn total(&self) -> f64 {
        self.free.iter().map(|&free| f64::from(free)).sum()
    }

    /// Free thousandths that a slot of these amounts cannot use: all if it does not fit, otherwise those on GPUs with
    /// too little free.
    pub(super) fn fragments(&self, amounts: &Amounts) -> f64 {
        let fits = amounts.fit_in(&self.left)
            && amounts.gpu_part().is_none_or(|part| self.gpus().parts(part) > 0);
        if !fits {
            return self.total();
        }
        let needed = amounts.gpu_part().map_or(WHOLE_GPU, GpuPart::thousandths);
        self.free.iter().filter(|&&free| free < needed).map(|&free| f64::from(free)).sum()
    }

    /// Free thousandths that remain if slots of these amounts first use up the cores, the memory or another resource.
    /// GPUs are treated as divisible.
    pub(super) fn unfed(&self, amounts: &Amounts, thousandths: f64) -> f64 {
        let left = self.left.iter().enumerate().zip(amounts.iter());
        let others = left.filter(|&((index, _), count)| count > 0 && !self.layout.is_gpu(index));
        let slots = others
            .map(|((_, &left), count)| left as f64 / count as f64)
            .fold(f64::INFINITY, f64::min);
        (self.total() - slots * thousandths).max(0.0)
    }

    /// Appends everything that determines the measures: nodes with the same key are alike. If all GPUs are of one type,
    /// their order does not matter.
    pub(super) fn key(&self, of_node: u32, key: &mut Vec<u64>) {
        let mut free = self.free.clone();
        if self.is_of_one_type {
            free.sort_unstable();
        }
        key.clear();
        key.push(u64::from(of_node));
        key.extend_from_slice(&self.left);
        key.extend_from_slice(self.has);
        key.extend(packed(&free));
    }
}

/// Appends everything that determines the cost of a slot on a node: its kind and what is free, GPU by GPU.
pub(super) fn state_key(occupancy: &Occupancy, node: NodeIndex, key: &mut Vec<u64>) {
    key.push(u64::from(occupancy.fabric().kind_index(node)));
    key.extend_from_slice(occupancy.free(node));
    key.extend(packed(occupancy.gpus_free(node)));
}

/// Packs the thousandths of four GPUs into each word.
fn packed(free: &[u16]) -> impl Iterator<Item = u64> + '_ {
    let word = |four: &[u16]| four.iter().fold(0, |word, &free| word << 16 | u64::from(free));
    free.chunks(4).map(word)
}

/// Whether all GPUs of a node with these amounts have the same type, or none has a type.
fn is_of_one_type(layout: &GpuLayout, has: &[u64]) -> bool {
    let counts =
        has.iter().enumerate().filter(|&(index, &count)| layout.is_gpu(index) && count > 0);
    let mut counts = counts.map(|(_, &count)| count);
    let first = counts.next();
    // The count of all GPUs, and possibly the same count under their one type.
    counts.next().is_none_or(|count| Some(count) == first) && counts.next().is_none()
}
