//! GPUs one by one: parts of GPUs, the choice of GPUs, and that none is given twice.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use proptest::prelude::*;
use topolane_fabric::{Fabric, NodeIndex, read};
use topolane_placement::{
    Amounts, GpuPart, GpuSet, Occupancy, Placement, Policy, Request, Share, policy,
};

/// Six nodes with eight GPUs of one type, two nodes with two GPUs of each of two types and one without a type, and two
/// without GPUs.
const MACHINE: &str = r#"
name = "m"
[node]
sockets = 2
cores-per-socket = 32
memory = 1000
resources = { gpu = 8, "gpu:h100" = 8 }
[[node-kind]]
nodes = "m[7-8]"
resources = { gpu = 5, "gpu:a10" = 2, "gpu:t4" = 2 }
[[node-kind]]
nodes = "m[9-10]"
resources = {}
[[site]]
name = "s"
children = [2, 5]
"#;

fn machine() -> Arc<Fabric> {
    Arc::new(Fabric::build(&read::machine_toml(MACHINE).unwrap()).unwrap())
}

/// One core, and whole GPUs of a type or of any.
fn gpus(fabric: &Fabric, name: &str, count: u64) -> Share {
    Share::Part(Amounts::named(fabric.resources(), [("cores", 1), (name, count)]).unwrap())
}

/// One core and a part of a GPU of a type or of any.
fn part(fabric: &Fabric, name: &str, thousandths: u16) -> Share {
    let part = GpuPart::new(fabric.resources().index(name).unwrap(), thousandths);
    Share::Part(Amounts::new(1, 0).with_gpu_part(part))
}

fn request(nodes: u32, share: Share) -> Request {
    Request { nodes, share, ..Request::default() }
}

fn first_fit() -> Box<dyn Policy> {
    policy("first-fit", 0).unwrap()
}

/// Places a request and claims the placement.
fn start(occupancy: &mut Occupancy, nodes: u32, share: Share) -> Placement {
    let placement = first_fit().place(&request(nodes, share), occupancy).unwrap();
    occupancy.claim(&placement).unwrap();
    placement
}

/// The GPU indices of each slot.
fn indices(placement: &Placement) -> Vec<Vec<usize>> {
    placement.gpus().iter().map(|gpus| gpus.iter().collect()).collect()
}

/// Everything that an occupancy shows of GPUs and counts.
fn seen(occupancy: &Occupancy) -> Vec<(Vec<u64>, Vec<u16>, u32)> {
    let of_node = |node| {
        (occupancy.free(node).to_vec(), occupancy.gpus_free(node).to_vec(), occupancy.held(node))
    };
    (0..occupancy.fabric().nodes()).map(of_node).collect()
}

/// What each slot of a job takes: whole GPUs of a type, or thousandths of one.
#[derive(Debug, Clone)]
struct Job {
    kind: &'static str,
    whole: u64,
    part: u16,
    nodes: u32,
    stacked: bool,
}

fn jobs() -> impl Strategy<Value = Vec<(Job, u8)>> {
    let kind = prop_oneof![3 => Just("gpu"), 1 => Just("gpu:h100"), 1 => Just("gpu:a10"), 1 => Just("gpu:t4")];
    let job = (kind, 1u64..5, prop_oneof![Just(0u16), 1u16..1000], 1u32..4, any::<bool>());
    let job = job.prop_map(|(kind, whole, part, nodes, stacked)| Job {
        kind,
        whole,
        part,
        nodes,
        stacked,
    });
    prop::collection::vec((job, any::<u8>()), 0..80)
}

fn share(fabric: &Fabric, job: &Job) -> Share {
    if job.part > 0 { part(fabric, job.kind, job.part) } else { gpus(fabric, job.kind, job.whole) }
}

/// The held thousandths of every GPU of every node, by these placements.
fn held(fabric: &Fabric, running: &[Placement]) -> Vec<Vec<u16>> {
    let gpu = fabric.resources().index("gpu").unwrap();
    let mut held: Vec<Vec<u16>> =
        (0..fabric.nodes()).map(|node| vec![0; fabric.counts(node)[gpu] as usize]).collect();
    for placement in running {
        let Share::Part(amounts) = placement.share() else { continue };
        let each = amounts.gpu_part().map_or(1000, GpuPart::thousandths);
        for (&node, gpus) in placement.nodes().iter().zip(placement.gpus()) {
            gpus.iter().for_each(|gpu| held[node as usize][gpu] += each);
        }
    }
    held
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Jobs arrive and leave. No GPU is given out more than once; its free part is what its holders leave; counts are
    /// the wholly free GPUs of each type; a job gets the number and type of GPUs that it asked for; after all jobs have
    /// left, everything is free.
    #[test]
    fn gpus_are_given_once_and_come_back(jobs in jobs()) {
        let fabric = machine();
        let mut occupancy = Occupancy::new(Arc::clone(&fabric));
        let empty = seen(&occupancy);
        let mut running: Vec<Placement> = Vec::new();
        for (job, end) in jobs {
            if end % 3 == 0 && !running.is_empty() {
                let gone = running.swap_remove(usize::from(end) % running.len());
                occupancy.release(&gone);
            }
            let request = Request { stacked: job.stacked, ..request(job.nodes, share(&fabric, &job)) };
            let Ok(placement) = first_fit().place(&request, &occupancy) else { continue };
            prop_assert_eq!(placement.gpus().len(), placement.nodes().len());
            for (&node, gpus) in placement.nodes().iter().zip(placement.gpus()) {
                prop_assert_eq!(gpus.len() as u64, if job.part > 0 { 1 } else { job.whole });
                let wanted = fabric.resources().index(job.kind).unwrap();
                let of_type = |gpu| job.kind == "gpu" || occupancy.gpu_type(node, gpu) == Some(wanted);
                prop_assert!(gpus.iter().all(of_type), "{:?} on {}: {:?}", job, node, gpus);
            }
            prop_assert!(occupancy.claim(&placement).is_ok());
            running.push(placement);
            let held = held(&fabric, &running);
            for node in 0..fabric.nodes() {
                let held = &held[node as usize];
                prop_assert!(held.iter().all(|&held| held <= 1000), "node {}: {:?}", node, held);
                let free: Vec<u16> = held.iter().map(|held| 1000 - held).collect();
                prop_assert_eq!(occupancy.gpus_free(node), &free[..]);
                for name in ["gpu", "gpu:h100", "gpu:a10", "gpu:t4"] {
                    let kind = fabric.resources().index(name).unwrap();
                    let whole = free.iter().enumerate().filter(|&(gpu, &free)| {
                        free == 1000 && (name == "gpu" || occupancy.gpu_type(node, gpu) == Some(kind))
                    });
                    prop_assert_eq!(occupancy.free(node)[kind], whole.count() as u64, "{} {}", node, name);
                }
            }
        }
        let full = seen(&occupancy);
        let mut tried = occupancy.what_if();
        for placement in &running {
            tried.release(Arc::new(placement.clone()));
        }
        prop_assert_eq!(seen(&tried), &empty[..]);
        while let Ok(placement) = first_fit().place(&request(1, part(&fabric, "gpu", 300)), &tried) {
            prop_assert!(tried.claim(Arc::new(placement)).is_ok());
        }
        drop(tried);
        prop_assert_eq!(seen(&occupancy), full, "what was tried is undone, each GPU by itself");
        for placement in &running {
            occupancy.release(placement);
        }
        prop_assert_eq!(seen(&occupancy), empty);
    }

    /// The cached nodes with a slot are those on which one fits, for nodes and for every group, after any claims,
    /// releases, nodes out of service, and attempts that were undone.
    #[test]
    fn slots_kept_are_slots_counted(jobs in jobs()) {
        let fabric = machine();
        let mut occupancy = Occupancy::new(Arc::clone(&fabric));
        let shares = [gpus(&fabric, "gpu", 2), gpus(&fabric, "gpu:t4", 1), part(&fabric, "gpu", 300), Share::part(3, 10)];
        let check = |occupancy: &Occupancy, share: &Share| {
            let request = request(1, share.clone());
            let free = occupancy.free_slots(&request);
            let fit = |node: NodeIndex| u32::from(occupancy.fits(node, share));
            for node in 0..fabric.nodes() {
                assert_eq!(free.count(0, node), fit(node), "node {node}");
            }
            for level in 1..=fabric.depth() {
                for group in 0..fabric.groups(level) {
                    let fitting: u32 = fabric.node_range(level, group).map(fit).sum();
                    assert_eq!(free.count(level, group), fitting, "level {level}, group {group}");
                }
            }
        };
        let mut running: Vec<Arc<Placement>> = Vec::new();
        for (job, end) in jobs {
            let end = usize::from(end);
            let share = if end % 7 == 0 { Share::Whole } else { share(&fabric, &job) };
            if end % 3 == 0 && !running.is_empty() {
                occupancy.release(&running.swap_remove(end % running.len()));
            }
            if end % 5 == 0 {
                occupancy.set_in_service((end % 10) as NodeIndex, end % 2 == 0);
            }
            if let Ok(placement) = first_fit().place(&request(job.nodes, share.clone()), &occupancy) {
                occupancy.claim(&placement).unwrap();
                running.push(Arc::new(placement));
            }
            check(&occupancy, &shares[end % 4]);
            let mut tried = occupancy.what_if();
            for placement in running.iter().take(end % 6) {
                tried.release(Arc::clone(placement));
            }
            if end % 2 == 0 {
                check(&tried, &shares[end / 2 % 4]);
            }
            if let Ok(placement) = first_fit().place(&request(job.nodes, share), &tried) {
                tried.claim(Arc::new(placement)).unwrap();
            }
            drop(tried);
            check(&occupancy, &shares[(end + 1) % 4]);
            check(&occupancy.clone(), &shares[(end + 2) % 4]);
        }
    }

    /// Exactly the counted number of slots can be placed one after another.
    #[test]
    fn slots_counted_are_slots_placed(before in jobs(), thousandths in 1u16..1000) {
        let fabric = machine();
        let mut occupancy = Occupancy::new(Arc::clone(&fabric));
        for (job, _) in before {
            let request = request(job.nodes, share(&fabric, &job));
            if let Ok(placement) = first_fit().place(&request, &occupancy) {
                occupancy.claim(&placement).unwrap();
            }
        }
        for share in [part(&fabric, "gpu", thousandths), gpus(&fabric, "gpu", 2), gpus(&fabric, "gpu:a10", 1)] {
            let request = Request { stacked: true, ..request(1, share) };
            let counted = occupancy.free_slots(&request).total();
            let mut tried = occupancy.clone();
            let mut placed = 0;
            while let Ok(placement) = first_fit().place(&request, &tried) {
                prop_assert_eq!(placement.gpus().len(), 1);
                tried.claim(&placement).unwrap();
                placed += 1;
            }
            prop_assert_eq!(counted, placed);
        }
    }
}

/// A part goes to the cut GPU with the least left that suffices; a whole GPU is only cut if none suffices.
#[test]
fn parts_fill_gpus_that_are_cut_already() {
    let fabric = machine();
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    let mut given =
        |thousandths| indices(&start(&mut occupancy, 1, part(&fabric, "gpu", thousandths)));
    assert_eq!(given(600), [[0]]);
    assert_eq!(given(500), [[1]], "400 are left of GPU 0");
    assert_eq!(given(400), [[0]], "GPU 0 has 400 left, GPU 1 has 500");
    assert_eq!(given(500), [[1]]);
    assert_eq!(given(1), [[2]]);
    assert_eq!(occupancy.gpus_free(0), [0, 0, 999, 1000, 1000, 1000, 1000, 1000]);
    let gpu = fabric.resources().index("gpu").unwrap();
    assert_eq!(occupancy.free(0)[gpu], 5, "three are not wholly free");
}

/// Whole GPUs lie in the smallest aligned block that has enough, preferably in one with few free GPUs left.
#[test]
fn whole_gpus_stay_together() {
    let fabric = machine();
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    let mut given =
        |count| indices(&start(&mut occupancy, 1, gpus(&fabric, "gpu", count))).remove(0);
    assert_eq!(given(1), [0]);
    assert_eq!(given(2), [2, 3], "in the half that is broken already");
    assert_eq!(given(4), [4, 5, 6, 7]);
    assert_eq!(given(1), [1]);
    assert_eq!(given(3), [0, 1, 2], "on the next node");
    assert_eq!(given(2), [4, 5]);
    assert_eq!(given(3), [3, 6, 7], "no half has three: whatever is left");
}

/// All nodes of a job get the same GPUs if possible, so that its traffic stays on their rails.
#[test]
fn nodes_of_a_job_get_the_same_gpus() {
    let fabric = machine();
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    start(&mut occupancy, 1, gpus(&fabric, "gpu", 2));
    let both = start(&mut occupancy, 2, gpus(&fabric, "gpu", 2));
    assert_eq!((both.nodes(), indices(&both)), (&[0, 1][..], vec![vec![2, 3]; 2]));
    let all = start(&mut occupancy, 2, gpus(&fabric, "gpu", 4));
    assert_eq!(indices(&all), vec![vec![4, 5, 6, 7]; 2]);
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    let halves = [GpuSet::range(2, 6), GpuSet::range(0, 2) | GpuSet::range(4, 4)];
    let held =
        Placement::new(&fabric, vec![0, 1], gpus(&fabric, "gpu", 6)).with_gpus(halves.into());
    occupancy.claim(&held).unwrap();
    let apart = start(&mut occupancy, 2, gpus(&fabric, "gpu", 2));
    assert_eq!((apart.nodes(), indices(&apart)), (&[0, 1][..], vec![vec![0, 1], vec![2, 3]]));
}

/// A node held whole has no free GPU, but its counts do not change.
#[test]
fn whole_nodes_hold_all_gpus() {
    let fabric = machine();
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    start(&mut occupancy, 1, part(&fabric, "gpu", 100));
    let whole = start(&mut occupancy, 1, Share::Whole);
    assert_eq!((whole.nodes(), whole.gpus().len()), (&[1][..], 0));
    assert_eq!(occupancy.gpus_free(1), [0; 8]);
    assert_eq!(occupancy.gpus_free(8), [0; 0]);
    occupancy.release(&whole);
    assert_eq!(occupancy.gpus_free(1), [1000; 8]);
}

/// A part of a T4 is cut from a T4; a part of a type that no node has is refused by name.
#[test]
fn a_part_of_a_type_is_of_that_type() {
    let fabric = machine();
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    let t4 = start(&mut occupancy, 1, part(&fabric, "gpu:t4", 500));
    assert_eq!((t4.nodes(), indices(&t4)), (&[6][..], vec![vec![2]]));
    assert_eq!(occupancy.gpu_type(6, 4), fabric.resources().index("gpu"), "no type");
    let mut other = topolane_fabric::resources::Resources::default();
    let kind = other.add("gpu:v100").unwrap();
    let amounts = Amounts::new(1, 0).with_gpu_part(GpuPart::new(kind, 500));
    let refusal = amounts.reordered(&other, fabric.resources()).unwrap_err();
    assert_eq!(&*refusal.resource, "gpu:v100");
    let back = Amounts::new(1, 0).with_gpu_part(GpuPart::new(other.index("gpu").unwrap(), 500));
    assert_eq!(
        Share::Part(back.reordered(&other, fabric.resources()).unwrap()),
        part(&fabric, "gpu", 500)
    );
    assert_eq!(GpuPart::new(kind, 1000), None);
    assert_eq!(GpuPart::new(kind, 0), None);
}

/// A placement built by hand need not name its GPUs: then only their number is taken, and a whole GPU for a part.
#[test]
fn unnamed_gpus_are_counted() {
    let fabric = machine();
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    let was = seen(&occupancy);
    let node: NodeIndex = 0;
    let whole = Placement::new(&fabric, vec![node], gpus(&fabric, "gpu", 7));
    let shared = Placement::new(&fabric, vec![node], part(&fabric, "gpu", 10));
    occupancy.claim(&whole).unwrap();
    occupancy.claim(&shared).unwrap();
    assert_eq!(occupancy.claim(&shared).unwrap_err().node, 0);
    let placed = first_fit().place(&request(1, part(&fabric, "gpu", 10)), &occupancy).unwrap();
    assert_eq!(placed.nodes(), [1], "all of node 0 are held, named or not");
    occupancy.release(&whole);
    occupancy.release(&shared);
    assert_eq!(seen(&occupancy), was);
    assert_eq!(GpuSet::range(120, 20).len(), 8);
}
