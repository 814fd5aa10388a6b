//! The policy `least-slowdown`, and the count of traffic that it looks at.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::sync::Arc;

use common::{one_site, rule, tree};
use proptest::prelude::*;
use topolane_fabric::{Fabric, Fixed, Rule};
use topolane_placement::{JobTraffic, Occupancy, Placement, Policy, Request, Share};
use topolane_traffic::pattern;

const PATTERNS: [&str; 4] = ["pairs", "ring", "alltoall", "stencil4d"];

/// An empty machine that keeps count of traffic.
fn network(fabric: &Arc<Fabric>) -> Occupancy {
    let routing = Fixed::new(Arc::clone(fabric), Rule::DestinationModK);
    Occupancy::new(Arc::clone(fabric)).with_network(Arc::new(routing))
}

/// A job that communicates all the time by one of the patterns.
fn job(id: u64, nodes: u32) -> Request {
    let traffic = pattern(PATTERNS[id as usize % 4]).unwrap().traffic(nodes, id).unwrap();
    let traffic = Some(JobTraffic::new(&Arc::new(traffic), 1.0));
    Request { traffic, ..Request::whole_nodes(id, nodes, 1.0) }
}

/// Places jobs by a policy that looks at no traffic, and ends every third.
fn crowded(
    fabric: &Arc<Fabric>,
    sizes: &[u32],
    policy: &dyn Policy,
) -> (Occupancy, Vec<Placement>) {
    let mut occupancy = network(fabric);
    let mut running = Vec::new();
    for (id, &size) in sizes.iter().enumerate() {
        if let Ok(placement) = policy.place(&job(id as u64, size), &occupancy) {
            occupancy.claim(&placement).unwrap();
            running.push(placement);
        }
        if id % 3 == 2 && !running.is_empty() {
            occupancy.release(&running.remove(id * 7 % running.len()));
        }
    }
    (occupancy, running)
}

fn sizes() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(1u32..12, 0..12)
}

/// Node-seconds that all jobs lose each second, from a state made from nothing.
fn lost(fabric: &Arc<Fabric>, running: &[&Placement]) -> f64 {
    let mut occupancy = network(fabric);
    for placement in running {
        occupancy.adopt(placement).unwrap();
    }
    let slowdowns = occupancy.network().unwrap().slowdowns();
    let nodes = |id: u64| {
        let its = |one: &&&Placement| one.traffic().is_some_and(|traffic| traffic.job() == id);
        running.iter().find(its).unwrap().nodes().len() as f64
    };
    slowdowns.into_iter().map(|(id, slowdown)| nodes(id) * (slowdown - 1.0)).sum()
}

proptest! {
    /// After any claims and releases, the slowdowns are those of a machine on which only the jobs that are left were placed.
    #[test]
    fn counting_as_jobs_come_and_go_is_counting_anew(machine in one_site(), sizes in sizes()) {
        let fabric = machine.fabric();
        for name in ["random", "scattered", "least-slowdown"] {
            let (occupancy, running) = crowded(&fabric, &sizes, &*rule(name));
            let mut anew = network(&fabric);
            for placement in &running {
                anew.claim(placement).unwrap();
            }
            prop_assert_eq!(occupancy.network().unwrap().slowdowns(), anew.network().unwrap().slowdowns());
        }
    }

    /// What is tried and undone leaves the slowdowns as they were.
    #[test]
    fn what_is_tried_leaves_nothing_behind(machine in one_site(), sizes in sizes()) {
        let fabric = machine.fabric();
        let (mut occupancy, running) = crowded(&fabric, &sizes, &*rule("random"));
        let before = occupancy.network().unwrap().slowdowns();
        {
            let mut tried = occupancy.what_if();
            for placement in &running {
                tried.release(Arc::new(placement.clone()));
            }
            prop_assert!(tried.network().unwrap().slowdowns().is_empty());
        }
        prop_assert_eq!(occupancy.network().unwrap().slowdowns(), before);
    }

    /// Where all jobs are placed by another policy and one by this, no fewer node-seconds are lost with that one placed by
    /// `slurm-tree`, `hop-bytes` or first fit, up to what the guess about later jobs is worth.
    #[test]
    fn it_loses_no_more_than_the_policies_among_its_candidates(
        machine in one_site(), sizes in sizes(), nodes in 2u32..12,
    ) {
        let fabric = machine.fabric();
        let (occupancy, running) = crowded(&fabric, &sizes, &*rule("scattered"));
        let request = job(1000, nodes);
        let lost_under = |name: &str| {
            let placement = rule(name).place(&request, &occupancy).ok()?;
            Some(lost(&fabric, &running.iter().chain([&placement]).collect::<Vec<_>>()))
        };
        if let Some(own) = lost_under("least-slowdown") {
            let guess = 0.0011 * f64::from(nodes) * fabric.depth() as f64;
            for other in ["slurm-tree", "hop-bytes", "first-fit"] {
                let theirs = lost_under(other).unwrap();
                prop_assert!(own <= theirs + guess + 1e-9, "{own} under it, {theirs} under {other}");
            }
        }
    }
}

/// Two pods of three leaves of four nodes. A job sends between leaves 0 and 1. One of five nodes, all to all, needs two leaves:
/// first fit sends over the same links, and this policy over others.
#[test]
fn jobs_are_kept_off_each_others_uplinks() {
    let fabric = tree(&[4, 3, 2]);
    let mut occupancy = network(&fabric);
    let held = Placement::new(&fabric, vec![0, 4], Share::Whole);
    let held = held.with_traffic(occupancy.lay(&job(1, 2), &[0, 4]));
    occupancy.claim(&held).unwrap();
    let next = job(6, 5);
    let lost_under = |name| {
        let placed = rule(name).place(&next, &occupancy).unwrap();
        lost(&fabric, &[&held, &placed])
    };
    assert!(lost_under("first-fit") > 0.0, "first fit shares a link");
    assert!(lost_under("least-slowdown") <= 0.0);
}

/// Without a count of traffic, or of a job whose traffic is not known, it chooses as slurm-tree.
#[test]
fn without_traffic_it_is_slurm_tree() {
    let fabric = tree(&[4, 4, 3]);
    for occupancy in [Occupancy::new(Arc::clone(&fabric)), network(&fabric)] {
        for nodes in 1..20 {
            let request = Request::whole_nodes(1, nodes, 1.0);
            let nodes_of = |name| rule(name).place(&request, &occupancy).unwrap().nodes().to_vec();
            assert_eq!(nodes_of("least-slowdown"), nodes_of("slurm-tree"));
        }
    }
}
