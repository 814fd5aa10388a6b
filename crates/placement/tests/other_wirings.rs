//! What `isolated` promises on every wiring that is not a tree.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "common/wirings.rs"]
mod wirings;

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;
use topolane_fabric::{Fabric, NodeSet, Torus};
use topolane_placement::{
    Amounts, KeepOff, LinkUse, Occupancy, Placement, Refusal, Request, Share, areas, policy,
};
use wirings::{DRAGONFLIES, HYPERX, TORI, events, machine, machines, run};

fn any_machine() -> impl Strategy<Value = Arc<Fabric>> {
    prop_oneof![machines(&DRAGONFLIES), machines(&TORI), machines(&HYPERX)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// No two closures of links meet, and a running job has no room next to itself unless it is on one switch.
    #[test]
    fn no_two_jobs_share_a_link(fabric in any_machine(), events in events(60)) {
        run("isolated", &fabric, &events, |jobs, occupancy| {
            let holders: Vec<_> = jobs.iter().map(|(id, placement)| (*id, placement)).collect();
            assert_eq!(LinkUse::of(&fabric, &holders).shared(), 0);
            for (_, one) in jobs {
                assert!(one.uses().is_empty() || !occupancy.has_room_for(one));
            }
        });
    }

    /// A release exactly undoes its claim, under a policy that shares links too: once all jobs have ended, every request
    /// gets what it gets on the empty machine, and once they run again, what it got next to them.
    #[test]
    fn releases_undo_claims(fabric in any_machine(), events in events(30), nodes in 1u32..40) {
        let is_dragonfly = fabric.wiring().dragonfly().is_some();
        let name = if is_dragonfly { "isolated-global" } else { "isolated" };
        let rule = policy(name, 1).unwrap();
        let request = Request::whole_nodes(99, nodes.min(fabric.nodes()), 1.0);
        for name in ["random", "isolated", name] {
            let (jobs, mut occupancy) = run(name, &fabric, &events, |_, _| {});
            let before = rule.place(&request, &occupancy);
            for (_, placement) in &jobs {
                occupancy.release(placement);
            }
            let empty = Occupancy::new(Arc::clone(&fabric));
            prop_assert_eq!(rule.place(&request, &occupancy), rule.place(&request, &empty));
            for (_, placement) in &jobs {
                occupancy.claim(placement).unwrap();
            }
            prop_assert_eq!(rule.place(&request, &occupancy), before);
        }
    }

    /// What a state remembers of earlier decisions changes no decision: a state that was never asked gives the same answers,
    /// in any order, after claims, releases and nodes that come into service.
    #[test]
    fn earlier_decisions_change_no_decision(
        fabric in any_machine(), events in events(40), sizes in prop::collection::vec(1u32..60, 1..8),
        out in prop::collection::vec(any::<Index>(), 0..4),
    ) {
        let is_dragonfly = fabric.wiring().dragonfly().is_some();
        let names = if is_dragonfly { &["isolated", "isolated-global"][..] } else { &["isolated"] };
        for name in names {
            let rule = policy(name, 1).unwrap();
            let mut occupancy = Occupancy::new(Arc::clone(&fabric));
            let mut jobs: Vec<Placement> = Vec::new();
            let out: Vec<u32> = out.iter().map(|node| node.index(fabric.nodes() as usize) as u32).collect();
            for &node in &out {
                occupancy.set_in_service(node, false);
            }
            for (step, event) in events.iter().enumerate() {
                let mut fresh = Occupancy::new(Arc::clone(&fabric));
                let is_out = |node: &&u32| !occupancy.in_service().contains(**node);
                out.iter().filter(is_out).for_each(|&node| fresh.set_in_service(node, false));
                for job in &jobs {
                    fresh.adopt(job).unwrap();
                }
                let size = |nodes: u32| Request::whole_nodes(99, nodes.min(fabric.nodes()), 1.0);
                if occupancy.idle().contains(0) {
                    occupancy.set_held(0..1, true);
                    for &nodes in &sizes {
                        drop(rule.place(&size(nodes), &occupancy));
                    }
                    occupancy.set_held(0..1, false);
                }
                for &nodes in &sizes {
                    let request = size(nodes);
                    let alone = rule.place(&request, &fresh.clone());
                    prop_assert_eq!(rule.place(&request, &occupancy), alone, "{} nodes", nodes);
                }
                match event {
                    Ok(nodes) => {
                        let request = Request::whole_nodes(1, (*nodes).min(fabric.nodes()), 1.0);
                        if let Ok(placement) = rule.place(&request, &occupancy) {
                            occupancy.claim(&placement).unwrap();
                            jobs.push(placement);
                        }
                    }
                    Err(index) if !jobs.is_empty() => {
                        occupancy.release(&jobs.remove(index.index(jobs.len())));
                    }
                    Err(_) => {}
                }
                if let Some(&node) = out.get(step / 4) {
                    occupancy.set_in_service(node, true);
                }
            }
        }
    }

    /// A job on any nodes of an area keeps what the area promises, next to jobs with and without promises; and where the
    /// policy finds a place, there is an area, unless the place is in several cubes of a pod.
    #[test]
    fn any_nodes_of_an_area_keep_the_promise(
        fabric in any_machine(), events in events(24), nodes in 2u32..30, picks: Vec<Index>,
        name in prop::sample::select(vec!["random", "isolated-global", "isolated"]),
    ) {
        let (_, occupancy) = run(name, &fabric, &events, |_, _| {});
        let request = Request::whole_nodes(99, nodes, 1.0);
        let is_dragonfly = fabric.wiring().dragonfly().is_some();
        let is_pod = fabric.wiring().torus().is_some_and(Torus::is_pod);
        prop_assume!(is_dragonfly || name != "isolated-global");
        for keep_off in [KeepOff::All, KeepOff::AllBetweenGroups, KeepOff::Isolated] {
            let found = areas(&request, &occupancy, keep_off);
            for area in &found {
                prop_assert!(area.is_sorted_by(|a, b| a < b) && area.len() >= nodes as usize);
                let mut left = area.clone();
                let at = (0..nodes as usize).map(|at| picks.get(at).map_or(0, |pick| pick.index(left.len() - at)));
                let at: Vec<usize> = at.collect();
                let chosen: Vec<_> = at.into_iter().map(|at| left.remove(at)).collect();
                let placement = Placement::new(&fabric, chosen, Share::Whole);
                let placement = match keep_off {
                    KeepOff::AllBetweenGroups if is_dragonfly => placement.isolated_between_groups(&fabric),
                    KeepOff::All | KeepOff::AllBetweenGroups => placement.isolated(true),
                    KeepOff::Isolated => placement,
                };
                prop_assert!(occupancy.has_room_for(&placement), "{:?}: {:?}", keep_off, placement.nodes());
            }
            let rule = match keep_off {
                KeepOff::AllBetweenGroups if is_dragonfly => "isolated-global",
                KeepOff::All | KeepOff::AllBetweenGroups => "isolated",
                KeepOff::Isolated => continue,
            };
            if !is_pod && policy(rule, 1).unwrap().place(&request, &occupancy).is_ok() {
                prop_assert!(!found.is_empty(), "{} finds a place outside all areas", rule);
            }
        }
    }

    /// A job gets as many nodes as it asks for, each once and of those that it may have, also next to jobs on parts of nodes.
    #[test]
    fn a_job_gets_the_number_of_nodes_that_it_asks_for(
        fabric in any_machine(), jobs in prop::collection::vec((1u32..20, any::<bool>(), any::<[u64; 3]>(), any::<bool>()), 1..30),
    ) {
        let rules = [policy("isolated", 1).unwrap(), policy("random", 1).unwrap()];
        let mut occupancy = Occupancy::new(Arc::clone(&fabric));
        for (id, (nodes, whole, eligible, is_random)) in (1..).zip(jobs) {
            let set = NodeSet::of_words(fabric.nodes(), &eligible);
            let share = if whole { Share::Whole } else { Share::Part(Amounts::default()) };
            let request = Request { share, eligible: Some(Arc::new(set.clone())), ..Request::whole_nodes(id, nodes, 1.0) };
            if let Ok(placement) = rules[usize::from(is_random)].place(&request, &occupancy) {
                prop_assert!(placement.nodes().is_sorted_by(|a, b| a < b), "{:?}", placement.nodes());
                prop_assert_eq!(placement.nodes().len() as u32, nodes);
                prop_assert!(placement.nodes().iter().all(|&node| set.contains(node)));
                occupancy.claim(&placement).unwrap();
            }
        }
    }

    /// A job also keeps off the links of jobs that were promised nothing.
    #[test]
    fn a_promise_holds_next_to_jobs_without_one(fabric in any_machine(), events in events(20), nodes in 1u32..40) {
        let (jobs, occupancy) = run("random", &fabric, &events, |_, _| {});
        let request = Request::whole_nodes(99, nodes, 1.0);
        if let Ok(placement) = policy("isolated", 1).unwrap().place(&request, &occupancy) {
            for (_, other) in &jobs {
                prop_assert!(placement.uses().and(other.uses()).is_empty());
            }
        }
    }
}

/// Where the links of all free nodes are used, a job of several nodes waits, though its part of each node is free.
#[test]
fn parts_of_nodes_whose_links_are_used_are_no_place() {
    for name in DRAGONFLIES.iter().chain(&TORI).chain(&HYPERX) {
        let fabric = machine(name);
        let mut occupancy = Occupancy::new(Arc::clone(&fabric));
        let rule = policy("isolated", 1).unwrap();
        let on_parts = |id, nodes| Request {
            share: Share::Part(Amounts::default()),
            ..Request::whole_nodes(id, nodes, 1.0)
        };
        let all = rule.place(&on_parts(1, fabric.nodes()), &occupancy).unwrap();
        occupancy.claim(&all).unwrap();
        let refusal = rule.place(&on_parts(2, 2), &occupancy).unwrap_err();
        assert!(matches!(refusal, Refusal::WouldShareLinks { .. }), "{name}: {refusal:?}");
        assert!(rule.place(&on_parts(3, 1), &occupancy).is_ok(), "{name}");
    }
}

/// A search knows nothing of members that run already, here or on another machine: it would give links that the whole job
/// shares. So it gives none.
#[test]
fn a_job_with_members_elsewhere_is_refused() {
    for name in [DRAGONFLIES[0], TORI[0], HYPERX[0]] {
        let occupancy = Occupancy::new(machine(name));
        let rule = policy("isolated", 1).unwrap();
        let alone = Request::whole_nodes(1, 3, 1.0);
        assert!(rule.place(&alone, &occupancy).is_ok(), "{name}");
        let here = Request { members: vec![0], ..alone.clone() };
        for request in [here, Request { beyond: 1, ..alone }] {
            let refusal = rule.place(&request, &occupancy).unwrap_err();
            assert!(matches!(refusal, Refusal::WouldShareLinks { .. }), "{name}: {refusal}");
        }
    }
}
