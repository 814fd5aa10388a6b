//! What a slot takes of a node that others may share.

use std::sync::Arc;

use topolane_fabric::Fabric;
use topolane_fabric::resources::{CORES, MEMORY, Resources};

use crate::refusal::Refusal;

/// So much of each counted resource, in the order of [`Resources`]. Zeros at the end are left out, so equal amounts compare as
/// equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Amounts(Arc<[u64]>);

impl Amounts {
    /// Cores, and bytes of memory.
    pub fn new(cores: u32, memory: u64) -> Self {
        Amounts::of(&[u64::from(cores), memory])
    }

    /// By index of the resource.
    pub fn of(counts: &[u64]) -> Self {
        let length = counts.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
        Amounts(counts[..length].into())
    }

    /// By name. A resource with a type counts as the same without, too.
    ///
    /// # Errors
    /// The first resource that is not counted there: no node has any of it.
    pub fn named<'a>(
        resources: &Resources,
        counts: impl IntoIterator<Item = (&'a str, u64)>,
    ) -> Result<Self, Refusal> {
        let mut amounts = vec![0; resources.names().len()];
        for (name, count) in counts.into_iter().filter(|&(_, count)| count > 0) {
            let lacks = || Refusal::Lacks { resource: name.into(), wanted: count, most: 0 };
            amounts[resources.index(name).ok_or_else(lacks)?] = count;
        }
        resources.include_types(&mut amounts);
        Ok(Amounts::of(&amounts))
    }

    /// The same amounts in the order of other resources.
    ///
    /// # Errors
    /// The first resource that is not counted there.
    pub fn reordered(&self, from: &Resources, to: &Resources) -> Result<Self, Refusal> {
        if self.0.len() <= MEMORY + 1 || from == to {
            return Ok(self.clone());
        }
        Amounts::named(to, self.by_name(from))
    }

    /// Names and amounts, without those of which it takes none.
    pub fn by_name<'a>(&'a self, resources: &'a Resources) -> impl Iterator<Item = (&'a str, u64)> {
        let names = resources.names().iter().map(String::as_str);
        names.zip(self.iter()).filter(|&(_, count)| count > 0)
    }

    /// The amounts by index of the resource.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().copied()
    }

    /// The amount of one resource.
    pub fn get(&self, resource: usize) -> u64 {
        self.0.get(resource).copied().unwrap_or(0)
    }

    /// Whether it takes nothing at all.
    pub fn is_nothing(&self) -> bool {
        self.0.is_empty()
    }

    /// Cores.
    pub fn cores(&self) -> u64 {
        self.get(CORES)
    }

    /// Memory, bytes.
    pub fn memory(&self) -> u64 {
        self.get(MEMORY)
    }

    /// The same, but no more than there is of each resource.
    #[must_use]
    pub fn at_most(&self, free: &[u64]) -> Self {
        let counts: Vec<u64> =
            self.iter().zip(free).map(|(count, &free)| count.min(free)).collect();
        Amounts::of(&counts)
    }

    /// Whether there is a slot of these amounts in what is free. A slot of no core wants one to be free.
    #[inline]
    pub fn fit_in(&self, free: &[u64]) -> bool {
        let enough =
            |(index, &count): (usize, &u64)| free.get(index).is_some_and(|&free| free >= count);
        free.get(CORES).is_some_and(|&cores| cores > 0) && self.0.iter().enumerate().all(enough)
    }

    /// How many slots of these amounts there are in what is free. A slot of no core takes none, but wants one to be free.
    #[inline]
    pub fn slots_in(&self, free: &[u64]) -> u32 {
        let cores = free.get(CORES).map_or(0, |&cores| cores / self.cores().max(1));
        let mut slots = u32::try_from(cores).unwrap_or(u32::MAX);
        for (resource, count) in self.iter().enumerate().skip(MEMORY) {
            let free = free.get(resource).copied().unwrap_or(0);
            if let Some(fitting) = free.checked_div(count) {
                slots = slots.min(u32::try_from(fitting).unwrap_or(u32::MAX));
            }
        }
        slots
    }

    /// The first resource of which no node of the machine has enough for a slot, as a refusal.
    pub(crate) fn lacking(&self, fabric: &Fabric) -> Option<Refusal> {
        let (names, most) = (fabric.resources().names(), fabric.most_of_a_node());
        let mut wanted = names.iter().zip(self.iter()).zip(most);
        let ((name, wanted), &most) = wanted.find(|((_, wanted), most)| wanted > most)?;
        Some(Refusal::Lacks { resource: name.as_str().into(), wanted, most })
    }
}
