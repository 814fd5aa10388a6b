//! The amounts of each resource that a slot takes from a node that jobs may share.

use std::fmt;
use std::sync::Arc;

use topolane_fabric::Fabric;
use topolane_fabric::resources::{CORES, MEMORY, Resources};

/// A whole GPU, in thousandths.
pub const WHOLE_GPU: u16 = 1000;

/// A resource of which no node has enough for one slot, even on an idle machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// The name of the resource.
    pub resource: Arc<str>,
    /// The amount that one slot takes.
    pub wanted: u64,
    /// The largest amount on any node.
    pub most: u64,
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Lack { resource, wanted, most } = self;
        let what = match &**resource {
            "cores" => "cores".to_owned(),
            "memory" => "bytes of memory".to_owned(),
            name => format!("of resource {name}"),
        };
        write!(f, "never fits: {wanted} {what} wanted on each node, ")?;
        match most {
            0 => f.write_str("no node has any"),
            most => write!(f, "{most} the most that one has"),
        }
    }
}

impl std::error::Error for Lack {}

/// An amount of each counted resource, in the order of [`Resources`], and perhaps a part of one GPU. Trailing zeros are dropped,
/// so equal amounts compare as equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Amounts {
    counts: Arc<[u64]>,
    part: Option<GpuPart>,
}

/// A part of one GPU, in thousandths of its time and memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GpuPart {
    resource: u16,
    thousandths: u16,
}

impl GpuPart {
    /// Returns the part; `None` if it is zero, or a whole GPU or more. `resource` is the index of `gpu` or of
    /// `gpu:TYPE`.
    pub fn new(resource: usize, thousandths: u16) -> Option<Self> {
        let resource = u16::try_from(resource).ok()?;
        (1..WHOLE_GPU).contains(&thousandths).then_some(GpuPart { resource, thousandths })
    }

    /// Index of the resource `gpu`, or of the type wanted.
    pub fn resource(self) -> usize {
        usize::from(self.resource)
    }

    /// Thousandths of the GPU, 1 to 999.
    pub fn thousandths(self) -> u16 {
        self.thousandths
    }
}

impl Amounts {
    /// Returns amounts of cores and memory (in bytes).
    pub fn new(cores: u32, memory: u64) -> Self {
        Amounts::of(&[u64::from(cores), memory])
    }

    /// Returns amounts from a list in the order of the resources.
    pub fn of(counts: &[u64]) -> Self {
        let length = counts.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
        Amounts { counts: counts[..length].into(), part: None }
    }

    /// Returns these amounts with a part of one GPU. A slot takes whole GPUs or a part of one, never both.
    #[must_use]
    pub fn with_gpu_part(self, part: Option<GpuPart>) -> Self {
        Amounts { part, ..self }
    }

    /// The part of one GPU that a slot takes; `None` if it takes whole GPUs or none.
    pub fn gpu_part(&self) -> Option<GpuPart> {
        self.part
    }

    /// How much a slot takes of each of its GPUs, in thousandths: 1000 for whole GPUs.
    pub(crate) fn gpu_thousandths_of_each(&self) -> u16 {
        self.part.map_or(WHOLE_GPU, GpuPart::thousandths)
    }

    /// GPUs that a slot takes, in thousandths: 2000 for two whole ones, 460 for a part.
    pub fn gpu_thousandths(&self, resources: &Resources) -> u64 {
        let whole = || resources.index("gpu").map_or(0, |gpu| self.get(gpu));
        self.part.map_or_else(|| whole() * 1000, |part| u64::from(part.thousandths))
    }

    /// Returns amounts from pairs of a resource name and a count. A resource with a type, such as `gpu:h100`, also
    /// counts as the resource without it.
    ///
    /// # Errors
    /// Returns the first resource that the machine does not have.
    pub fn named<'a>(
        resources: &Resources,
        counts: impl IntoIterator<Item = (&'a str, u64)>,
    ) -> Result<Self, Lack> {
        let mut amounts = vec![0; resources.names().len()];
        for (name, count) in counts.into_iter().filter(|&(_, count)| count > 0) {
            let lacks = || Lack { resource: name.into(), wanted: count, most: 0 };
            amounts[resources.index(name).ok_or_else(lacks)?] = count;
        }
        resources.include_types(&mut amounts);
        Ok(Amounts::of(&amounts))
    }

    /// Returns the same amounts in the order of another machine's resources.
    ///
    /// # Errors
    /// Returns the first resource that the other machine does not have.
    pub fn reordered(&self, from: &Resources, to: &Resources) -> Result<Self, Lack> {
        if from == to || self.counts.len() <= MEMORY + 1 && self.part.is_none() {
            return Ok(self.clone());
        }
        let counts = Amounts::named(to, self.by_name(from))?;
        let Some(part) = self.part else { return Ok(counts) };
        let name = from.names().get(part.resource()).map_or("gpu", String::as_str);
        let lacks = || Lack { resource: name.into(), wanted: 1, most: 0 };
        let resource = to.index(name).ok_or_else(lacks)?;
        Ok(counts.with_gpu_part(GpuPart::new(resource, part.thousandths)))
    }

    /// Returns the name and amount of every resource that a slot takes. A part of a GPU is not included.
    pub fn by_name<'a>(&'a self, resources: &'a Resources) -> impl Iterator<Item = (&'a str, u64)> {
        let names = resources.names().iter().map(String::as_str);
        names.zip(self.iter()).filter(|&(_, count)| count > 0)
    }

    /// Returns the amounts in the order of the resources.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.counts.iter().copied()
    }

    /// Returns the amount of the resource with this index.
    pub fn get(&self, resource: usize) -> u64 {
        self.counts.get(resource).copied().unwrap_or(0)
    }

    /// The number of cores.
    pub fn cores(&self) -> u64 {
        self.get(CORES)
    }

    /// The memory in bytes.
    pub fn memory(&self) -> u64 {
        self.get(MEMORY)
    }

    /// Returns these amounts, each limited to what is free of its resource.
    #[must_use]
    pub fn at_most(&self, free: &[u64]) -> Self {
        let counts: Vec<u64> =
            self.iter().zip(free).map(|(count, &free)| count.min(free)).collect();
        Amounts::of(&counts)
    }

    /// Whether one slot of these amounts fits in what is free. A part of a GPU is not checked. A slot without cores
    /// needs one free core but does not take it.
    #[inline]
    pub fn fit_in(&self, free: &[u64]) -> bool {
        let enough =
            |(index, &count): (usize, &u64)| free.get(index).is_some_and(|&free| free >= count);
        free.get(CORES).is_some_and(|&cores| cores > 0)
            && self.counts.iter().enumerate().all(enough)
    }

    /// The number of slots of these amounts that fit in what is free. A part of a GPU is not checked. A slot without
    /// cores needs one free core but does not take it.
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

    /// The first resource of which no node of the machine has enough for a slot; `None` if there is none.
    pub(crate) fn lacking(&self, fabric: &Fabric) -> Option<Lack> {
        let (names, most) = (fabric.resources().names(), fabric.most_of_a_node());
        // A part of a GPU needs a node that has a GPU of that type.
        let of_part = |index| u64::from(self.part.is_some_and(|part| part.resource() == index));
        let mut wanted = (0..names.len()).map(|index| (index, self.get(index).max(of_part(index))));
        let (index, wanted) = wanted.find(|&(index, wanted)| wanted > most[index])?;
        Some(Lack { resource: names[index].as_str().into(), wanted, most: most[index] })
    }
}
