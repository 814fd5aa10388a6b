//! How many more jobs fit, and which free GPUs no job can use.

#![allow(clippy::unwrap_used, clippy::float_cmp)] // Helpers may fail; values are exact.

use std::sync::Arc;

use proptest::prelude::*;
use topolane_fabric::resources::{CORES, MEMORY};
use topolane_fabric::{Fabric, preset};
use topolane_placement::{
    Amounts, GpuPart, Occupancy, Placement, Room, RoomQuestion, Share, Stranded,
};

fn machine(name: &str) -> Arc<Fabric> {
    Arc::new(Fabric::build(&preset(name).unwrap().unwrap()).unwrap())
}

/// A unit of eight NVL72 racks: 144 nodes with 4 GPUs, 144 cores and 960 GiB.
fn racks() -> Occupancy {
    Occupancy::new(machine("nvl72(units=1)"))
}

fn hold(occupancy: &mut Occupancy, nodes: Vec<u32>, share: Share) {
    let placement = Placement::new(&occupancy.fabric().clone(), nodes, share);
    occupancy.claim(&occupancy.name_gpus(placement)).unwrap();
}

fn part(occupancy: &Occupancy, cores: u64, memory: u64, gpus: u64) -> Amounts {
    let gpu = occupancy.fabric().resources().index("gpu").unwrap();
    let mut counts = vec![0; gpu + 1];
    (counts[CORES], counts[MEMORY], counts[gpu]) = (cores, memory, gpus);
    Amounts::of(&counts)
}

fn ask(occupancy: &Occupancy, sizes: &[u32], segment: Option<u32>) -> Room {
    let smallest = part(occupancy, 9, 60 << 30, 1);
    Room::of(occupancy, &RoomQuestion { sizes: sizes.to_vec(), segment, smallest })
}

/// The number of jobs that fit, by level.
fn fits(occupancy: &Occupancy, size: u32, segment: Option<u32>) -> Vec<u64> {
    ask(occupancy, &[size], segment).fits.remove(0).jobs
}

#[test]
fn an_empty_machine_has_room_for_as_many_jobs_as_groups_have_whole_multiples_of_their_nodes() {
    let empty = racks();
    let room = ask(&empty, &[], Some(16));
    assert_eq!(room.levels, ["node", "domain", "segments", "leaf", "site"]);
    assert_eq!((room.unit, room.total, room.free, room.idle_nodes), ("gpus", 576.0, 576.0, 144));
    // Two jobs of two GPUs fit on every node, and so also in every group above it.
    assert_eq!(fits(&empty, 2, None), [288, 288, 288, 288]);
    assert_eq!(fits(&empty, 4, None), [144, 144, 144, 144]);
    // Nine jobs of two nodes fit in a rack. One job of 16 nodes fits in a rack, but nine on the whole machine.
    assert_eq!(fits(&empty, 8, Some(16)), [0, 72, 72, 72, 72]);
    assert_eq!(fits(&empty, 64, Some(16)), [0, 8, 8, 8, 9]);
    // Four jobs of two segments of 16 nodes fit, each segment in a rack of its own; none fits in one rack.
    assert_eq!(fits(&empty, 128, Some(16)), [0, 0, 4, 0, 4]);
    assert_eq!(fits(&empty, 1_024, Some(16)), [0, 0, 0, 0, 0]);
    assert_eq!(room.stranded.unwrap().left_over_from_segments, 8.0 * 2.0 * 4.0);
}

/// A job on a part of a node needs the cores and memory of the smallest job, so stranded GPUs do not count.
#[test]
fn jobs_on_a_node_take_the_cores_and_the_memory_of_the_smallest_job() {
    let mut state = racks();
    let idle = fits(&state, 1, None)[0];
    // What remains is 17 cores (one job of 9), 60 GiB (one job), and too little memory for any job.
    for (node, cores, memory) in [(0, 127, 0), (1, 1, 900 << 30), (2, 1, 901 << 30)] {
        let share = part(&state, cores, memory, 1);
        hold(&mut state, vec![node], Share::Part(share));
    }
    assert_eq!(fits(&state, 1, None)[0], idle - 3 * 4 + 1 + 1);
    assert_eq!(ask(&state, &[], None).stranded.unwrap().without_memory, 3.0);
}

#[test]
fn a_machine_without_gpus_counts_nodes() {
    let occupancy = Occupancy::new(machine("fat-tree(radix=4)"));
    let question = RoomQuestion { sizes: vec![1, 2, 4, 16], ..RoomQuestion::default() };
    let room = Room::of(&occupancy, &question);
    assert_eq!((room.unit, room.levels.len(), room.stranded), ("nodes", 4, None));
    let jobs: Vec<Vec<u64>> = room.fits.into_iter().map(|fit| fit.jobs).collect();
    assert_eq!(jobs, [[16, 16, 16, 16], [0, 8, 8, 8], [0, 0, 4, 4], [0, 0, 0, 1]]);
    assert_eq!(Room::usual_sizes(occupancy.fabric()), [1, 2, 4, 8, 16]);
}

#[test]
fn free_gpus_are_stranded_where_cores_or_memory_are_gone_or_too_little_of_a_gpu_is_left() {
    let mut state = racks();
    let gpu = state.fabric().resources().index("gpu").unwrap();
    // Node 0: all cores are taken with one GPU. Node 1: all memory. Node 2: 700 thousandths of a GPU. Node 3: nothing
    // is stranded.
    for (node, share) in [
        (0, part(&state, 144, 0, 1)),
        (1, part(&state, 1, 960 << 30, 2)),
        (2, part(&state, 1, 0, 0).with_gpu_part(GpuPart::new(gpu, 700))),
        (3, part(&state, 36, 0, 1)),
    ] {
        hold(&mut state, vec![node], Share::Part(share));
    }
    let stranded = |state: &Occupancy| ask(state, &[], None).stranded.unwrap();
    let expected =
        Stranded { without_cores: 3.0, without_memory: 2.0, scraps: 0.3, ..Stranded::default() };
    assert_eq!(stranded(&state), expected);
    assert_eq!(ask(&state, &[], None).free, 576.0 - 1.0 - 2.0 - 0.7 - 1.0);
    // The same figures by domain: all four nodes are in the first rack.
    let question =
        RoomQuestion { smallest: part(&state, 9, 60 << 30, 1), ..RoomQuestion::default() };
    let racks = Room::by_domain(&state, &question);
    assert_eq!((racks.len(), racks[0].name.as_str(), racks[0].idle_nodes), (8, "rack1", 14));
    assert_eq!(racks[0].stranded, expected);
    assert!(racks[1..].iter().all(|rack| rack.stranded == Stranded::default()));
    // A node out of service has no free GPUs.
    state.set_in_service(0, false);
    assert_eq!(stranded(&state).without_cores, 0.0);
}

proptest! {
    /// Exactly the counted number of jobs can be placed one after another, each on nodes of one domain.
    #[test]
    fn the_counted_jobs_fit_in_domains_and_not_one_more(
        busy in prop::collection::vec(0..144_u32, 0..120),
        nodes in 2..19_u32,
    ) {
        let mut state = racks();
        for node in busy {
            if state.idle().contains(node) {
                hold(&mut state, vec![node], Share::Whole);
            }
        }
        let figure = fits(&state, nodes * 4, None)[1];
        let fabric = state.fabric().clone();
        let mut placed = 0;
        for domain in 0..fabric.domains() {
            loop {
                let idle = |node: &&u32| state.idle().contains(**node);
                let taken: Vec<u32> = fabric.domain_nodes(domain).iter().filter(idle).copied()
                    .take(nodes as usize).collect();
                if taken.len() < nodes as usize { break }
                hold(&mut state, taken, Share::Whole);
                placed += 1;
            }
        }
        prop_assert_eq!(figure, placed);
        prop_assert_eq!(fits(&state, nodes * 4, None)[1], 0);
    }
}
