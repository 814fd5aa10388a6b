//! The contract that every policy must keep.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::sync::Arc;

use common::{Ask, ask, crowded, joined, machine, rule, slots, tree, tree_policies};
use proptest::prelude::*;
use proptest::sample::Index;
use topolane_fabric::Fabric;
use topolane_placement::{
    Lack, Occupancy, POLICIES, Placement, Policy, Refusal, Request, RoomHelps, Share,
};

/// Checks an answer: the wanted number of slots, all free, eligible and connected.
fn keeps_the_contract(request: &Request, answer: &Placement, occupancy: &Occupancy) {
    let fabric = occupancy.fabric();
    assert_eq!(answer.nodes().len(), request.nodes as usize);
    assert_eq!(answer.share(), &request.share);
    for &node in answer.nodes() {
        let here = answer.nodes().iter().filter(|&&other| other == node).count() as u32;
        assert!(here <= slots(occupancy, request, node), "{here} slots on node {node}");
        let group = answer.nodes().iter().chain(&request.members);
        assert!(group.clone().all(|&other| joined(fabric, node, other)));
    }
    let mut after = occupancy.clone();
    after.claim(answer).unwrap();
}

/// The most slots of any set of connected sites that also contains all members.
fn room_of_a_region(request: &Request, occupancy: &Occupancy) -> u32 {
    let fabric = occupancy.fabric();
    let region = |of: u32| -> u32 {
        let holds_members = request.members.iter().all(|&member| joined(fabric, of, member));
        let inside = (0..fabric.nodes()).filter(|&node| joined(fabric, of, node));
        if holds_members { inside.map(|node| slots(occupancy, request, node)).sum() } else { 0 }
    };
    (0..fabric.nodes()).map(region).max().unwrap_or(0)
}

/// Checks that carrying out a plan gives what `place` answers, with the same waste, and that a request without a plan
/// is refused for the same reason.
fn plan_is_the_placement(
    policy: &dyn Policy,
    request: &Request,
    occupancy: &Occupancy,
    answer: &Result<Placement, Refusal>,
) {
    match (policy.plan(request, occupancy), answer) {
        (Ok(planned), Ok(placement)) => {
            assert_eq!(*policy.carry_out(&planned, request, occupancy), *placement);
            let waste = policy.waste(request, placement, occupancy);
            let off = (planned.waste() - waste).abs();
            assert!(off < 1e-9, "{}: {} planned, {waste} wasted", policy.name(), planned.waste());
        }
        (planned, answer) => assert_eq!(planned.err(), answer.clone().err(), "{}", policy.name()),
    }
}

fn contract_of(policy: &dyn Policy, request: &Request, occupancy: &Occupancy) {
    let answer = policy.place(request, occupancy);
    assert_eq!(policy.can_place(request, occupancy).err(), answer.as_ref().err().cloned());
    assert_eq!(policy.place(request, &occupancy.clone()), answer, "the same question again");
    if let Ok(placement) = &answer {
        keeps_the_contract(request, placement, occupancy);
    }
    plan_is_the_placement(policy, request, occupancy, &answer);
    let enough = room_of_a_region(request, occupancy) >= request.nodes;
    assert!(enough || answer.is_err());
    if policy.counts_only(request) {
        assert_eq!(answer.is_ok(), enough, "{}: slots are all it needs", policy.name());
    }
    if let Err(Refusal::Never { wanted, most }) = answer
        && policy.name() != "recorded"
    {
        assert!(most < wanted, "{}: never, of {most} for {wanted}", policy.name());
        let empty = Occupancy::new(occupancy.fabric().clone());
        assert!(policy.can_place(request, &empty).is_err(), "never, but on the empty machine");
    }
}

/// Places jobs by the policy and ends them one by one, the last first. Once the request can be placed, it must stay so.
fn more_room_helps(policy: &dyn Policy, request: &Request, jobs: &[Request], fabric: &Arc<Fabric>) {
    let mut occupancy = Occupancy::new(Arc::clone(fabric));
    let mut running = Vec::new();
    for job in jobs {
        if let Ok(placement) = policy.place(job, &occupancy) {
            occupancy.claim(&placement).unwrap();
            running.push(placement);
        }
    }
    let mut placed_before = policy.can_place(request, &occupancy).is_ok();
    for ended in running.iter().rev() {
        occupancy.release(ended);
        let has_place = policy.can_place(request, &occupancy).is_ok();
        assert!(
            has_place || !placed_before,
            "{}: {request:?} has no place any more",
            policy.name()
        );
        placed_before = has_place;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// If a policy says that more free capacity always helps, it can place a request with fewer jobs whenever it can
    /// with more. EASY relies on this when it remembers refusals.
    #[test]
    fn more_room_helps_where_it_is_said_to(
        machine in machine(),
        others in prop::collection::vec((ask(), 1u32..7), 1..12),
        asks in prop::collection::vec((ask(), 1u32..9), 1..4),
    ) {
        let fabric = machine.fabric();
        let sized = |(ask, nodes): &(Ask, u32)| Request { nodes: *nodes, ..ask.on(&fabric) };
        let jobs: Vec<Request> = others.iter().map(sized).collect();
        for request in asks.iter().map(sized) {
            for info in POLICIES {
                let policy = (info.build)(3);
                for policy in [Some(&*policy), policy.for_head().map(|rule| rule.policy)].into_iter().flatten() {
                    if policy.room_helps(&request) == RoomHelps::Always {
                        more_room_helps(policy, &request, &jobs, &fabric);
                    }
                }
            }
        }
    }

    /// Every policy answers with exactly the wanted slots, all free and eligible, inside connected sites. `can_place`
    /// and `plan` agree with `place`. The same request in the same state gets the same answer. Policies that only count
    /// place a request exactly if one connected region has enough slots.
    #[test]
    fn every_policy_keeps_the_contract(
        machine in machine(),
        others in prop::collection::vec(ask(), 0..8),
        out in prop::collection::vec(any::<Index>(), 0..3),
        asks in prop::collection::vec(ask(), 1..5),
    ) {
        let fabric = machine.fabric();
        let occupancy = crowded(&fabric, &others, &out);
        for ask in &asks {
            for info in POLICIES {
                let mut request = ask.on(&fabric);
                if info.name == "recorded" {
                    request.recorded = Some((0..fabric.nodes()).rev().take(request.nodes as usize).collect());
                    request.nodes = request.nodes.min(fabric.nodes());
                }
                let policy = (info.build)(3);
                contract_of(&*policy, &request, &occupancy);
                contract_of(policy.for_queue_length(1000), &request, &occupancy);
            }
        }
    }

    /// On the empty machine, every policy except `recorded` places a request that the eligible slots of one leaf can
    /// hold, stacked or not.
    #[test]
    fn what_one_leaf_holds_fits_on_the_empty_machine(machine in machine(), ask in ask()) {
        let fabric = machine.fabric();
        let empty = Occupancy::new(fabric.clone());
        let mut request = Ask { members: Vec::new(), ..ask }.on(&fabric);
        let in_leaf = |leaf| -> u32 { fabric.node_range(1, leaf).map(|node| slots(&empty, &request, node)).sum() };
        let most = (0..fabric.groups(1)).map(in_leaf).max().unwrap();
        prop_assume!(most > 0);
        request.nodes = 1 + ask.nodes.index(most as usize) as u32;
        for info in tree_policies() {
            let placed = (info.build)(0).place(&request, &empty);
            prop_assert!(placed.is_ok(), "{}: {:?}", info.name, placed);
        }
    }
}

/// A single switch is a machine too: every policy except `recorded` keeps the contract there, and places jobs until it
/// is full.
#[test]
fn every_policy_fills_a_single_switch() {
    let fabric = tree(&[4]);
    for info in tree_policies() {
        let policy = (info.build)(0);
        let mut occupancy = Occupancy::new(Arc::clone(&fabric));
        for (id, nodes) in [(1, 1), (2, 3), (3, 1)] {
            let request = Request::whole_nodes(id, nodes, 1.0);
            contract_of(&*policy, &request, &occupancy);
            let placed = policy.place(&request, &occupancy);
            assert_eq!(placed.is_ok(), id < 3, "{}: {placed:?}", info.name);
            if let Ok(placement) = placed {
                occupancy.claim(&placement).unwrap();
            }
        }
    }
}

/// The draws of `random` depend only on the seed and the id of the request.
#[test]
fn random_draws_depend_on_seed_and_identity() {
    let occupancy = Occupancy::new(tree(&[8, 8]));
    let draw = |seed, id| {
        let random = topolane_placement::policy("random", seed).unwrap();
        let placed = random.place(&Request::whole_nodes(id, 20, 1.0), &occupancy).unwrap();
        placed.nodes().to_vec()
    };
    assert_eq!(draw(1, 1), draw(1, 1));
    let draws: std::collections::HashSet<_> =
        (0..5).flat_map(|seed| (0..5).map(move |id| draw(seed, id))).collect();
    assert_eq!(draws.len(), 25, "twenty of 64 nodes, 25 times, and no draw twice");
}

/// `random` draws every node equally often: over 4,000 ids, each of 16 nodes is drawn a quarter of the time, within
/// five standard deviations.
#[test]
fn random_favours_no_node() {
    let occupancy = Occupancy::new(tree(&[4, 4]));
    let random = rule("random");
    let mut drawn = [0i32; 16];
    for id in 0..4000 {
        let placed = random.place(&Request::whole_nodes(id, 4, 1.0), &occupancy).unwrap();
        placed.nodes().iter().for_each(|&node| drawn[node as usize] += 1);
    }
    let deviation = (4000.0_f64 * 0.25 * 0.75).sqrt();
    assert!(
        drawn.iter().all(|&times| f64::from((times - 1000).abs()) < 5.0 * deviation),
        "{drawn:?}"
    );
}

/// A request wider than the machine is refused as never, one wider than the free nodes as not now.
#[test]
fn too_few_slots_now_or_ever() {
    let fabric: std::sync::Arc<Fabric> = tree(&[4, 4]);
    let mut occupancy = Occupancy::new(fabric.clone());
    occupancy.claim(&common::whole(&fabric, &[0, 1, 2])).unwrap();
    for info in tree_policies() {
        let policy = (info.build)(0);
        let ask =
            |nodes| policy.place(&Request::whole_nodes(1, nodes, 1.0), &occupancy).unwrap_err();
        assert_eq!(ask(17), Refusal::Never { wanted: 17, most: 16 }, "{}", info.name);
        assert_eq!(ask(14), Refusal::NotNow { wanted: 14, free: 13 }, "{}", info.name);
    }
    let part = Request { share: Share::part(17, 0), ..Request::whole_nodes(1, 1, 1.0) };
    let refused = rule("first-fit").place(&part, &occupancy).unwrap_err();
    assert_eq!(refused, Refusal::Lacks(Lack { resource: "cores".into(), wanted: 17, most: 16 }));
}
