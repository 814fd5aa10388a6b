//! Policies for jobs that take parts of GPU nodes, compared with their definitions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::sync::Arc;

use common::rule;
use proptest::prelude::*;
use topolane_fabric::resources::ResourceCounts;
use topolane_fabric::{Fabric, NodeIndex, NodeKind, pgft};
use topolane_placement::{Amounts, GpuPart, Occupancy, Placement, Request, SeenRequests, Share};

const GPUS: usize = 4;
const CORES: u64 = 16;

/// A machine of three nodes with 16 cores and 4 GPUs.
fn machine() -> Arc<Fabric> {
    let mut described = pgft("n", &[3], &[1], &[1]);
    described.kinds = vec![NodeKind {
        sockets: 1,
        cores_per_socket: CORES as u32,
        memory: 1 << 40,
        resources: ResourceCounts::from([("gpu", GPUS as u32)]),
        ..NodeKind::default()
    }];
    Arc::new(Fabric::build(&described).unwrap())
}

/// A task: cores, and thousandths of a GPU (below 1000) or of whole GPUs (multiples of 1000).
#[derive(Debug, Clone, Copy, PartialEq)]
struct Task {
    cores: u64,
    thousandths: u64,
}

fn task() -> impl Strategy<Value = Task> {
    let gpus = prop_oneof![1u64..1000, (1u64..=4).prop_map(|gpus| gpus * 1000)];
    (1u64..9, gpus).prop_map(|(cores, thousandths)| Task { cores, thousandths })
}

impl Task {
    fn request(self, id: u64, fabric: &Fabric) -> Request {
        let gpu = fabric.resources().index("gpu").unwrap();
        let part = GpuPart::new(gpu, u16::try_from(self.thousandths).unwrap());
        let whole = if part.is_some() { 0 } else { self.thousandths / 1000 };
        let counts = [("cores", self.cores), ("gpu", whole)];
        let amounts = Amounts::named(fabric.resources(), counts).unwrap().with_gpu_part(part);
        Request { share: Share::Part(amounts), ..Request::whole_nodes(id, 1, 1.0) }
    }

    fn is_part(self) -> bool {
        self.thousandths < 1000
    }

    /// The free thousandths that a GPU needs to be useful.
    fn of_a_gpu(self) -> u64 {
        self.thousandths.min(1000)
    }
}

/// The free cores of a node, and the free thousandths of each GPU.
#[derive(Debug, Clone)]
struct Free {
    cores: u64,
    gpus: Vec<u64>,
}

impl Free {
    fn of(occupancy: &Occupancy, node: NodeIndex) -> Self {
        let gpus = occupancy.gpus_free(node).iter().map(|&free| u64::from(free)).collect();
        Free { cores: u64::from(occupancy.cores_free(node)), gpus }
    }

    fn total(&self) -> u64 {
        self.gpus.iter().sum()
    }

    fn fits(&self, task: Task) -> bool {
        let enough = self.gpus.iter().filter(|&&free| free >= task.of_a_gpu()).count() as u64;
        self.cores >= task.cores && enough >= task.thousandths.div_ceil(1000)
    }

    /// The fragmentation of a node for one task, as the paper defines it.
    fn fragments(&self, task: Task) -> f64 {
        let useless = |free: &&u64| !self.fits(task) || **free < task.of_a_gpu();
        self.gpus.iter().filter(useless).sum::<u64>() as f64
    }

    /// Free thousandths that remain if such tasks use up the cores.
    fn unfed(&self, task: Task) -> f64 {
        let slots = self.cores as f64 / task.cores as f64;
        (self.total() as f64 - slots * task.thousandths as f64).max(0.0)
    }

    fn measure(&self, seen: &[Task], unfed: f64) -> f64 {
        let of = |&task: &Task| self.fragments(task) + unfed * self.unfed(task);
        seen.iter().map(of).sum::<f64>() / seen.len() as f64
    }

    /// The node after the task, for every way to place it there.
    fn after(&self, task: Task) -> Vec<Free> {
        if !self.fits(task) {
            return Vec::new();
        }
        let less = |taken: &[usize]| {
            let mut after = self.clone();
            after.cores -= task.cores;
            for &gpu in taken {
                after.gpus[gpu] -= task.of_a_gpu();
            }
            after
        };
        let holding: Vec<usize> =
            (0..GPUS).filter(|&gpu| self.gpus[gpu] >= task.of_a_gpu()).collect();
        if task.is_part() {
            return holding.iter().map(|&gpu| less(&[gpu])).collect();
        }
        vec![less(&holding[..(task.thousandths / 1000) as usize])]
    }
}

/// Places tasks one after another by a policy. `look` sees each task before it is claimed, and all tasks so far.
fn play(name: &str, tasks: &[Task], mut look: impl FnMut(&Occupancy, &[Task], Task, &Placement)) {
    let fabric = machine();
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    let policy = rule(name);
    let (mut seen, mut known) = (SeenRequests::default(), Vec::new());
    for (index, &task) in tasks.iter().enumerate() {
        let request = task.request(index as u64, &fabric);
        if let Some(demand) = seen.note(&request, &fabric) {
            occupancy.set_demand(demand);
            known = tasks[..=index].to_vec();
        }
        let Ok(placement) = policy.place(&request, &occupancy) else {
            assert!((0..3).all(|node| !Free::of(&occupancy, node).fits(task)), "{name}: {task:?}");
            continue;
        };
        look(&occupancy, &known, task, &placement);
        occupancy.claim(&placement).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// `fgd` and `gpu-packing` take the node, and for a part the GPU, where the measure over all tasks so far rises
    /// least. The measure is computed from the definitions, for every possible choice.
    #[test]
    fn the_measure_rises_least(tasks in prop::collection::vec(task(), 1..30)) {
        for (name, unfed) in [("fgd", 0.0), ("gpu-packing", 1.0 / 6.0)] {
            play(name, &tasks, |occupancy, seen, task, placement| {
                let rise = |before: &Free, after: &Free| after.measure(seen, unfed) - before.measure(seen, unfed);
                let least = (0..3).flat_map(|node| {
                    let before = Free::of(occupancy, node);
                    before.after(task).into_iter().map(move |after| rise(&before, &after))
                }).fold(f64::INFINITY, f64::min);
                let mut after = occupancy.clone();
                after.claim(placement).unwrap();
                let node = placement.nodes()[0];
                let taken = rise(&Free::of(occupancy, node), &Free::of(&after, node));
                assert!((taken - least).abs() < 1e-5, "{name}: {task:?} rises by {taken}, not {least}");
            });
        }
    }

    /// `best-fit` takes a node with the least left. Cores and GPUs are relative to those of a node; memory is equal
    /// here.
    #[test]
    fn best_fit_leaves_least(tasks in prop::collection::vec(task(), 1..30)) {
        play("best-fit", &tasks, |occupancy, _, task, placement| {
            let left = |node| {
                let free = Free::of(occupancy, node);
                free.cores as f64 / CORES as f64 + free.total() as f64 / (1000.0 * GPUS as f64)
            };
            let fitting = (0..3).filter(|&node| Free::of(occupancy, node).fits(task));
            let least = fitting.map(left).fold(f64::INFINITY, f64::min);
            assert!((left(placement.nodes()[0]) - least).abs() < 1e-9);
        });
    }
}

/// Tasks of 600 and of 400 thousandths arrive equally often. A 400 goes where a GPU has 400 left, not to a wholly free
/// one. `fgd` does this without knowing the kinds in advance, because it has seen the tasks.
#[test]
fn a_part_fills_a_gpu_that_is_cut() {
    let [large, part] = [600, 400].map(|thousandths| Task { cores: 1, thousandths });
    let mut on = Vec::new();
    play("fgd", &[large, large, part, part], |_, _, _, placement| {
        on.push((placement.nodes()[0], placement.gpus()[0]));
    });
    assert_eq!((on[2], on[3]), (on[0], on[1]), "{on:?}");
}

/// Requests without GPUs and whole nodes are not counted; a new demand is made after a quarter more requests.
#[test]
fn demand_is_what_was_seen() {
    let fabric = machine();
    let mut seen = SeenRequests::default();
    assert!(seen.note(&Request::whole_nodes(1, 1, 1.0), &fabric).is_none());
    let cores = Request { share: Share::part(1, 0), ..Request::whole_nodes(1, 1, 1.0) };
    assert!(seen.note(&cores, &fabric).is_none());
    let task = |thousandths| Task { cores: 1, thousandths }.request(1, &fabric);
    let sampled: Vec<bool> = (0..8).map(|_| seen.note(&task(500), &fabric).is_some()).collect();
    assert_eq!(sampled, [true, true, true, true, true, false, true, false]);
    let demand = (0..8).find_map(|_| seen.note(&task(2000), &fabric)).unwrap();
    let shares: Vec<(u64, f64)> =
        demand.kinds().iter().map(|kind| (kind.thousandths, kind.share)).collect();
    assert_eq!(shares, [(500, 8.0 / 9.0), (2000, 1.0 / 9.0)]);
}
