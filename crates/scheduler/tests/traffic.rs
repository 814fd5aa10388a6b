//! Queues over a policy that looks at what jobs send.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::sync::Arc;

use common::{machine, rule};
use topolane_fabric::{Fixed, NodeSet, Rule};
use topolane_placement::{JobTraffic, Request};
use topolane_scheduler::{Scheduler, queue};

/// A scheduler with `least-slowdown` under EASY on two pods of three leaves of four nodes.
fn scheduler() -> Scheduler {
    under("least-slowdown")
}

/// The same scheduler with another policy.
fn under(policy: &str) -> Scheduler {
    let fabric = machine();
    let routing = Fixed::new(Arc::clone(&fabric), Rule::DestinationModK);
    Scheduler::new(fabric, rule(policy), queue("easy").unwrap()).on_network(Arc::new(routing))
}

/// A request for whole nodes, of which only the first `senders` send to each other.
fn ask(id: u64, nodes: u32, walltime: f64, senders: u32) -> Request {
    let traffic = JobTraffic::assumed(senders).unwrap();
    Request { traffic: Some(traffic), ..Request::whole_nodes(id, nodes, walltime) }
}

/// Until 10 a job sends between leaves 0 and 1, and another holds leaf 2. The head waits for all of this pod. Two jobs of four nodes
/// come after it that would outlast its promise. The first sends within a leaf only, so it would take the tight places in
/// that pod, and is not let in. The second sends between leaves, so it goes to the other pod: it delays no one and starts.
#[test]
fn a_refusal_does_not_apply_to_another_job_of_that_size() {
    let mut scheduler = scheduler();
    scheduler.adopt(&ask(1, 4, 10.0, 4), vec![0, 1, 4, 5], 0.0).unwrap();
    scheduler.adopt(&ask(2, 4, 10.0, 2), (8..12).collect(), 0.0).unwrap();
    for (id, nodes) in [(3, vec![12]), (4, vec![16]), (5, (20..24).collect())] {
        scheduler.adopt(&ask(id, nodes.len() as u32, 1000.0, 2), nodes, 0.0).unwrap();
    }
    let pod = Some(Arc::new(NodeSet::of(24, 0..12)));
    scheduler.submit(Request { eligible: pod, ..ask(6, 12, 10.0, 2) }, 0.0).unwrap();
    scheduler.submit(ask(7, 4, 100.0, 2), 0.0).unwrap();
    scheduler.submit(ask(8, 4, 100.0, 4), 0.0).unwrap();
    let started = scheduler.pass(1.0);
    assert_eq!(scheduler.last_pass().reservation.unwrap().at.to_bits(), 10f64.to_bits());
    let started: Vec<u64> = started.iter().map(|start| start.request.id).collect();
    assert_eq!(started, [8]);
}

/// A job sends between leaves 0 and 1, of which four nodes are free; the head waits for six. Of the two jobs behind it, that of four
/// nodes comes first and would send over the same uplinks, and that of two nodes fits into a leaf. So the second goes first, and
/// under `slurm-tree`, which reads no traffic, the first.
#[test]
fn a_job_that_loses_nothing_overtakes_first() {
    for (policy, expected) in [("least-slowdown", 8), ("slurm-tree", 7)] {
        for in_service in [true, false] {
            let mut scheduler = under(policy);
            scheduler.adopt(&ask(1, 4, 10.0, 4), vec![0, 1, 4, 5], 0.0).unwrap();
            for (id, nodes) in [(2, 8..12), (3, 12..16), (4, 16..20), (5, 20..23)] {
                let nodes: Vec<u32> = nodes.collect();
                scheduler.adopt(&ask(id, nodes.len() as u32, 1000.0, 2), nodes, 0.0).unwrap();
            }
            if in_service {
                scheduler.adopt(&ask(9, 1, 1000.0, 1), vec![23], 0.0).unwrap();
            } else {
                scheduler.set_in_service(23, false);
            }
            scheduler.submit(ask(6, 6, 10.0, 2), 0.0).unwrap();
            scheduler.submit(ask(7, 4, 5.0, 4), 0.0).unwrap();
            scheduler.submit(ask(8, 2, 5.0, 2), 0.0).unwrap();
            let started = scheduler.pass(1.0);
            let started: Vec<u64> = started.iter().map(|start| start.request.id).collect();
            assert_eq!(started, [expected], "{policy}");
        }
    }
}

/// Jobs 1 and 2 are alike, one in each pod, and end at 1000 and 60: the second began long before. Two nodes are free in each pod,
/// over whose uplinks they send. At 40 a new job of 50 s goes next to the one that leaves soon. If the time limit of that one
/// is raised and the other's lowered, it goes next to the other.
#[test]
fn time_limits_of_running_jobs_are_followed() {
    for changed in [false, true] {
        let mut scheduler = scheduler();
        scheduler.adopt(&ask(1, 2, 1000.0, 2), vec![0, 4], 0.0).unwrap();
        scheduler.adopt(&ask(2, 2, 1000.0, 2), vec![12, 16], -940.0).unwrap();
        for node in (0..24).filter(|node| ![0, 2, 4, 6, 12, 14, 16, 18].contains(node)) {
            scheduler.adopt(&ask(10 + u64::from(node), 1, 1000.0, 2), vec![node], 0.0).unwrap();
        }
        if changed {
            scheduler.set_walltime(1, 60.0);
            scheduler.set_walltime(2, 1940.0);
        }
        scheduler.submit(ask(3, 2, 50.0, 2), 0.0).unwrap();
        let started = scheduler.pass(40.0);
        assert_eq!(started.len(), 1);
        let expected = if changed { [2, 6] } else { [14, 18] };
        assert_eq!(started[0].placement.nodes(), expected);
    }
}

/// A node is out of service, so the promise to the head is found by trying. Afterwards the traffic of the running jobs
/// is counted as before.
#[test]
fn a_promise_found_by_trying_changes_nothing_that_is_counted() {
    let mut scheduler = scheduler();
    scheduler.adopt(&ask(1, 4, 10.0, 4), vec![0, 1, 4, 5], 0.0).unwrap();
    scheduler.adopt(&ask(2, 4, 20.0, 4), vec![2, 3, 6, 7], 0.0).unwrap();
    scheduler.set_in_service(23, false);
    let slowdowns = |scheduler: &Scheduler| scheduler.occupancy().network().unwrap().slowdowns();
    let before = slowdowns(&scheduler);
    assert!(before.iter().all(|&(_, slowdown)| slowdown > 1.0), "{before:?}");
    scheduler.submit(ask(3, 20, 10.0, 2), 0.0).unwrap();
    assert!(scheduler.pass(1.0).is_empty());
    assert_eq!(scheduler.last_pass().reservation.unwrap().at.to_bits(), 20f64.to_bits());
    assert_eq!(slowdowns(&scheduler), before);
}
