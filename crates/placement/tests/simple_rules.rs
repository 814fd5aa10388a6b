//! The simple policies, with results computed by hand: first fit, scattered, Slurm's tree, recorded.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "printed/fullest_leaf.rs"]
mod fullest_leaf;

use std::sync::Arc;

use common::{build, rule, tree, whole};
use fullest_leaf::FullestLeaf;
use topolane_placement::{Occupancy, Policy, Refusal, Request};

fn placed(name: &str, nodes: u32, occupancy: &Occupancy) -> Vec<u32> {
    let request = Request::whole_nodes(0, nodes, 1.0);
    rule(name).place(&request, occupancy).unwrap().nodes().to_vec()
}

/// The policy that CONTRIBUTING.md prints: with 2, 1 and 3 free nodes, a job of 4 takes the leaf with 1, that with 2, and
/// one node of the last. The page and the file that is compiled here are the same.
#[test]
fn the_printed_policy_takes_the_fullest_leaves() {
    let fabric = tree(&[3, 3]);
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    occupancy.claim(&whole(&fabric, &[0, 3, 4])).unwrap();
    let policy: &dyn Policy = &FullestLeaf;
    let placement = policy.place(&Request::whole_nodes(0, 4, 1.0), &occupancy).unwrap();
    assert_eq!(placement.nodes(), [5, 1, 2, 6]);

    let page = include_str!("../../../CONTRIBUTING.md");
    let (_, after) = page.split_once("policies/fullest_leaf.rs`:\n\n   ```rust\n").unwrap();
    let (printed, _) = after.split_once("   ```").unwrap();
    let lines = printed.lines().map(|line| line.strip_prefix("   ").unwrap_or(line));
    let printed: String = lines.flat_map(|line| [line, "\n"]).collect();
    let compiled = include_str!("printed/fullest_leaf.rs");
    assert_eq!(printed.replace("use crate::", "use topolane_placement::"), compiled);
}

/// First fit takes the free nodes of lowest index.
#[test]
fn first_fit_takes_the_lowest() {
    let fabric = tree(&[3, 3]);
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    occupancy.claim(&whole(&fabric, &[0, 2, 4])).unwrap();
    occupancy.set_in_service(5, false);
    assert_eq!(placed("first-fit", 4, &occupancy), [1, 3, 6, 7]);
}

/// Scattered takes one node from each leaf in turn, in rank order, and continues with the leaves that still have some.
#[test]
fn scattered_deals_leaf_by_leaf() {
    let fabric = tree(&[3, 3]);
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    assert_eq!(placed("scattered", 5, &occupancy), [0, 3, 6, 1, 4]);
    occupancy.claim(&whole(&fabric, &[3, 4])).unwrap();
    assert_eq!(placed("scattered", 6, &occupancy), [0, 5, 6, 1, 7, 2]);
}

/// The tightest leaf that can hold the job, among equals the first. With 4, 2, 3 and 3 free nodes, a job of 2 goes to
/// the leaf with 2, and a job of 3 to the first leaf with 3.
#[test]
fn slurm_takes_the_tightest_leaf() {
    let fabric = tree(&[4, 2, 2]);
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    occupancy.claim(&whole(&fabric, &[4, 5, 8, 12])).unwrap();
    assert_eq!(placed("slurm-tree", 2, &occupancy), [6, 7]);
    assert_eq!(placed("slurm-tree", 3, &occupancy), [9, 10, 11]);
    assert_eq!(placed("slurm-tree", 4, &occupancy), [0, 1, 2, 3]);
}

/// No leaf can hold 6, and both pods have 6 free nodes, so the first pod is used: its larger leaf whole, then the rest.
/// A job of 5 goes there too: the leaf with 4, then one node of the leaf with 2.
#[test]
fn slurm_takes_the_lowest_switch_with_room() {
    let fabric = tree(&[4, 2, 2]);
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    occupancy.claim(&whole(&fabric, &[0, 1, 8, 12])).unwrap();
    assert_eq!(placed("slurm-tree", 6, &occupancy), [2, 3, 4, 5, 6, 7]);
    assert_eq!(placed("slurm-tree", 5, &occupancy), [2, 4, 5, 6, 7]);
    // The other pod is tighter now; its leaves have 3 and 2 free nodes.
    occupancy.claim(&whole(&fabric, &[9])).unwrap();
    assert_eq!(placed("slurm-tree", 5, &occupancy), [10, 11, 13, 14, 15]);
}

/// Across pods, the leaf with most free nodes comes first. Once one leaf can hold what is left, the tightest such leaf
/// is used. With 4, 1, 3 and 2 free nodes, 9 nodes take the leaves with 4 and 3, then the one with 2; 8 nodes take
/// those with 4 and 3, then the one with 1.
#[test]
fn slurm_finishes_on_the_tightest_leaf() {
    let fabric = tree(&[4, 2, 2]);
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    occupancy.claim(&whole(&fabric, &[4, 5, 6, 8, 12, 13])).unwrap();
    assert_eq!(placed("slurm-tree", 9, &occupancy), [0, 1, 2, 3, 9, 10, 11, 14, 15]);
    assert_eq!(placed("slurm-tree", 8, &occupancy), [0, 1, 2, 3, 7, 9, 10, 11]);
}

/// With `select/cons_tres` the largest leaf is also first, but then the leaves of its pod follow. A real slurmctld gave
/// these nodes.
#[test]
fn cons_tres_stays_near_the_leaves_taken() {
    let fabric = tree(&[6, 3, 4]);
    let free = [0, 4, 12, 13, 14, 15, 16, 60, 63, 65];
    let held: Vec<u32> = (0..72).filter(|node| !free.contains(node)).collect();
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    occupancy.claim(&whole(&fabric, &held)).unwrap();
    assert_eq!(placed("slurm-cons-tres", 8, &occupancy), [0, 4, 12, 13, 14, 15, 16, 60]);
    assert_eq!(placed("slurm-tree", 8, &occupancy), [12, 13, 14, 15, 16, 60, 63, 65]);
}

/// Two trees connected by a WAN: a job that fits in one tree stays there, a wider one takes both.
#[test]
fn slurm_spans_joined_sites_only_when_it_must() {
    let sites = [vec![(vec![2], false)], vec![(vec![3], false)]];
    let occupancy = Occupancy::new(build(&sites, true));
    assert_eq!(placed("slurm-tree", 3, &occupancy), [2, 3, 4]);
    assert_eq!(placed("slurm-tree", 4, &occupancy), [0, 2, 3, 4]);
    let apart = Occupancy::new(build(&sites, false));
    let refused = rule("slurm-tree").place(&Request::whole_nodes(0, 4, 1.0), &apart);
    assert_eq!(refused, Err(Refusal::Never { wanted: 4, most: 3 }));
}

/// Recorded gives exactly the nodes of the log, in their order. While one is held, the job waits. A job without a list,
/// or whose list has a node twice or the wrong number of nodes, never runs.
#[test]
fn recorded_gives_the_nodes_of_the_log() {
    let fabric = tree(&[3, 3]);
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    let ask = |nodes: &[u32], wanted, occupancy: &Occupancy| {
        let recorded = (!nodes.is_empty()).then(|| nodes.to_vec().into());
        let request = Request { recorded, ..Request::whole_nodes(0, wanted, 1.0) };
        rule("recorded").place(&request, occupancy).map(|placed| placed.nodes().to_vec())
    };
    assert_eq!(ask(&[5, 0, 3], 3, &occupancy), Ok(vec![5, 0, 3]));
    let never = |most, wanted| Err(Refusal::Never { wanted, most });
    assert_eq!(ask(&[], 2, &occupancy), never(0, 2));
    assert_eq!(ask(&[4, 4], 2, &occupancy), never(1, 2));
    assert_eq!(ask(&[4, 5], 3, &occupancy), never(2, 3));
    assert_eq!(ask(&[4, 5, 6], 2, &occupancy), never(3, 2));
    occupancy.claim(&whole(&fabric, &[0])).unwrap();
    assert_eq!(ask(&[5, 0, 3], 3, &occupancy), Err(Refusal::NotNow { wanted: 3, free: 2 }));
}
