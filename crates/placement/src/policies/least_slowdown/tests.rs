//! Shows what each part of the search contributes.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use proptest::prelude::*;
use topolane_fabric::{Fabric, Fixed, Rule, pgft};
use topolane_traffic::pattern;

use super::candidates::candidates;
use super::{Judge, LeastSlowdown};
use crate::{JobTraffic, Occupancy, Placement, Policy, Request, Share};

/// A machine of two pods with six leaves of eight nodes. Each leaf and each pod has two uplinks.
fn machine() -> Occupancy {
    let fabric = Fabric::build(&pgft("n", &[8, 6, 2], &[1, 2, 2], &[1, 1, 1])).unwrap();
    let fabric = Arc::new(fabric);
    let routing = Fixed::new(Arc::clone(&fabric), Rule::DestinationModK);
    Occupancy::new(fabric).with_network(Arc::new(routing))
}

fn job(id: u64, nodes: u32, pattern_name: &str, communication: f64) -> Request {
    let traffic = pattern(pattern_name).unwrap().traffic(nodes, id).unwrap();
    let traffic = Some(JobTraffic::new(&Arc::new(traffic), communication));
    Request { traffic, ..Request::whole_nodes(id, nodes, 1.0) }
}

fn hold(occupancy: &mut Occupancy, id: u64, nodes: Vec<u32>) {
    let request = job(id, nodes.len() as u32, "ring", 0.5);
    let held = Placement::new(occupancy.fabric(), nodes, Share::Whole);
    let traffic = occupancy.lay(&request, &held);
    let held = held.with_traffic(traffic);
    occupancy.claim(&held).unwrap();
}

/// The distinct leaves of every candidate.
fn leaves_of_candidates(request: &Request, occupancy: &Occupancy) -> Vec<Vec<u32>> {
    let free = occupancy.free_slots(request);
    let leaves = |nodes: Vec<u32>| {
        let mut leaves: Vec<u32> =
            nodes.iter().map(|&node| occupancy.fabric().group(1, node)).collect();
        leaves.dedup();
        leaves
    };
    candidates(request, &free, occupancy).into_iter().map(leaves).collect()
}

proptest! {
    /// On an empty machine, the choice is no more expensive than any set that a generator proposes. All its cost is the
    /// estimate for later jobs, because no running job loses time.
    #[test]
    fn on_an_empty_machine_no_generator_has_a_better_set(
        nodes in 2u32..96, id in 0u64..1000, communication in 0.01f64..1.0, ring in any::<bool>(),
    ) {
        let occupancy = machine();
        let request = job(id, nodes, if ring { "ring" } else { "pairs" }, communication);
        let free = occupancy.free_slots(&request);
        let chosen = LeastSlowdown.choose(&request, &free, &occupancy).unwrap().nodes;
        let newcomer = occupancy.newcomer(&request).unwrap();
        let mut judge = Judge::new(&newcomer, &free, chosen.clone(), Vec::new());
        let cost = judge.cost(&chosen);
        for nodes in candidates(&request, &free, &occupancy) {
            prop_assert!(cost <= judge.cost(&nodes), "{nodes:?} costs less than {chosen:?}");
        }
        prop_assert!(newcomer.loss(&mut newcomer.outlook(), &chosen) <= 0.0);
    }
}

/// Two identical pods of leaves with eight nodes. For each leaf of a pod: the jobs that cross it and its free nodes.
///
/// ```text
/// leaf      0  1  2  3  4  5
/// crossing  2  1  1  0  0  0
/// free      6  5  1  2  1  0
/// ```
///
/// For seven nodes, these leaves are tried in each pod: leaves that no job crosses first, then the emptiest (3, 4, 0);
/// the fewest leaves (0, 1); leaves that the fewest jobs cross first (3, 4, 1); the fullest leaves (2, 4, 3, 1).
#[test]
fn leaves_are_tried_in_four_orders() {
    let mut occupancy = machine();
    for pod in 0..2 {
        let (first, id) = (pod * 48, u64::from(pod) * 10);
        hold(&mut occupancy, id + 1, vec![first, first + 8]);
        hold(&mut occupancy, id + 2, vec![first + 1, first + 16]);
        for (leaf, held) in [(1, 1..3), (2, 1..7), (3, 0..6), (4, 0..7), (5, 0..8)] {
            let nodes = held.map(|node| first + leaf * 8 + node).collect();
            hold(&mut occupancy, id + 2 + u64::from(leaf), nodes);
        }
    }
    let tried = leaves_of_candidates(&job(99, 7, "ring", 0.5), &occupancy);
    for pod in [0, 6] {
        for leaves in [&[0, 3, 4][..], &[0, 1], &[1, 3, 4], &[1, 2, 3, 4]] {
            let leaves: Vec<u32> = leaves.iter().map(|leaf| leaf + pod).collect();
            assert!(tried.contains(&leaves), "{leaves:?} is not among {tried:?}");
        }
    }
}
