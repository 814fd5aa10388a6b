//! What a slot takes of a node that others may share.

use std::fmt;
use std::sync::Arc;

use topolane_fabric::Fabric;
use topolane_fabric::resources::{CORES, MEMORY, Resources};

/// Thousandths of a whole GPU.
pub const WHOLE_GPU: u16 = 1000;

/// A resource of which no node has enough for one slot, even if no job held anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// Name of the resource.
    pub resource: Arc<str>,
    /// How much of it one slot takes.
    pub wanted: u64,
    /// The most that a node has.
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
    /// `None` for a part of nothing or of a whole GPU or more. `resource` is the index of `gpu` or of `gpu:TYPE`.
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
    /// Cores, and bytes of memory.
    pub fn new(cores: u32, memory: u64) -> Self {
        Amounts::of(&[u64::from(cores), memory])
    }

    /// By index of the resource.
    pub fn of(counts: &[u64]) -> Self {
        let length = counts.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
        Amounts { counts: counts[..length].into(), part: None }
    }

    /// The same with a part of one GPU. A slot takes whole GPUs or a part of one, not both.
    #[must_use]
    pub fn with_gpu_part(self, part: Option<GpuPart>) -> Self {
        Amounts { part, ..self }
    }

    /// The part of one GPU that it takes; `None` for whole GPUs and for none.
    pub fn gpu_part(&self) -> Option<GpuPart> {
        self.part
    }

    /// Thousandths that it takes of each of its GPUs: 1000 of whole ones.
    pub(crate) fn gpu_thousandths_of_each(&self) -> u16 {
        self.part.map_or(WHOLE_GPU, GpuPart::thousandths)
    }

    /// GPUs that it takes, in thousandths: 2000 for two whole ones, 460 for a part.
    pub fn gpu_thousandths(&self, resources: &Resources) -> u64 {
        let whole = || resources.index("gpu").map_or(0, |gpu| self.get(gpu));
        self.part.map_or_else(|| whole() * 1000, |part| u64::from(part.thousandths))
    }

    /// By name. A resource with a type counts as the same without, too.
    ///
    /// # Errors
    /// The first resource that is not counted there: no node has any of it.
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

    /// The same amounts in the order of other resources.
    ///
    /// # Errors
    /// The first resource that is not counted there.
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

    /// Names and amounts, without those of which it takes none and without a part of a GPU.
    pub fn by_name<'a>(&'a self, resources: &'a Resources) -> impl Iterator<Item = (&'a str, u64)> {
        let names = resources.names().iter().map(String::as_str);
        names.zip(self.iter()).filter(|&(_, count)| count > 0)
    }

    /// The amounts by index of the resource.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.counts.iter().copied()
    }

    /// The amount of one resource.
    pub fn get(&self, resource: usize) -> u64 {
        self.counts.get(resource).copied().unwrap_or(0)
    }

    /// Whether it takes nothing at all.
    pub fn is_nothing(&self) -> bool {
        self.counts.is_empty() && self.part.is_none()
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

    /// Whether there is a slot of these amounts in what is free, a part of a GPU left aside. A slot of no core wants one to be
    /// free.
    #[inline]
    pub fn fit_in(&self, free: &[u64]) -> bool {
        let enough =
            |(index, &count): (usize, &u64)| free.get(index).is_some_and(|&free| free >= count);
        free.get(CORES).is_some_and(|&cores| cores > 0)
            && self.counts.iter().enumerate().all(enough)
    }

    /// How many slots of these amounts there are in what is free, a part of a GPU left aside. A slot of no core takes none, but
    /// wants one to be free.
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

    /// The first resource of which no node of the machine has enough for a slot.
    pub(crate) fn lacking(&self, fabric: &Fabric) -> Option<Lack> {
        let (names, most) = (fabric.resources().names(), fabric.most_of_a_node());
        // A part of a GPU wants a node that has one.
        let of_part = |index| u64::from(self.part.is_some_and(|part| part.resource() == index));
        let mut wanted = (0..names.len()).map(|index| (index, self.get(index).max(of_part(index))));
        let (index, wanted) = wanted.find(|&(index, wanted)| wanted > most[index])?;
        Some(Lack { resource: names[index].as_str().into(), wanted, most: most[index] })
    }
}
