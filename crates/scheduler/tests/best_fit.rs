//! EASY lets the jobs that waste least overtake first.
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

/// Three nodes of a leaf are free, and a job on the fourth runs until 100. The head wants all four. Behind it wait, in
/// this order, a job of two nodes, `between` jobs of four, one of three and one of one. In this order the jobs of two
/// nodes and of one start. By waste the job of three starts, because it fits exactly. `dedicated` knows waste, but the
/// job of three must be among the first 256 of the queue.
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

/// Leaves of one, two and three nodes; a job on the first until 50, one on the second until 100. The head's five nodes
/// are one, one and three from 50 on, and equal parts, two and three, from 100 on. When arrivals alone make the queue
/// grow to 256 jobs, the head gets a new promise, by the rule for long queues. A scheduler that starts then would
/// promise the same.
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
