//! The links that policies give can be routed: at any moment, the forwarding tables keep every job on its links.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use proptest::prelude::*;
use topolane_fabric::{DedicatedRouting, Fabric, JobLinks, Routing, Service, pgft};
use topolane_placement::{Occupancy, Placement, Request, policy};

/// A job arrives with a number of nodes and accepts a share of full bandwidth; or the job with this index leaves.
#[derive(Debug, Clone)]
enum Event {
    Comes(u32, f64),
    Goes(prop::sample::Index),
}

fn event() -> impl Strategy<Value = Event> {
    let phi = prop::sample::select(vec![1.0, 0.5, 0.25]);
    prop_oneof![
        3 => (1u32..24, phi).prop_map(|(nodes, phi)| Event::Comes(nodes, phi)),
        1 => any::<prop::sample::Index>().prop_map(Event::Goes),
    ]
}

fn tree() -> impl Strategy<Value = Arc<Fabric>> {
    let levels = ((2u32..5, 2u32..4, 2u32..4), (1u32..5, 1u32..5), (1u32..3, 1u32..3));
    levels.prop_map(|((nodes, leaves, pods), (up, over), (cables, core_cables))| {
        let (children, parents) = ([nodes, leaves, pods], [1, up, over]);
        let tree = pgft("t", &children, &parents, &[1, cables, core_cables]);
        Arc::new(Fabric::build(&tree).unwrap())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_policies_give_is_routed_over_it(
        name in prop::sample::select(vec!["dedicated", "jigsaw", "jigsaw-relaxed", "laas"]),
        fabric in tree(),
        events in prop::collection::vec(event(), 1..20),
    ) {
        let policy = policy(name, 0).unwrap();
        let mut occupancy = Occupancy::new(Arc::clone(&fabric));
        let mut running: Vec<(u64, Placement)> = Vec::new();
        for (id, event) in (0..).zip(&events) {
            match event {
                Event::Goes(which) if running.is_empty() => { let _ = which; }
                Event::Goes(which) => {
                    let (_, placement) = running.remove(which.index(running.len()));
                    occupancy.release(&placement);
                }
                Event::Comes(nodes, phi) => {
                    let request =
                        Request { id, nodes: *nodes, min_bandwidth: Some(*phi), ..Request::default() };
                    let Ok(placement) = policy.place(&request, &occupancy) else { continue };
                    occupancy.claim(&placement).unwrap();
                    running.push((id, placement));
                }
            }
            let jobs: Vec<JobLinks> = running.iter().map(job).collect();
            let routes = DedicatedRouting::new(&fabric, &jobs, &Service::default()).unwrap();
            for job in &jobs {
                check_ways(&fabric, &routes, job);
            }
        }
    }
}

fn job((id, placement): &(u64, Placement)) -> JobLinks {
    let (nodes, links) = (placement.nodes().to_vec(), placement.links().to_vec());
    JobLinks { name: id.to_string(), nodes, links }
}

fn check_ways(fabric: &Fabric, routes: &DedicatedRouting, job: &JobLinks) {
    let mut path = Vec::new();
    for &from in &job.nodes {
        for &to in &job.nodes {
            path.clear();
            routes.path(from, to, &mut path).unwrap();
            let cables = path.iter().map(|channel| channel / 2);
            let between = |id: &u32| fabric.cable_place(*id).is_some_and(|at| at.0 > 0);
            for cable in cables.filter(between) {
                assert!(job.links.contains(&cable), "job {}: {from} to {to}: {cable}", job.name);
            }
        }
    }
}
