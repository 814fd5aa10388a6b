//! The obstacles that an explanation names exist, and they keep the request out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::sync::Arc;

use common::{Ask, ask, build, machine, rule, tree, whole};
use proptest::prelude::*;
use topolane_fabric::{Fabric, NodeSet};
use topolane_placement::{
    Holder, Missing, Obstacle, Occupancy, POLICIES, Placement, Policy, Refusal, Request,
};

/// The obstacles of a request for `nodes` whole nodes while these jobs run.
fn obstacles(
    policy: &str,
    nodes: u32,
    occupancy: &Occupancy,
    jobs: &[(u64, Placement)],
) -> Vec<Obstacle> {
    let holders: Vec<Holder<'_>> = jobs.iter().map(|(id, placement)| (*id, placement)).collect();
    let request = Request::whole_nodes(99, nodes, 1.0);
    rule(policy).explain(&request, occupancy, &holders).unwrap().obstacles
}

/// A machine on which jobs hold these nodes.
fn held(fabric: &Arc<Fabric>, nodes: &[&[u32]]) -> (Occupancy, Vec<(u64, Placement)>) {
    let mut occupancy = Occupancy::new(Arc::clone(fabric));
    let jobs: Vec<(u64, Placement)> =
        (1..).zip(nodes.iter().map(|nodes| whole(fabric, nodes))).collect();
    for (_, placement) in &jobs {
        occupancy.claim(placement).unwrap();
    }
    (occupancy, jobs)
}

/// Two pods of two leaves of four nodes. A job of six must lie in one pod, but leaves 1 and 3 are crossed.
#[test]
fn the_groups_that_others_cross_are_named_with_their_jobs() {
    let fabric = tree(&[4, 2, 2]);
    let (occupancy, jobs) = held(&fabric, &[&[0, 4], &[8, 12]]);
    let found = obstacles("isolated", 6, &occupancy, &jobs);
    let facts = found.iter().map(|one| (one.level, one.group, one.free, one.jobs.as_slice()));
    let expected: [(usize, u32, u32, &[u64]); 4] =
        [(1, 0, 3, &[1]), (1, 1, 3, &[1]), (1, 2, 3, &[2]), (1, 3, 3, &[2])];
    assert!(facts.eq(expected), "{found:?}");
    assert!(found.iter().all(
        |one| matches!(one.missing, Missing::Uplinks { missing, of } if missing == of && of > 0)
    ));
}

/// The job must lie in one leaf, but every leaf has one free node too few.
#[test]
fn a_job_that_must_lie_in_one_leaf_hears_how_many_nodes_it_lacks() {
    let fabric = tree(&[4, 2]);
    let (occupancy, jobs) = held(&fabric, &[&[0], &[4]]);
    let found = obstacles("isolated", 4, &occupancy, &jobs);
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].free, found[0].missing, found[0].jobs.as_slice()),
        (3, Missing::Slots(1), [1].as_slice())
    );
}

/// With too few free nodes, the number missing is that of the refusal, and all jobs hold some.
#[test]
fn too_few_nodes_are_held_by_the_jobs_that_run() {
    let fabric = tree(&[4, 2]);
    let (occupancy, jobs) = held(&fabric, &[&[0, 1], &[4]]);
    for policy in ["first-fit", "isolated", "dedicated"] {
        let found = obstacles(policy, 7, &occupancy, &jobs);
        assert_eq!(found.len(), 1, "{policy}");
        assert_eq!(
            (found[0].missing, found[0].jobs.as_slice()),
            (Missing::Slots(2), [1, 2].as_slice())
        );
    }
}

/// Two leaves of four nodes with two uplinks. Job 1 owns one uplink of the first leaf and both of the second.
#[test]
fn uplinks_that_others_own_are_counted() {
    let fabric = tree(&[4, 2]);
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    let (first, second) = (fabric.uplinks(1, 0), fabric.uplinks(1, 1));
    let links = vec![first.start, second.start, second.start + 1];
    let placed = whole(&fabric, &[0, 4, 5]).with_links(&fabric, links, 0.5);
    occupancy.claim(&placed).unwrap();
    let found = obstacles("dedicated", 5, &occupancy, &[(1, placed)]);
    let facts: Vec<_> = found.iter().map(|one| (one.group, one.free, one.missing)).collect();
    let uplinks = |missing| Missing::Uplinks { missing, of: 2 };
    assert_eq!(facts, [(0, 3, uplinks(1)), (1, 2, uplinks(2))]);
    assert!(found.iter().all(|one| one.jobs == [1]));
}

/// Two sites of three nodes. An isolated job crosses the WAN link. A job of four that may use none of its nodes must
/// cross it too.
#[test]
fn a_job_that_crosses_the_wan_is_named_though_it_holds_no_node_that_is_wanted() {
    let site = || vec![(vec![3], true)];
    let fabric = build(&[site(), site()], true);
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    let placed = whole(&fabric, &[0, 3]).isolated(true);
    occupancy.claim(&placed).unwrap();
    let others = NodeSet::of(fabric.nodes(), [1, 2, 4, 5]);
    let request = Request { eligible: Some(Arc::new(others)), ..Request::whole_nodes(99, 4, 1.0) };
    for policy in ["hop-bytes-exact", "isolated-hop-bytes"] {
        let found = rule(policy).explain(&request, &occupancy, &[(1, &placed)]).unwrap().obstacles;
        let facts: Vec<_> = found.iter().map(|one| (one.name.as_str(), one.missing)).collect();
        let wan = Missing::Uplinks { missing: 1, of: 1 };
        assert_eq!(facts, [("site0", wan), ("site1", wan)], "{policy}");
        assert!(found.iter().all(|one| one.jobs == [1]), "{policy}");
    }
}

/// Places jobs by several policies.
fn jobs_on(occupancy: &mut Occupancy, others: &[Ask]) -> Vec<(u64, Placement)> {
    let fabric = Arc::clone(occupancy.fabric());
    let mut jobs = Vec::new();
    for (id, other) in (0..).zip(others) {
        let request = Request {
            nodes: 1 + other.nodes.index(5) as u32,
            members: Vec::new(),
            ..other.on(&fabric)
        };
        let policy = (POLICIES[other.id as usize % POLICIES.len()].build)(1);
        if let Ok(placement) = policy.place(&request, occupancy) {
            occupancy.claim(&placement).unwrap();
            jobs.push((id, placement));
        }
    }
    jobs
}

fn is_explained_correctly(
    policy: &dyn Policy,
    request: &Request,
    refusal: Refusal,
    one: &Obstacle,
    occupancy: &Occupancy,
) {
    let fabric = occupancy.fabric();
    assert_eq!(one.name, fabric.group_name(one.level, one.group), "{}", policy.name());
    if let (Missing::Slots(missing), Refusal::NotNow { free, .. }) = (one.missing, refusal)
        && one.level == fabric.depth()
    {
        assert_eq!(missing, request.nodes - free);
    }
    if let Missing::Uplinks { missing, of } = one.missing {
        let wans = fabric.wans().filter(|(_, (a, b), ..)| [*a, *b].contains(&one.group)).count();
        let site = one.level == fabric.depth();
        let links = if site { wans as u32 } else { fabric.present_uplinks(one.level, one.group) };
        assert!(missing <= of && one.free > 0 && of == links);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// If the jobs that an explanation names leave, again and again, the request is finally placed. A request that
    /// would be placed has no explanation, every other one has.
    #[test]
    fn what_an_explanation_names_is_what_keeps_a_request_out(
        machine in machine(), others in prop::collection::vec(ask(), 1..12), wanted in ask(),
    ) {
        let fabric = machine.fabric();
        for info in POLICIES {
            let policy = (info.build)(1);
            let mut occupancy = Occupancy::new(Arc::clone(&fabric));
            let mut jobs = jobs_on(&mut occupancy, &others);
            let request = Request { members: Vec::new(), ..wanted.on(&fabric) };
            if policy.never(&request, &occupancy).is_some() {
                continue;
            }
            loop {
                let holders: Vec<Holder<'_>> = jobs.iter().map(|(id, placement)| (*id, placement)).collect();
                let answer = policy.place(&request, &occupancy);
                let Some(found) = policy.explain(&request, &occupancy, &holders) else {
                    prop_assert!(answer.is_ok(), "{}: refused without a reason", info.name);
                    break;
                };
                prop_assert_eq!(answer, Err(found.refusal.clone()));
                let named: Vec<u64> = found.obstacles.iter().flat_map(|one| one.jobs.clone()).collect();
                prop_assert!(!named.is_empty(), "{}: {:?} names no job", info.name, found);
                for one in &found.obstacles {
                    is_explained_correctly(&*policy, &request, found.refusal.clone(), one, &occupancy);
                }
                let (leave, stay): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|(id, _)| named.contains(id));
                prop_assert!(!leave.is_empty(), "{}: names jobs that do not run", info.name);
                for (_, placement) in &leave {
                    occupancy.release(placement);
                }
                jobs = stay;
            }
        }
    }
}
