//! The worked examples and the rules of choice in the SC'18 paper on isolation.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;

use common::{rule, tree, whole};
use topolane_fabric::Fabric;
use topolane_placement::{Occupancy, Placement, Refusal, Request};

/// A machine of radix 6: two pods of three leaves of three nodes.
fn radix_6() -> Arc<Fabric> {
    tree(&[3, 3, 2])
}

/// A job on nodes that are numbered from 1, as in the paper.
fn job(fabric: &Fabric, numbers: &[u32]) -> Placement {
    whole(fabric, &numbers.iter().map(|number| number - 1).collect::<Vec<_>>())
}

/// The levels at which two jobs may share uplinks: 1 from leaf to L2, 2 from L2 to core.
fn meet(a: &Placement, b: &Placement) -> BTreeSet<u8> {
    let both = a.crossed().iter().filter(|group| b.crossed().contains(group));
    both.map(|&(level, _)| level).collect()
}

fn asked(occupancy: &Occupancy, nodes: u32) -> Result<Vec<u32>, Refusal> {
    let placed = rule("isolated").place(&Request::whole_nodes(0, nodes, 1.0), occupancy);
    placed.map(|placed| placed.nodes().to_vec())
}

/// Red is on 1 and 4, blue on 2, 3, 5, 10 and 11, yellow on 7, 13 and 14. Red and blue may share links from leaf to L2,
/// blue and yellow links from L2 to core, red and yellow none.
#[test]
fn red_meets_blue_and_blue_meets_yellow() {
    let fabric = radix_6();
    let (red, blue) = (job(&fabric, &[1, 4]), job(&fabric, &[2, 3, 5, 10, 11]));
    let yellow = job(&fabric, &[7, 13, 14]);
    assert_eq!(meet(&red, &blue), BTreeSet::from([1]));
    assert_eq!(meet(&blue, &yellow), BTreeSet::from([2]));
    assert_eq!(meet(&red, &yellow), BTreeSet::new());
}

/// T1 jobs have 1 to 3 nodes and cross no leaf; T2 jobs have 4 to 9 and cross no pod; T3 jobs have 10 to 18. A T1 job
/// is never spread over leaves nor a T2 job over pods, even if there are enough nodes.
#[test]
fn classes_are_bounded_by_leaf_pod_and_machine() {
    let fabric = radix_6();
    let empty = Occupancy::new(Arc::clone(&fabric));
    for nodes in 1..=18 {
        let placed = whole(&fabric, &asked(&empty, nodes).unwrap());
        let highest = placed.crossed().iter().map(|&(level, _)| level).max().unwrap_or(0);
        assert_eq!(highest, if nodes <= 3 { 0 } else { 1 + u8::from(nodes > 9) }, "{nodes} nodes");
    }
    let mut one_in_each_leaf = empty.clone();
    for leaf in 0..6 {
        one_in_each_leaf.claim(&whole(&fabric, &[3 * leaf])).unwrap();
    }
    let shares = |nodes, free| Err(Refusal::WouldShareLinks { wanted: nodes, free });
    assert_eq!(asked(&one_in_each_leaf, 3), shares(3, 12));
    assert!(asked(&one_in_each_leaf, 2).is_ok());
    assert!(asked(&one_in_each_leaf, 6).is_ok(), "T1 jobs may share the leaves of a T2 job");
    assert_eq!(asked(&one_in_each_leaf, 7), shares(7, 12));
    assert!(asked(&one_in_each_leaf, 12).is_ok(), "and those of a T3 job");
}

/// One T3, one T2 and two T1 jobs fill the machine, and no group is crossed twice. Exchanging a node of the T2 job with
/// one of the T3 job violates this, except for the exchange after which each job is the only one to cross its new leaf.
#[test]
fn two_t1_a_t2_and_a_t3_share_the_machine() {
    let fabric = radix_6();
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    let mut jobs = Vec::new();
    for nodes in [10, 4, 2, 2] {
        jobs.push(asked(&occupancy, nodes).unwrap());
        occupancy.claim(&whole(&fabric, jobs.last().unwrap())).unwrap();
    }
    assert_eq!(occupancy.idle_nodes(), 0);
    let sound = |jobs: &[Vec<u32>]| {
        let jobs: Vec<_> = jobs.iter().map(|nodes| whole(&fabric, nodes)).collect();
        jobs.iter().enumerate().all(|(i, a)| jobs[..i].iter().all(|b| meet(a, b).is_empty()))
    };
    assert!(sound(&jobs));
    assert_eq!((&jobs[0][9..], &jobs[1][..]), (&[9][..], &[12, 13, 14, 15][..]));
    let mut kept = Vec::new();
    for (a, b) in (0..10).flat_map(|a| (0..4).map(move |b| (a, b))) {
        let mut exchanged = jobs.clone();
        (exchanged[0][a], exchanged[1][b]) = (jobs[1][b], jobs[0][a]);
        if sound(&exchanged) {
            kept.push((jobs[0][a], jobs[1][b]));
        }
    }
    assert_eq!(kept, [(9, 15)]);
}

/// T1: of the pods with enough nodes, the one with the fewest free; in it, of the leaves that can hold the job, the one
/// with the fewest free. A pod whose leaves are all too small is skipped.
#[test]
fn t1_takes_the_least_available_pod_and_leaf() {
    let fabric = tree(&[4, 3, 3]);
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    // Free nodes on the leaves: pod 0: 4 4 4; pod 1: 4 1 2; pod 2: 4 4 2.
    for nodes in [&[16, 17, 18][..], &[20, 21], &[32, 33]] {
        occupancy.claim(&whole(&fabric, nodes)).unwrap();
    }
    assert_eq!(asked(&occupancy, 1).unwrap(), [19]);
    assert_eq!(asked(&occupancy, 2).unwrap(), [22, 23]);
    assert_eq!(asked(&occupancy, 3).unwrap(), [12, 13, 14]);
    occupancy.claim(&whole(&fabric, &[12, 13])).unwrap();
    assert_eq!(asked(&occupancy, 3).unwrap(), [24, 25, 26], "pod 1 has 5 free, but 2 to a leaf");
}

/// T2: pods with the fewest free nodes first; a pod whose leaves without T2 or T3 jobs cannot hold the job is skipped.
/// In the pod, such leaves with the most free nodes come first.
#[test]
fn t2_takes_the_least_available_pod_and_its_most_available_leaves() {
    let fabric = tree(&[4, 3, 3]);
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    // A T2 job is on leaves 3 and 4 of pod 1. T1 jobs leave 2, 3 and 4 free nodes on the leaves of pod 2.
    for nodes in [&[12, 13, 14, 15, 16][..], &[24, 25], &[28]] {
        occupancy.claim(&whole(&fabric, nodes)).unwrap();
    }
    // Pod 1 has 7 free nodes, the fewest, but only 4 on a leaf that the T2 job does not cross.
    assert_eq!(asked(&occupancy, 5).unwrap(), [29, 32, 33, 34, 35]);
    assert_eq!(asked(&occupancy, 8).unwrap(), [26, 29, 30, 31, 32, 33, 34, 35]);
    assert_eq!(asked(&occupancy, 10).unwrap(), (0..10).collect::<Vec<_>>());
    occupancy.claim(&whole(&fabric, &[0])).unwrap();
    occupancy.claim(&whole(&fabric, &[4])).unwrap();
    assert_eq!(asked(&occupancy, 10).unwrap(), [1, 2, 3, 5, 6, 7, 8, 9, 10, 11]);
    let refused = Refusal::WouldShareLinks { wanted: 11, free: 26 };
    assert_eq!(asked(&occupancy, 11), Err(refused), "10, 4 and 9 to be had in the pods");
}

/// T3: pods without another T3 job, the most free nodes first; in them, leaves without a T2 job, the most free nodes
/// first.
#[test]
fn t3_takes_the_most_available_pods_and_leaves() {
    let fabric = tree(&[2, 3, 4]);
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    // Pod 0: a T2 job on leaves 0 and 1. Pod 1: one busy node. Pod 2: free. Pod 3: two busy nodes.
    for nodes in [&[0, 1, 2][..], &[6], &[18], &[20]] {
        occupancy.claim(&whole(&fabric, nodes)).unwrap();
    }
    // The job gets pod 2 (6 free), pod 1 (5), then from pod 3 (4) the first leaf with 2 free.
    let expected: Vec<u32> = (7..18).chain([22]).collect();
    assert_eq!(asked(&occupancy, 12).unwrap(), expected);
    occupancy.claim(&whole(&fabric, &expected)).unwrap();
    assert_eq!(asked(&occupancy, 7), Err(Refusal::NotNow { wanted: 7, free: 6 }));
    occupancy.release(&whole(&fabric, &[0, 1, 2]));
    let refused = Refusal::WouldShareLinks { wanted: 7, free: 9 };
    assert_eq!(asked(&occupancy, 7), Err(refused), "pods 1 to 3 have a T3 job");
}
