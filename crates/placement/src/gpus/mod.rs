//! Tracks the GPUs of each node one by one: what is free of each, and which ones a slot gets.
//!
//! Counts of free GPUs ([`Resources`](topolane_fabric::resources::Resources)) say whether a job fits. This module says
//! which GPUs the job gets. GPU i of a node is the one on rail i. The GPUs of the first type of a node come first, then
//! those of the next type, and at the end those without a type; types are in the order of the machine's resources.

mod choice;
mod set;

use topolane_fabric::Fabric;

pub use set::{GpuSet, MOST_GPUS};

use crate::amounts::{Amounts, GpuPart, WHOLE_GPU};

/// Which resources of a machine are GPUs.
#[derive(Debug)]
pub(crate) struct GpuLayout {
    /// Index of the resource `gpu`.
    gpu: usize,
    /// Indices of the typed resources `gpu:TYPE`, ascending.
    types: Box<[usize]>,
    /// The largest number of GPUs on any node.
    most: usize,
}

impl GpuLayout {
    /// Returns the layout; `None` for a machine without GPUs or with more than [`MOST_GPUS`] on a node.
    pub(crate) fn of(fabric: &Fabric) -> Option<Self> {
        let names = fabric.resources().names();
        let gpu = fabric.resources().index("gpu")?;
        let most = usize::try_from(*fabric.most_of_a_node().get(gpu)?).ok()?;
        let is_type = |&index: &usize| names[index].starts_with("gpu:");
        let types = (0..names.len()).filter(is_type).collect();
        (1..=MOST_GPUS).contains(&most).then_some(GpuLayout { gpu, types, most })
    }

    /// The largest number of GPUs on any node.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Whether the resource is `gpu` or `gpu:TYPE`.
    pub(crate) fn is_gpu(&self, resource: usize) -> bool {
        resource == self.gpu || self.types.contains(&resource)
    }

    /// Whether a slot takes GPUs, whole or a part of one.
    pub(crate) fn is_taken_by(&self, amounts: &Amounts) -> bool {
        amounts.gpu_part().is_some() || amounts.get(self.gpu) > 0
    }

    /// Whole GPUs that a slot takes, of any type.
    pub(crate) fn wanted(&self, amounts: &Amounts) -> usize {
        usize::try_from(amounts.get(self.gpu)).unwrap_or(usize::MAX)
    }

    /// The resources whose counts go down when a GPU is cut: `gpu`, and the wanted type.
    pub(crate) fn counts_of(&self, part: GpuPart) -> impl Iterator<Item = usize> + use<> {
        let kind = Some(part.resource()).filter(|&kind| kind != self.gpu);
        std::iter::once(self.gpu).chain(kind)
    }

    /// The number of GPUs on a node that has these amounts.
    pub(crate) fn gpus(&self, has: &[u64]) -> usize {
        has.get(self.gpu).map_or(0, |&gpus| gpus as usize)
    }

    /// The GPUs of a type on a node that has these amounts; all its GPUs if `resource` is `gpu` itself.
    fn of_type(&self, has: &[u64], resource: usize) -> GpuSet {
        if resource == self.gpu {
            return GpuSet::range(0, self.gpus(has));
        }
        let before = self.types.iter().take_while(|&&kind| kind < resource);
        let first = before.map(|&kind| has[kind] as usize).sum();
        GpuSet::range(first, has[resource] as usize)
    }

    /// The GPUs with a type on a node that has these amounts.
    fn typed(&self, has: &[u64]) -> GpuSet {
        GpuSet::range(0, self.types.iter().map(|&kind| has[kind] as usize).sum())
    }

    /// The type of a GPU, as the index of a resource; `gpu` if it has no type.
    pub(crate) fn type_of(&self, has: &[u64], gpu: usize) -> usize {
        let holds = |&&kind: &&usize| self.of_type(has, kind).contains(gpu);
        self.types.iter().find(holds).copied().unwrap_or(self.gpu)
    }
}

/// The GPUs of one node, and what is free of each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeGpus<'a> {
    pub(crate) layout: &'a GpuLayout,
    /// The node's amount of every resource.
    pub(crate) has: &'a [u64],
    /// The free amount of every resource. It counts fewer GPUs than are wholly free if jobs hold GPUs whose indices are
    /// unknown.
    pub(crate) left: &'a [u64],
    /// Thousandths free of each GPU.
    pub(crate) free: &'a [u16],
}

/// The free amounts and the free thousandths of one node, for changes.
pub(crate) struct NodeGpusMut<'a> {
    pub(crate) layout: &'a GpuLayout,
    pub(crate) has: &'a [u64],
    pub(crate) left: &'a mut [u64],
    pub(crate) free: &'a mut [u16],
}

impl NodeGpusMut<'_> {
    /// Takes the GPUs of a slot. The slot must fit.
    pub(crate) fn take(&mut self, amounts: &Amounts, gpus: GpuSet) {
        let taken = amounts.gpu_thousandths_of_each();
        for gpu in gpus.iter() {
            if self.free[gpu] == WHOLE_GPU {
                self.count(gpu, |left| *left -= 1);
            }
            self.free[gpu] -= taken;
        }
    }

    /// Gives back what [`NodeGpusMut::take`] took.
    pub(crate) fn give_back(&mut self, amounts: &Amounts, gpus: GpuSet) {
        let taken = amounts.gpu_thousandths_of_each();
        for gpu in gpus.iter() {
            self.free[gpu] += taken;
            if self.free[gpu] == WHOLE_GPU {
                self.count(gpu, |left| *left += 1);
            }
        }
    }

    /// Changes the counts of wholly free GPUs that include this GPU.
    fn count(&mut self, gpu: usize, change: impl Fn(&mut u64)) {
        change(&mut self.left[self.layout.gpu]);
        let kind = self.layout.type_of(self.has, gpu);
        if kind != self.layout.gpu {
            change(&mut self.left[kind]);
        }
    }
}
