//! EASY lets those overtake others first that waste least.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::rule;
use topolane_fabric::{Fabric, pgft};
use topolane_placement::Request;
use topolane_scheduler::{Scheduler, queue};

fn ask(id: u64, nodes: u32, walltime: f64) -> Request {
    Request::whole_nodes(id, nodes, walltime)
}

/// Three nodes of a leaf are free; a job on the fourth runs to 100. The head wants all four. Behind it wait a job of two nodes,
/// some of four, one of three and one of one. In order the first has two of the nodes and the last the third one; by waste
/// the one that fits exactly goes before. So it is under `dedicated`, which knows waste, if that one is among the first
/// 256 of the queue.
#[test]
fn the_one_that_fits_goes_first() {
    for (name, between, expected) in [
        ("jigsaw", 0, vec![2, 4]),
        ("dedicated", 0, vec![3]),
        ("dedicated", 253, vec![3]),
        ("dedicated", 254, vec![2, 4]),
    ] {
        let fabric = Arc::new(Fabric::build(&pgft("n", &[4, 4, 2], &[1, 4, 4], &[1; 3])).unwrap());
        let nodes = fabric.nodes();
        let mut scheduler = Scheduler::new(fabric, rule(name), queue("easy").unwrap());
        for node in 4..nodes {
            scheduler.set_in_service(node, false);
        }
        scheduler.adopt(&ask(0, 1, 100.0), vec![3], 0.0).unwrap();
        let wide = (10..).take(between).map(|id| ask(id, 4, 10.0));
        let first = [ask(1, 4, 10.0), ask(2, 2, 10.0)];
        for request in first.into_iter().chain(wide).chain([ask(3, 3, 10.0), ask(4, 1, 10.0)]) {
            scheduler.submit(request, 0.0).unwrap();
        }
        let starts = scheduler.pass(1.0);
        let started: Vec<u64> = starts.iter().map(|start| start.request.id).collect();
        assert_eq!(started, expected, "{name}, {between} between");
        assert_eq!(scheduler.waiting().len(), 4 + between - expected.len());
    }
}

/// Leaves of one, two and three nodes; a job on the first until 50, one on the second until 100. The head's five nodes are one,
/// one and three from 50 on, and equal parts, two and three, from 100 on. When the queue grows to 256 by arrivals alone
/// it gets a new promise, by the rule for many, as a scheduler that starts then would do.
#[test]
fn a_queue_that_grows_to_many_gets_new_promises() {
    let fabric = Arc::new(Fabric::build(&pgft("n", &[4, 4, 2], &[1, 4, 4], &[1; 3])).unwrap());
    let nodes = fabric.nodes();
    let mut scheduler = Scheduler::new(fabric, rule("dedicated"), queue("easy").unwrap());
    for node in (0..nodes).filter(|node| ![0, 4, 5, 8, 9, 10].contains(node)) {
        scheduler.set_in_service(node, false);
    }
    scheduler.adopt(&ask(0, 1, 50.0), vec![0], 0.0).unwrap();
    scheduler.adopt(&ask(1, 1, 100.0), vec![5], 0.0).unwrap();
    let rest = (10..).take(254).map(|id| ask(id, nodes, 10.0));
    for request in [ask(2, 5, 10.0)].into_iter().chain(rest) {
        scheduler.submit(request, 0.0).unwrap();
    }
    let mut promised = |now: f64| {
        assert!(scheduler.pass(now).is_empty());
        let reservation = scheduler.last_pass().reservation;
        scheduler.submit(ask(1_000 + now as u64, nodes, 10.0), 0.0).unwrap();
        reservation.map(|reservation| (reservation.id, reservation.at))
    };
    assert_eq!(promised(1.0), Some((2, 50.0)), "of 255");
    assert_eq!(promised(2.0), Some((2, 100.0)), "of 256");
}
