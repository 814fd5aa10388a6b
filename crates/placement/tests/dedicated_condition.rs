//! The condition of docs/explanation/dedicated-links.md is sufficient: if `check` accepts a job, exhaustive search and
//! linear programming find routes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "common/partitions.rs"]
mod partitions;
#[path = "common/reference.rs"]
mod reference;
#[path = "common/routing.rs"]
mod routing;

use std::ops::Range;
use std::sync::Arc;

use partitions::{Tree, random_job};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use routing::{Flows, Job};
use topolane_fabric::{CableId, Fabric, pgft};
use topolane_placement::dedicated::{Violation, check};

/// The number of steps after which the search for routes gives up; no test comes close.
const STEPS: u64 = 2_000_000;

/// All permutations; if there are too many, the cyclic shifts, the mirror image and random ones.
fn permutations(job: &Job, most: usize, rng: &mut ChaCha8Rng) -> Vec<Flows> {
    let all = job.permutations(most + 1);
    if all.len() <= most {
        return all;
    }
    let count = job.nodes.iter().sum::<u32>() as usize;
    let shifts =
        (1..count).map(|by| (0..count).map(|node| (node + by) % count).collect::<Vec<_>>());
    let mut some: Vec<Flows> = shifts.map(|to| job.flows(&to)).collect();
    let mut to: Vec<usize> = (0..count).rev().collect();
    some.push(job.flows(&to));
    while some.len() < most {
        to.shuffle(rng);
        some.push(job.flows(&to));
    }
    some
}

/// Counts of what happened in a run over random jobs.
#[derive(Debug, Default)]
struct Seen {
    accepted: u32,
    over_pods: u32,
    /// Accepted, but not by (1) to (3) alone.
    beyond: u32,
    refused: u32,
}

/// Tests random jobs of up to `most` nodes, at full bandwidth and less: accepted jobs must have routes for up to `each`
/// permutations.
fn all_routed(seeds: Range<u64>, most: u32, each: usize) -> Seen {
    let mut seen = Seen::default();
    for seed in seeds {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let tree = Tree::random(&mut rng);
        let fabric = tree.fabric();
        let (nodes, links) = random_job(&mut rng, &fabric, most.min(fabric.nodes()));
        let job = Job::of(&fabric, &nodes, &links);
        if job.leaves() < 2 {
            continue;
        }
        for phi in [1.0, 0.7, 0.5] {
            let [leaf, pod] = tree.shares().map(|share| share * phi);
            let plain = job.leaves() < 8 && reference::meets(&job, leaf, pod);
            if check(&fabric, &nodes, &links, phi).is_err() {
                assert!(!plain, "seed {seed}, phi {phi}: {tree:?} {job:?}");
                seen.refused += 1;
                continue;
            }
            seen.accepted += 1;
            seen.beyond += u32::from(!plain);
            seen.over_pods += u32::from(job.core.len() > 1);
            for (index, flows) in permutations(&job, each, &mut rng).iter().enumerate() {
                let wrong = routed(&tree, &job, flows, phi, index % 40 == 0);
                assert_eq!(wrong, None, "seed {seed}, phi {phi}: {tree:?} {job:?} {flows:?}");
            }
        }
    }
    seen
}

/// Looks for routes of the flows: one route per flow, and with `split` also split routes. Returns what is wrong.
fn routed(tree: &Tree, job: &Job, flows: &Flows, phi: f64, split: bool) -> Option<String> {
    let [leaf, pod] = tree.shares();
    let on_a_cable = (1.0 / (phi * leaf) - 1e-9).ceil() as u32;
    let is_even = (leaf - pod).abs() < 1e-9 || job.core.len() == 1;
    if is_even && job.routes(flows, on_a_cable, STEPS) != Some(true) {
        return Some(format!("no routes with {on_a_cable} flows on a cable"));
    }
    let share = if split { job.spread(flows, phi * leaf, phi * pod) } else { 1.0 };
    (share < 1.0 - 1e-6).then(|| format!("only {share} of its bandwidth"))
}

/// Random trees have two or three levels, are full or oversubscribed, and have parallel and missing cables. If the
/// condition accepts nodes and cables, every permutation of up to seven nodes has one route per flow with at most
/// ceil(1 / share) flows on a cable in each direction, and split flows get their share of bandwidth all at once. The
/// condition accepts whatever meets (1) to (3), and more.
#[test]
fn every_permutation_of_a_small_partition_is_routed() {
    let seen = all_routed(0..700, 7, 400);
    assert!(seen.accepted > 1_000 && seen.over_pods > 500 && seen.refused > 500, "{seen:?}");
    assert!(seen.beyond > 30, "{seen:?}");
}

/// The same holds for up to twenty nodes and some of their permutations.
#[test]
fn permutations_of_larger_partitions_are_routed() {
    let seen = all_routed(10_000..10_150, 20, 40);
    assert!(seen.accepted > 150 && seen.over_pods > 60, "{seen:?}");
}

fn machine(children: &[u32], parents: &[u32]) -> Arc<Fabric> {
    let cables = vec![1; children.len()];
    Arc::new(Fabric::build(&pgft("n", children, parents, &cables)).unwrap())
}

/// The cables of all leaf and pod switches, except those named by (level, group, switch, parent).
fn all_but(fabric: &Fabric, without: &[(usize, u32, u32, u32)]) -> Vec<CableId> {
    let groups =
        (1..fabric.depth()).flat_map(|level| (0..fabric.groups(level)).map(move |g| (level, g)));
    let all = groups.flat_map(|(level, group)| fabric.uplinks(level, group));
    let gone: Vec<CableId> =
        without.iter().map(|&(l, g, s, p)| fabric.cable(l, g, s, p, 0).unwrap()).collect();
    all.filter(|id| !gone.contains(id)).collect()
}

/// The needs of leaves in a remainder add up. If two leaves with one node each own only one of the others' two uplinks,
/// there are no routes when both receive from leaves that also send to a third. With a single such leaf there are
/// routes.
#[test]
fn leaves_of_a_remainder_share_what_they_own() {
    let fabric = machine(&[2, 5], &[1, 2]);
    let nodes = [0, 1, 2, 3, 4, 5, 6, 8];
    let two = all_but(&fabric, &[(1, 3, 0, 1), (1, 4, 0, 1)]);
    let reason = check(&fabric, &nodes, &two, 1.0);
    assert!(matches!(reason, Err(Violation::Leaf { needed: 2, common: 1, .. })), "{reason:?}");
    let job = Job::of(&fabric, &nodes, &two);
    let refused =
        job.permutations(usize::MAX).iter().any(|flows| job.routes(flows, 1, STEPS) == Some(false));
    assert!(refused);
    let one = all_but(&fabric, &[(1, 4, 0, 1)]);
    assert_eq!(check(&fabric, &nodes, &one, 1.0), Ok(()));
}

/// A remainder in a job over pods needs more of the core than (3) says. Six nodes, one per leaf and two per pod, all
/// own both planes with one core cable in each: there are routes. If one leaf lacks a plane, some permutation has none.
#[test]
fn a_pod_with_a_remainder_needs_a_core_cable_for_every_leaf() {
    let fabric = machine(&[1, 2, 3], &[1, 2, 1]);
    let nodes: Vec<u32> = (0..6).collect();
    assert_eq!(check(&fabric, &nodes, &all_but(&fabric, &[]), 1.0), Ok(()));
    let less = all_but(&fabric, &[(1, 0, 0, 1)]);
    let reason = check(&fabric, &nodes, &less, 1.0);
    assert!(
        matches!(reason, Err(Violation::Pod { plane: 0, needed: 2, common: 1, .. })),
        "{reason:?}"
    );
    let job = Job::of(&fabric, &nodes, &less);
    let refused =
        job.permutations(usize::MAX).iter().any(|flows| job.routes(flows, 1, STEPS) == Some(false));
    assert!(refused);
    // With the core cables that (4) requires, there are routes.
    let wide = machine(&[1, 2, 3], &[1, 2, 2]);
    assert_eq!(check(&wide, &nodes, &all_but(&wide, &[(1, 0, 0, 1)]), 1.0), Ok(()));
}

/// Leaves without a common uplink are accepted if every two of them have enough in common.
#[test]
fn leaves_may_own_their_uplinks_by_pairs() {
    let fabric = machine(&[1, 3], &[1, 3]);
    let links = all_but(&fabric, &[(1, 0, 0, 0), (1, 1, 0, 1), (1, 2, 0, 2)]);
    assert_eq!(check(&fabric, &[0, 1, 2], &links, 1.0), Ok(()));
    let fewer = all_but(&fabric, &[(1, 0, 0, 0), (1, 1, 0, 1), (1, 2, 0, 2), (1, 0, 0, 1)]);
    assert_eq!(
        check(&fabric, &[0, 1, 2], &fewer, 1.0),
        Err(Violation::Leaf { leaf: 0, needed: 1, common: 0 })
    );
}

/// Nodes or cables that are not on the machine, or named twice, are refused by name.
#[test]
fn what_is_not_there_is_refused() {
    let tree = Tree {
        children: vec![1, 3],
        parents: vec![1, 2],
        cables: vec![1, 1],
        missing: vec![topolane_fabric::MissingCable {
            level: 1,
            group: 0,
            switch: 0,
            parent: 0,
            cable: 0,
        }],
    };
    let fabric = tree.fabric();
    let missing = fabric.cable(1, 0, 0, 0, 0).unwrap();
    let there = fabric.cable(1, 1, 0, 0, 0).unwrap();
    assert_eq!(check(&fabric, &[0, 3], &[], 1.0), Err(Violation::NoSuchNode { node: 3 }));
    let gone = check(&fabric, &[0, 1], &[missing], 1.0);
    assert_eq!(gone, Err(Violation::NoSuchCable { cable: missing }));
    assert_eq!(gone.unwrap_err().to_string(), format!("there is no cable {missing}"));
    let twice = check(&fabric, &[0, 1], &[there, there], 1.0);
    assert_eq!(twice, Err(Violation::CableTwice { cable: there }));
    // Nodes of one leaf need no uplinks.
    assert_eq!(check(&fabric, &[1], &[], 1.0), Ok(()));
}
