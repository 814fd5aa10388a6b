//! Computes how many more jobs fit on a machine now, and which free GPUs no job can use.

use std::collections::BTreeMap;

use serde::Serialize;
use topolane_fabric::resources::{CORES, MEMORY};
use topolane_fabric::{DomainIndex, Fabric, GroupIndex, NodeIndex};

use crate::amounts::{Amounts, WHOLE_GPU};
use crate::obstacles::kind_of_group;
use crate::occupancy::Occupancy;

/// A question about the free capacity of a machine.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RoomQuestion {
    /// Sizes of jobs: GPUs, or nodes on a machine without GPUs.
    pub sizes: Vec<u32>,
    /// The nodes of each segment of a job, which must lie in one domain; `None` for jobs without segments.
    pub segment: Option<u32>,
    /// The least that a job takes of a node: GPUs (at least a part of one), cores and memory.
    pub smallest: Amounts,
}

/// How many more jobs fit, and the free GPUs that no job can use. Each size is counted alone on the free capacity.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Room {
    /// The unit of sizes: `gpus` or `nodes`.
    pub unit: &'static str,
    /// GPUs or nodes of the whole machine.
    pub total: f64,
    /// Free GPUs or nodes in service. Parts of GPUs count as parts.
    pub free: f64,
    /// Nodes in service that no job uses.
    pub idle_nodes: u32,
    /// The levels of which one group may have to hold a job: `node`, `domain`, `segments` (whole segments in domains),
    /// `leaf`, `pod`, ..., `site`.
    pub levels: Vec<String>,
    /// For each size, the number of further jobs that fit.
    pub fits: Vec<Fit>,
    /// Free GPUs that no job can use; `None` on a machine without GPUs.
    pub stranded: Option<Stranded>,
}

/// The number of further jobs of one size that fit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fit {
    /// GPUs or nodes of each job.
    pub size: u32,
    /// For each level of [`Room::levels`], how many jobs fit if each lies inside one group of that level.
    pub jobs: Vec<u64>,
}

/// Free GPUs that no job can use, by reason; in GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Stranded {
    /// GPUs on nodes with fewer free cores than the smallest job takes.
    pub without_cores: f64,
    /// GPUs on nodes with enough free cores but too little free memory.
    pub without_memory: f64,
    /// Free GPUs of a node, or free parts of a GPU, that are less than the smallest job takes.
    pub scraps: f64,
    /// Usable GPUs on idle nodes that remain when whole segments are placed in their domain; 0 without segments.
    pub left_over_from_segments: f64,
}

impl Stranded {
    /// GPUs that no job can use because other resources of their node are taken, or too few GPUs remain.
    pub fn on_nodes(&self) -> f64 {
        self.without_cores + self.without_memory + self.scraps
    }

    /// Returns the sum of two, for computing a mean.
    #[must_use]
    pub fn plus(self, other: &Stranded) -> Stranded {
        Stranded {
            without_cores: self.without_cores + other.without_cores,
            without_memory: self.without_memory + other.without_memory,
            scraps: self.scraps + other.scraps,
            left_over_from_segments: self.left_over_from_segments + other.left_over_from_segments,
        }
    }

    /// Returns the values divided by a number, for computing a mean.
    #[must_use]
    pub fn over(self, number: f64) -> Stranded {
        Stranded {
            without_cores: self.without_cores / number,
            without_memory: self.without_memory / number,
            scraps: self.scraps / number,
            left_over_from_segments: self.left_over_from_segments / number,
        }
    }
}

/// The free capacity in one domain, or on one leaf of a machine without domains.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DomainRoom {
    /// The name of the domain or leaf.
    pub name: String,
    /// The number of its nodes.
    pub nodes: u32,
    /// The number of its idle nodes.
    pub idle_nodes: u32,
    /// Free GPUs on its nodes in service.
    pub free: f64,
    /// Free GPUs that no job can use.
    pub stranded: Stranded,
}

/// The levels, other than the node, of which one group may have to hold a job.
enum RoomLevel {
    Domains,
    Segments(u32),
    Groups(usize),
}

impl Room {
    /// Returns the free capacity of the machine now.
    pub fn of(occupancy: &Occupancy, question: &RoomQuestion) -> Room {
        let fabric: &Fabric = occupancy.fabric();
        let view = GpuOccupancy::new(occupancy);
        let levels = levels(fabric, question.segment);
        let mut names = vec!["node".to_owned()];
        names.extend(levels.iter().map(|level| name_of(fabric, level)));
        let fit =
            |&size: &u32| Fit { size, jobs: view.jobs(size.max(1), &question.smallest, &levels) };
        let (total, free) = view.totals();
        Room {
            unit: if view.gpu.is_some() { "gpus" } else { "nodes" },
            total,
            free,
            idle_nodes: occupancy.idle_nodes(),
            levels: names,
            fits: question.sizes.iter().map(fit).collect(),
            stranded: view.gpu.map(|_| {
                view.stranded_in(0..fabric.nodes(), question)
                    .plus(&view.left_over(question.segment))
            }),
        }
    }

    /// Returns the free capacity of every domain, or of every leaf on a machine without domains.
    pub fn by_domain(occupancy: &Occupancy, question: &RoomQuestion) -> Vec<DomainRoom> {
        let fabric: &Fabric = occupancy.fabric();
        let view = GpuOccupancy::new(occupancy);
        let row = |name: &str, nodes: &mut dyn Iterator<Item = NodeIndex>| {
            let nodes: Vec<NodeIndex> = nodes.collect();
            let idle = |&&node: &&NodeIndex| occupancy.idle().contains(node);
            let left_over = question.segment.filter(|_| fabric.domains() > 0);
            DomainRoom {
                name: name.to_owned(),
                nodes: nodes.len() as u32,
                idle_nodes: nodes.iter().filter(idle).count() as u32,
                free: nodes.iter().map(|&node| view.free_on(node)).sum(),
                stranded: view
                    .stranded_in(nodes.iter().copied(), question)
                    .plus(&view.left_over_of(&nodes, left_over)),
            }
        };
        match fabric.domains() {
            0 => (0..fabric.groups(1))
                .map(|leaf| row(fabric.group_name(1, leaf), &mut fabric.node_range(1, leaf)))
                .collect(),
            domains => (0..domains)
                .map(|domain| {
                    let nodes = &mut fabric.domain_nodes(domain).iter().copied();
                    row(fabric.domain_name(domain), nodes)
                })
                .collect(),
        }
    }

    /// Returns the sizes to ask about by default: powers of two up to the size of the machine.
    pub fn usual_sizes(fabric: &Fabric) -> Vec<u32> {
        let all = fabric.resources().index("gpu").map_or(u64::from(fabric.nodes()), |gpu| {
            (0..fabric.nodes()).map(|node| fabric.counts(node)[gpu]).sum()
        });
        (0..31).map(|power| 1 << power).take_while(|&size| u64::from(size) <= all).collect()
    }
}

fn levels(fabric: &Fabric, segment: Option<u32>) -> Vec<RoomLevel> {
    let mut levels = Vec::new();
    if fabric.domains() > 0 {
        levels.push(RoomLevel::Domains);
        levels.extend(segment.filter(|&nodes| nodes > 0).map(RoomLevel::Segments));
    }
    levels.extend((1..fabric.depth()).map(RoomLevel::Groups));
    levels.push(RoomLevel::Groups(fabric.depth()));
    levels
}

fn name_of(fabric: &Fabric, level: &RoomLevel) -> String {
    match *level {
        RoomLevel::Domains => "domain".to_owned(),
        RoomLevel::Segments(_) => "segments".to_owned(),
        RoomLevel::Groups(level) => kind_of_group(fabric, level),
    }
}

/// An occupancy, and the GPU counts of its nodes.
struct GpuOccupancy<'a> {
    occupancy: &'a Occupancy,
    fabric: &'a Fabric,
    /// Index of the resource `gpu`; `None` on a machine without GPUs.
    gpu: Option<usize>,
    /// The distinct numbers of GPUs per node, ascending; just 1 on a machine without GPUs.
    variants: Vec<u32>,
}

impl<'a> GpuOccupancy<'a> {
    fn new(occupancy: &'a Occupancy) -> Self {
        let fabric: &Fabric = occupancy.fabric();
        let gpu = fabric.resources().index("gpu");
        let mut by_kind: BTreeMap<u32, u32> = BTreeMap::new();
        if let Some(gpu) = gpu {
            for node in 0..fabric.nodes() {
                by_kind.entry(fabric.kind_index(node)).or_insert(fabric.counts(node)[gpu] as u32);
            }
        }
        let mut variants: Vec<u32> = by_kind.into_values().collect();
        variants.sort_unstable();
        variants.dedup();
        if gpu.is_none() {
            variants.push(1);
        }
        GpuOccupancy { occupancy, fabric, gpu, variants }
    }

    /// The units of a node: its GPUs, or 1 on a machine without GPUs.
    fn units(&self, node: NodeIndex) -> u32 {
        self.gpu.map_or(1, |gpu| self.fabric.counts(node)[gpu] as u32)
    }

    /// How many jobs of a size fit on a node, and inside a group of each level.
    fn jobs(&self, size: u32, smallest: &Amounts, levels: &[RoomLevel]) -> Vec<u64> {
        let on_nodes = self.on_nodes(size, smallest);
        let mut jobs = vec![on_nodes];
        for level in levels {
            // Jobs that fit on a node also lie in one group of every level.
            let several: u64 = self
                .variants
                .iter()
                .filter(|&&units| (1..size).contains(&units))
                .map(|&units| self.of_whole_nodes(size.div_ceil(units), units, level))
                .sum();
            jobs.push(on_nodes + several);
        }
        jobs
    }

    /// The number of jobs on a part of a node, or one whole node, each with the cores and memory of the smallest job.
    fn on_nodes(&self, size: u32, smallest: &Amounts) -> u64 {
        let Some(gpu) = self.gpu else {
            return if size == 1 { u64::from(self.occupancy.idle_nodes()) } else { 0 };
        };
        if self.variants.iter().all(|&units| units < size) {
            return 0;
        }
        let mut counts = vec![0; gpu + 1];
        (counts[CORES], counts[MEMORY]) = (smallest.cores().max(1), smallest.memory());
        counts[gpu] = u64::from(size);
        let amounts = Amounts::of(&counts);
        let slots = |node| u64::from(self.occupancy.slots_on(node, &amounts));
        (0..self.fabric.nodes()).map(slots).sum()
    }

    /// The number of jobs on several whole nodes with `units` units each.
    fn of_whole_nodes(&self, nodes: u32, units: u32, level: &RoomLevel) -> u64 {
        let per = |idle: u32, nodes: u32| u64::from(idle / nodes);
        match *level {
            RoomLevel::Groups(level) => (0..self.fabric.groups(level))
                .map(|group| per(self.idle_in(level, group, units), nodes))
                .sum(),
            RoomLevel::Domains => self.idle_in_domains(units).map(|idle| per(idle, nodes)).sum(),
            RoomLevel::Segments(segment) if nodes < segment => {
                self.idle_in_domains(units).map(|idle| per(idle, nodes)).sum()
            }
            // A last segment that is smaller counts as a whole one.
            RoomLevel::Segments(segment) => {
                let parts: u64 = self.idle_in_domains(units).map(|idle| per(idle, segment)).sum();
                parts / u64::from(nodes.div_ceil(segment))
            }
        }
    }

    fn idle_in(&self, level: usize, group: GroupIndex, units: u32) -> u32 {
        if self.variants.len() == 1 {
            return self.occupancy.idle_in(level, group);
        }
        let range = self.fabric.node_range(level, group);
        let idle = self.occupancy.idle().iter_in(range);
        idle.filter(|&node| self.units(node) == units).count() as u32
    }

    fn idle_in_domains(&self, units: u32) -> impl Iterator<Item = u32> + '_ {
        let idle = move |&node: &NodeIndex| {
            self.occupancy.idle().contains(node) && self.units(node) == units
        };
        (0..self.fabric.domains()).map(move |domain: DomainIndex| {
            self.fabric.domain_nodes(domain).iter().filter(|node| idle(node)).count() as u32
        })
    }

    /// The units of the machine, and the free ones.
    fn totals(&self) -> (f64, f64) {
        let nodes = 0..self.fabric.nodes();
        let total: u64 = nodes.clone().map(|node| u64::from(self.units(node))).sum();
        (total as f64, nodes.map(|node| self.free_on(node)).sum())
    }

    /// The free units of a node in service.
    fn free_on(&self, node: NodeIndex) -> f64 {
        if self.occupancy.idle().contains(node) {
            return f64::from(self.units(node));
        }
        if self.gpu.is_none() || !self.occupancy.in_service().contains(node) {
            return 0.0;
        }
        in_gpus(sum(self.occupancy.gpus_free(node)))
    }

    fn stranded_in(
        &self,
        nodes: impl Iterator<Item = NodeIndex>,
        question: &RoomQuestion,
    ) -> Stranded {
        let mut stranded = Stranded::default();
        let smallest = &question.smallest;
        for node in nodes {
            // An idle node has as much free as any node of its kind can have.
            let idle = self.occupancy.idle().contains(node);
            let (Some(gpu), false) = (self.gpu, idle) else { continue };
            let free = self.free_on(node);
            if free <= 0.0 {
                continue;
            }
            let left = self.occupancy.free(node);
            if left[CORES] < smallest.cores().max(1) {
                stranded.without_cores += free;
            } else if left[MEMORY] < smallest.memory() {
                stranded.without_memory += free;
            } else {
                stranded.scraps += scraps(self.occupancy.gpus_free(node), smallest, gpu);
            }
        }
        stranded
    }

    /// GPUs of idle nodes that remain when whole segments are placed, in all domains.
    fn left_over(&self, segment: Option<u32>) -> Stranded {
        let of = |domain| self.left_over_of(self.fabric.domain_nodes(domain), segment);
        (0..self.fabric.domains()).map(of).fold(Stranded::default(), |sum, one| sum.plus(&one))
    }

    fn left_over_of(&self, nodes: &[NodeIndex], segment: Option<u32>) -> Stranded {
        let Some(segment) = segment.filter(|&nodes| nodes > 0) else { return Stranded::default() };
        let idle = |node: &&NodeIndex| self.occupancy.idle().contains(**node);
        let units: Vec<u32> = nodes.iter().filter(idle).map(|&node| self.units(node)).collect();
        let left = units.len() % segment as usize;
        Stranded {
            left_over_from_segments: units.iter().take(left).map(|&units| f64::from(units)).sum(),
            ..Stranded::default()
        }
    }
}

/// Converts thousandths to GPUs.
fn in_gpus(thousandths: u64) -> f64 {
    thousandths as f64 / f64::from(WHOLE_GPU)
}

fn sum(free: &[u16]) -> u64 {
    free.iter().map(|&free| u64::from(free)).sum()
}

/// Free GPUs of a node, in GPUs, that are less than the smallest job takes.
fn scraps(free: &[u16], smallest: &Amounts, gpu: usize) -> f64 {
    if let Some(part) = smallest.gpu_part() {
        let too_small = free.iter().filter(|&&free| free < part.thousandths());
        return in_gpus(too_small.map(|&free| u64::from(free)).sum());
    }
    let whole = free.iter().filter(|&&free| free == WHOLE_GPU).count() as u64;
    let usable = if whole >= smallest.get(gpu).max(1) { whole } else { 0 };
    in_gpus(sum(free) - usable * u64::from(WHOLE_GPU))
}
