//! Jobs that own links, by hand: what is refused, and where traffic of service nodes goes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use topolane_fabric::{
    Channel, DedicatedRouting, Description, Fabric, JobLinks, MissingCable, Routing, Service, pgft,
};

fn build(description: &Description) -> Arc<Fabric> {
    Arc::new(Fabric::build(description).unwrap())
}

fn path(routing: &dyn Routing, from: u32, to: u32) -> Vec<Channel> {
    let mut path = Vec::new();
    routing.path(from, to, &mut path).unwrap();
    path
}

fn small() -> Arc<Fabric> {
    build(&pgft("t", &[2, 2, 2], &[1, 2, 2], &[1, 1, 1]))
}

/// The cable from switch `number` of a group of this level to a parent, on the machine of [`small`].
fn cable(level: usize, group: u32, number: u32, parent: u32) -> u32 {
    small().cable(level, group, number, parent, 0).unwrap()
}

fn job(name: &str, nodes: &[u32], links: &[u32]) -> JobLinks {
    JobLinks { name: name.to_owned(), nodes: nodes.to_vec(), links: links.to_vec() }
}

#[track_caller]
fn refused(jobs: &[JobLinks], uplinks: u32, says: &str) {
    let service = Service { nodes: vec![7], uplinks };
    let made = DedicatedRouting::new(&small(), jobs, &service);
    assert_eq!(made.map(|_| ()).unwrap_err().to_string(), says);
}

#[test]
fn what_cannot_be_kept_apart_is_refused_by_name() {
    let (a, b) = (cable(1, 0, 0, 0), cable(1, 1, 0, 0));
    let good = job("7", &[0, 2], &[a, b]);
    refused(&[good.clone(), job("8", &[2], &[])], 0, "job 8: node t3 is job 7's too");
    let other = job("8", &[1, 3], &[a, cable(1, 1, 0, 1)]);
    refused(&[good, other], 0, &format!("job 8: cable {a} (an uplink of leaf0) is job 7's too"));
    refused(&[job("7", &[0, 0], &[a])], 0, "job 7: node t1 stands twice");
    refused(
        &[job("7", &[0, 2], &[a, b, a])],
        0,
        &format!("job 7: cable {a} (an uplink of leaf0) stands twice"),
    );
    refused(&[job("7", &[0, 9], &[])], 0, "job 7: node 9 is not among the 8 nodes");
    refused(&[job("7", &[0], &[99])], 0, "job 7: cable 99 is not among the 24 links");
    refused(
        &[job("7", &[0], &[0])],
        0,
        "job 7: cable 0 (of node t1) does not join a switch to another",
    );
    refused(
        &[job("7", &[0], &[b])],
        0,
        &format!("job 7: none of its nodes is below cable {b} (an uplink of leaf1)"),
    );
    let last = cable(1, 0, 0, 1);
    refused(
        &[job("7", &[0, 2], &[last])],
        1,
        &format!("job 7: cable {last} (an uplink of leaf0) is reserved for service nodes"),
    );
    // Leaf 1 owns a link to another plane.
    let other = cable(1, 1, 0, 1);
    refused(
        &[job("7", &[0, 2], &[a, other])],
        0,
        "job 7: its links do not lead from leaf1 to leaf0",
    );
}

#[test]
fn a_missing_cable_cannot_be_owned() {
    let mut tree = pgft("t", &[2, 2], &[1, 2], &[1, 1]);
    mark_missing_at(&mut tree, 1);
    let fabric = build(&tree);
    let missing = fabric.missing_cables()[0];
    let made =
        DedicatedRouting::new(&fabric, &[job("7", &[0, 2], &[missing])], &Service::default());
    let says = format!("job 7: cable {missing} (an uplink of leaf0) is missing");
    assert_eq!(made.unwrap_err().to_string(), says);
}

fn mark_missing_at(tree: &mut Description, level: usize) {
    let cable = MissingCable { level, group: 0, switch: 0, parent: 0, cable: 0 };
    tree.sites[0].missing.push(cable);
}

/// With reserved uplink slots, no traffic between a service node and a job's node uses a link of a job. Without them,
/// some does.
#[test]
fn service_traffic_keeps_to_reserved_uplink_slots() {
    // There are four planes. The job has three nodes in either pod and owns the first two planes.
    let fabric = build(&pgft("t", &[4, 4, 2], &[1, 4, 4], &[1, 1, 1]));
    let cable = |at: (usize, u32, u32, u32)| fabric.cable(at.0, at.1, at.2, at.3, 0).unwrap();
    let leaves = [0, 1, 4].into_iter().flat_map(|leaf| [(1, leaf, 0, 0), (1, leaf, 0, 1)]);
    let pods = [0, 1].into_iter().flat_map(|pod| [(2, pod, 0, 0), (2, pod, 1, 2)]);
    let links: Vec<u32> = leaves.chain(pods).map(cable).collect();
    let jobs = [job("7", &[0, 1, 4, 5, 16, 17], &links)];
    let routes = |uplinks| {
        let service = Service { nodes: vec![30, 31, 14], uplinks };
        DedicatedRouting::new(&fabric, &jobs, &service).unwrap()
    };
    let [all, over_owned, others] = routes(0).service_routes();
    assert_eq!((all, others), (36, 0));
    assert!(over_owned > 0);
    assert_eq!(routes(1).service_routes(), [36, 0, 0]);
    // The routes of the job itself do not change.
    for (from, to) in [(0, 4), (4, 17), (17, 1)] {
        assert_eq!(path(&routes(1), from, to), path(&routes(0), from, to));
    }
}
