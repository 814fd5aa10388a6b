//! `isolated` on tori finds a prism where there is one. What it promises is in `other_wirings.rs`; tests/wirings has a checker
//! that knows only the cables.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "common/wirings.rs"]
mod wirings;

use std::sync::Arc;

use proptest::prelude::*;
use topolane_fabric::Fabric;
use topolane_placement::{Occupancy, Request, policy};
use wirings::{events, machine, run};

/// All products of intervals of a torus, as lists of routers. An interval of a ring may pass its end.
fn prisms(fabric: &Fabric) -> Vec<Vec<u32>> {
    let torus = fabric.wiring().torus().unwrap();
    let mut all = vec![vec![0]];
    for (&size, &stride) in torus.sizes().iter().zip(torus.strides()) {
        let intervals = (0..size).flat_map(|start| {
            (1..=size)
                .map(move |side| (0..side).map(|step| (start + step) % size * stride).collect())
        });
        let intervals: Vec<Vec<u32>> = intervals.collect();
        let with = |prism: Vec<u32>| {
            let product = |interval: &Vec<u32>| {
                interval.iter().flat_map(|at| prism.iter().map(move |router| router + at)).collect()
            };
            intervals.iter().map(product).collect::<Vec<Vec<u32>>>()
        };
        all = all.into_iter().flat_map(with).collect();
    }
    // In a mesh an interval that passes the end has links of all routers between: it only costs more.
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// A job gets a place exactly if some prism has enough free nodes and no link that another job uses: all prisms are
    /// tried, with the links of all their routers.
    #[test]
    fn a_prism_is_found_wherever_there_is_one(
        name in prop::sample::select(vec![
            "torus(size=4x4x4)", "torus(size=4mx4mx4m)", "torus(size=4x4x4, nodes=2)", "torus(size=5x3mx2)",
        ]),
        events in events(24),
        nodes in prop::collection::vec(2u32..40, 6),
    ) {
        let fabric = machine(name);
        let torus = fabric.wiring().torus().unwrap();
        // Random jobs of one node leave holes.
        let (jobs, occupancy) = run("isolated", &fabric, &events, |_, _| {});
        let nodes_on = |router: u32| {
            fabric.node_range(1, torus.leaf_of_router(router).unwrap())
        };
        let mut most = 1;
        for prism in prisms(&fabric) {
            let all: Vec<u32> = prism.iter().flat_map(|&router| nodes_on(router)).collect();
            let free = all.iter().filter(|&&node| occupancy.idle().contains(node)).count() as u32;
            if free <= most {
                continue;
            }
            let links = fabric.links_of(&all);
            if jobs.iter().all(|(_, other)| links.and(other.uses()).is_empty()) {
                most = free;
            }
        }
        let rule = policy("isolated", 1).unwrap();
        for wanted in nodes {
            if occupancy.idle().count() >= wanted {
                let placed = rule.place(&Request::whole_nodes(99, wanted, 1.0), &occupancy);
                let on_router = fabric.node_range(1, 0).len() as u32;
                prop_assert!(wanted <= on_router || placed.is_ok() == (wanted <= most), "{} of {}: {:?}", wanted, most, placed);
            }
        }
    }
}

/// Jobs that fill a torus of cubes leave nothing over; jobs of one node take places that no prism can use.
#[test]
fn jobs_fill_a_torus() {
    let fabric = machine("torus(size=8x8x8)");
    let rule = policy("isolated", 1).unwrap();
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    let mut place = |nodes: u32| {
        let placement = rule.place(&Request::whole_nodes(1, nodes, 1.0), &occupancy).unwrap();
        occupancy.claim(&placement).unwrap();
        placement
    };
    for _ in 0..7 {
        place(64);
    }
    // 60 of the last 64 nodes: the four that are left have links of the job, so jobs of one node go there.
    place(60);
    for _ in 0..4 {
        assert!(place(1).uses().is_empty());
    }
    let hole = machine("torus(size=6x6)");
    let mut occupancy = Occupancy::new(Arc::clone(&hole));
    let first = rule.place(&Request::whole_nodes(1, 5, 1.0), &occupancy).unwrap();
    assert!(!first.uses().is_empty());
    occupancy.claim(&first).unwrap();
    let lone = rule.place(&Request::whole_nodes(2, 1, 1.0), &occupancy).unwrap();
    let next_to = |node: u32| first.nodes().iter().any(|&other| hole.hops(node, other) == Some(1));
    assert!(next_to(lone.nodes()[0]), "{lone:?} next to {first:?}");
}
