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

/// Three nodes of a leaf are free beside a job on the fourth, which runs to 100; the head wants all four, and behind it
/// wait, in this order, jobs of two, three and one nodes. In order the first has two of the nodes and the third the last. By
/// waste the one that fits exactly goes before, which is what EASY does where 256 wait in all.
#[test]
fn the_one_that_fits_goes_first_among_many() {
    for (waiting, expected) in [(255, vec![2, 4]), (256, vec![3])] {
        let fabric = Arc::new(Fabric::build(&pgft("n", &[4, 4, 2], &[1, 4, 4], &[1; 3])).unwrap());
        let nodes = fabric.nodes();
        let mut scheduler = Scheduler::new(fabric, rule("owned"), queue("easy").unwrap());
        for node in 4..nodes {
            scheduler.set_in_service(node, false);
        }
        scheduler.adopt(&ask(0, 1, 100.0), vec![3], 0.0).unwrap();
        let behind = [ask(2, 2, 10.0), ask(3, 3, 10.0), ask(4, 1, 10.0)];
        let rest = (10..).take(waiting - 4).map(|id| ask(id, 4, 10.0));
        for request in [ask(1, 4, 10.0)].into_iter().chain(behind).chain(rest) {
            scheduler.submit(request, 0.0).unwrap();
        }
        let starts = scheduler.pass(1.0);
        let started: Vec<u64> = starts.iter().map(|start| start.request.id).collect();
        assert_eq!(started, expected, "{waiting} wait");
        assert_eq!(scheduler.waiting().len(), waiting - expected.len());
    }
}
