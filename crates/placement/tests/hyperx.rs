//! `isolated` on HyperX finds a place where there is one. What it promises is in `other_wirings.rs`; tests/wirings has a checker
//! that knows only the cables.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "common/wirings.rs"]
mod wirings;

use std::sync::Arc;

use proptest::prelude::*;
use topolane_fabric::Fabric;
use topolane_placement::{Occupancy, Placement, Request, policy};
use wirings::{events, machine, run};

/// The most free nodes on switches such that no link between them, on any minimal route, is in use: all sets of switches
/// are tried.
fn most_free(fabric: &Fabric, jobs: &[(u64, Placement)], occupancy: &Occupancy) -> u32 {
    let nodes_on = |leaf| fabric.node_range(1, leaf);
    let free = |leaf| nodes_on(leaf).filter(|&node| occupancy.idle().contains(node)).count() as u32;
    let leaves: Vec<u32> = (0..fabric.groups(1)).filter(|&leaf| free(leaf) > 0).collect();
    let is_free = |a: u32, b: u32| {
        let links = fabric.links_of(&[nodes_on(a).start, nodes_on(b).start]);
        jobs.iter().all(|(_, other)| links.and(other.uses()).is_empty())
    };
    let mut friends = vec![0u32; leaves.len()];
    for (index, &a) in leaves.iter().enumerate() {
        for (other, &b) in leaves.iter().enumerate() {
            friends[index] |= u32::from(is_free(a, b)) << other;
        }
    }
    let mut most = 0;
    for set in 0u32..1 << leaves.len() {
        let inside = (0..leaves.len()).filter(|index| set >> index & 1 == 1);
        if inside.clone().all(|index| set & !friends[index] == 0) {
            most = most.max(inside.map(|index| free(leaves[index])).sum());
        }
    }
    most
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// A job gets a place exactly if some set of switches has enough free nodes and no link that another job uses.
    #[test]
    fn a_place_is_found_wherever_one_exists(
        name in prop::sample::select(vec![
            "hyperx(size=3x4, nodes=2)", "hyperx(size=2x2x3)", "hyperx(size=2x5)", "hyperx(size=2x2x2, nodes=3)",
        ]),
        rule in prop::sample::select(vec!["isolated", "random"]),
        events in events(8),
    ) {
        let fabric = machine(name);
        let (jobs, occupancy) = run(rule, &fabric, &events, |_, _| {});
        let most = most_free(&fabric, &jobs, &occupancy);
        for wanted in 1..=occupancy.idle().count() {
            let request = Request::whole_nodes(99, wanted, 1.0);
            let placed = policy("isolated", 1).unwrap().place(&request, &occupancy);
            prop_assert_eq!(placed.is_ok(), wanted <= most, "{} of {}: {:?}", wanted, most, placed);
        }
    }
}

/// Jobs of whole lines and parts of them fill a machine to the last node: what a job leaves over of its last line is there
/// for others, because no route between its switches is inside that part.
#[test]
fn jobs_fill_a_machine() {
    let rule = policy("isolated", 1).unwrap();
    for (name, jobs) in [
        ("hyperx(size=8x8)", &[20, 4, 13, 3, 8, 16][..]),
        ("hyperx(size=8x8, nodes=4)", &[80, 16, 52, 12, 32, 64]),
        ("hyperx(size=4x4x4)", &[16, 6, 2, 8, 32]),
    ] {
        let fabric = machine(name);
        let mut occupancy = Occupancy::new(Arc::clone(&fabric));
        for &nodes in jobs {
            let request = Request::whole_nodes(1, nodes, 1.0);
            let placement = rule.place(&request, &occupancy);
            assert!(placement.is_ok(), "{name}: {nodes} of {}", occupancy.idle().count());
            occupancy.claim(&placement.unwrap()).unwrap();
        }
        assert_eq!(occupancy.idle().count(), 0, "{name}");
    }
}

/// A job that needs more than a plane takes lines of several planes that form a sub-grid: every other line of the smallest
/// sub-grid around it is lost to jobs on several switches.
#[test]
fn a_job_takes_few_lines_that_others_cannot_use() {
    let fabric = machine("hyperx(size=4x4x4)");
    let rule = policy("isolated", 1).unwrap();
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    // 5 lines of a sub-grid of 2 x 3. Two planes are left whole.
    for nodes in [20, 16, 16] {
        let placement = rule.place(&Request::whole_nodes(1, nodes, 1.0), &occupancy);
        assert!(placement.is_ok(), "{nodes} of {}", occupancy.idle().count());
        occupancy.claim(&placement.unwrap()).unwrap();
    }
}

/// A job on part of a switch leaves the rest to another job, which may use other links of it.
#[test]
fn two_jobs_share_a_switch() {
    let fabric = machine("hyperx(size=1x3, nodes=4)");
    let rule = policy("isolated", 1).unwrap();
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    for nodes in [6, 6] {
        let placement = rule.place(&Request::whole_nodes(1, nodes, 1.0), &occupancy).unwrap();
        assert!(!placement.uses().is_empty());
        occupancy.claim(&placement).unwrap();
    }
}
