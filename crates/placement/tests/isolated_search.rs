//! Isolation holds for random arrivals and departures, and no placement within the class rules is missed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use common::{Ask, Machine, ask, choices, machine, one_site, rule};
use proptest::prelude::*;
use proptest::sample::Index;
use topolane_fabric::{CableId, Fabric, NodeIndex, pgft};
use topolane_placement::{Occupancy, Placement, Refusal, Request, Share};

/// Places jobs by `isolated`; some of them leave again.
fn arrivals(
    fabric: &Arc<Fabric>,
    steps: &[(Ask, Option<Index>)],
    plain: bool,
) -> (Occupancy, Vec<Placement>) {
    let mut occupancy = Occupancy::new(Arc::clone(fabric));
    let mut jobs: Vec<Placement> = Vec::new();
    for (ask, leaves) in steps {
        let mut request = Request { members: Vec::new(), ..ask.on(fabric) };
        if plain {
            request = Request::whole_nodes(ask.id, request.nodes.min(fabric.nodes()), 1.0);
        }
        // Small jobs are as frequent as large ones.
        request.nodes = if ask.id % 2 == 0 { request.nodes.min(4) } else { request.nodes };
        if let Ok(placed) = rule("isolated").place(&request, &occupancy) {
            occupancy.claim(&placed).unwrap();
            jobs.push(placed);
        }
        if let Some(which) = leaves.filter(|_| !jobs.is_empty()) {
            occupancy.release(&jobs.swap_remove(which.index(jobs.len())));
        }
    }
    (occupancy, jobs)
}

fn steps() -> impl Strategy<Value = Vec<(Ask, Option<Index>)>> {
    prop::collection::vec((ask(), prop::option::weighted(0.4, any::<Index>())), 1..25)
}

/// Checks from the node lists alone that at most one job crosses each group, and the link of each node that several
/// jobs share.
fn no_jobs_meet(fabric: &Fabric, jobs: &[Placement]) {
    for level in 0..=fabric.depth() {
        for group in 0..fabric.groups(level) {
            let crosses = |job: &&Placement| {
                let inside = |&&node: &&NodeIndex| fabric.group(level, node) == group;
                let within = job.nodes().iter().filter(inside).count();
                within > 0 && within < job.nodes().len()
            };
            let crossing = jobs.iter().filter(crosses).count();
            assert!(crossing <= 1, "{crossing} jobs cross group {group} of level {level}");
        }
    }
}

/// The lowest level with a group of at least `nodes` nodes.
fn class(fabric: &Fabric, nodes: u32) -> Option<usize> {
    let holds = |&level: &usize| {
        (0..fabric.groups(level)).any(|group| fabric.node_range(level, group).len() as u32 >= nodes)
    };
    (1..=fabric.depth()).find(holds)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// For any arrivals and departures, no link can carry traffic of two jobs. Trees have two to four levels, are even
    /// or uneven, padded or of several sites; nodes are whole or shared.
    #[test]
    fn no_group_is_ever_crossed_by_two_jobs(machine in machine(), steps in steps()) {
        let fabric = machine.fabric();
        for upto in 1..=steps.len() {
            let (_, jobs) = arrivals(&fabric, &steps[..upto], false);
            no_jobs_meet(&fabric, &jobs);
        }
    }

    /// Compares with all choices of free nodes inside one group of the job's class. `isolated` places the job exactly
    /// if one of them crosses only groups that no job crosses.
    #[test]
    fn nothing_is_missed_within_the_class_rules(machine in one_site(), steps in steps()) {
        let fabric = machine.fabric();
        prop_assume!(fabric.nodes() <= 12);
        let (occupancy, _) = arrivals(&fabric, &steps, true);
        let free: Vec<u32> = (0..fabric.nodes()).map(|node| u32::from(occupancy.held(node) == 0)).collect();
        for nodes in 1..=fabric.nodes() {
            let class = class(&fabric, nodes).unwrap();
            let legal = choices(&free, nodes).into_iter().any(|choice| {
                let home = fabric.group(class, choice[0]);
                choice.iter().all(|&node| fabric.group(class, node) == home)
                    && Placement::new(&fabric, choice, Share::Whole)
                        .crossed()
                        .iter()
                        .all(|&(level, group)| occupancy.crossing(level.into(), group) == 0)
            });
            let placed = rule("isolated").place(&Request::whole_nodes(0, nodes, 1.0), &occupancy);
            prop_assert_eq!(placed.is_ok(), legal, "{} nodes: {:?}", nodes, placed);
            let enough = occupancy.idle_nodes() >= nodes;
            let says_so = matches!(placed, Err(Refusal::WouldShareLinks { .. }));
            prop_assert!(placed.is_ok() || says_so == enough);
        }
    }

    /// More free capacity never makes `isolated` refuse: what it places next to some jobs, it also places after one of
    /// them has left.
    #[test]
    fn a_job_that_leaves_never_spoils_a_placement(machine in machine(), steps in steps(), ask in ask()) {
        let fabric = machine.fabric();
        let (mut occupancy, jobs) = arrivals(&fabric, &steps, false);
        let request = ask.on(&fabric);
        prop_assume!(rule("isolated").can_place(&request, &occupancy).is_ok());
        for job in &jobs {
            occupancy.release(job);
            prop_assert!(rule("isolated").can_place(&request, &occupancy).is_ok());
            occupancy.claim(job).unwrap();
        }
    }
}

/// Every cable on some shortest route between two nodes, in either direction.
fn cables_between(fabric: &Fabric, a: NodeIndex, b: NodeIndex) -> BTreeSet<CableId> {
    let mut cables = BTreeSet::new();
    let Some(top) = fabric.common_level(a, b) else { return cables };
    let mut switches = BTreeSet::from([0]);
    for level in 0..top {
        let cabling = fabric.cabling(0, level);
        let mut above = BTreeSet::new();
        for (&switch, parent) in
            switches.iter().flat_map(|s| (0..cabling.parents).map(move |p| (s, p)))
        {
            above.insert(switch * cabling.parents + parent);
            for (node, cable) in
                [a, b].iter().flat_map(|n| (0..cabling.cables).map(move |c| (n, c)))
            {
                let group = fabric.group(level, *node);
                cables.insert(fabric.cable(level, group, switch, parent, cable).unwrap());
            }
        }
        switches = above;
    }
    cables
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Jobs placed by `isolated` have no cable in common, whatever the routing: all pairs of nodes inside each job and
    /// all shortest routes between them are checked.
    #[test]
    fn no_cable_is_on_the_ways_of_two_jobs(
        levels in prop::collection::vec((2u32..4, 1u32..3, 1u32..3), 2..4),
        steps in steps(),
    ) {
        let part = |pick: fn(&(u32, u32, u32)) -> u32| levels.iter().map(pick).collect::<Vec<_>>();
        let description = pgft("n", &part(|l| l.0), &part(|l| l.1), &part(|l| l.2));
        let fabric = Arc::new(Fabric::build(&description).unwrap());
        let (_, jobs) = arrivals(&fabric, &steps, false);
        let mut users: BTreeMap<CableId, usize> = BTreeMap::new();
        for (index, job) in jobs.iter().enumerate() {
            for (&a, &b) in job.nodes().iter().flat_map(|a| job.nodes().iter().map(move |b| (a, b))) {
                for cable in cables_between(&fabric, a, b) {
                    let user = *users.entry(cable).or_insert(index);
                    prop_assert_eq!(user, index, "cable {} carries two jobs", cable);
                }
            }
        }
    }
}

/// The exhaustive checks above see real choices: on a full machine of radix 4, jobs of all classes run.
#[test]
fn random_arrivals_reach_every_class() {
    let fabric = Machine::Regular(vec![2, 2, 4]).fabric();
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    for nodes in [6, 3, 2, 1, 1] {
        let placed = rule("isolated").place(&Request::whole_nodes(0, nodes, 1.0), &occupancy);
        occupancy.claim(&placed.unwrap()).unwrap();
    }
    assert_eq!(occupancy.idle_nodes(), 3);
}
