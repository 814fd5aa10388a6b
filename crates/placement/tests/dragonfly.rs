//! Policies on dragonflies: what they promise, and which refuse. tests/wirings has a checker that knows only the cables.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "common/wirings.rs"]
mod wirings;

use std::sync::Arc;

use proptest::prelude::*;
use topolane_fabric::Fabric;
use topolane_placement::{
    KeepOff, Occupancy, POLICIES, Placement, Refusal, Request, Share, areas, policy,
};
use wirings::{DETOURS, DRAGONFLIES, events, machine, machines, run};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Under `isolated-global` no two closures meet between groups. A running job has no room next to itself.
    #[test]
    fn no_two_jobs_share_what_is_promised(fabric in machines(&DRAGONFLIES), events in events(24)) {
        let dragonfly = fabric.wiring().dragonfly().unwrap();
        run("isolated-global", &fabric, &events, |jobs, occupancy| {
            for (index, (_, one)) in jobs.iter().enumerate() {
                assert!(!occupancy.has_room_for(one));
                for (_, other) in &jobs[..index] {
                    let both = one.uses().and(other.uses());
                    assert!(dragonfly.between_groups(&both).is_empty(), "{one:?} and {other:?}");
                }
            }
        });
    }

    /// Under `dedicated` no two jobs share a link. A job in several groups owns cables between each two of them, with its
    /// share of their bandwidth, and its links are those over these cables. Taken over with its nodes and cables it
    /// has the same links.
    #[test]
    fn dedicated_jobs_own_cables(fabric in machines(&DRAGONFLIES), events in events(24)) {
        let dragonfly = fabric.wiring().dragonfly().unwrap();
        let below = fabric.links() - dragonfly.cables();
        run("dedicated", &fabric, &events, |jobs, occupancy| {
            let Some((_, last)) = jobs.last() else { return };
            for (_, other) in &jobs[..jobs.len() - 1] {
                assert!(last.uses().and(other.uses()).is_empty(), "{last:?} and {other:?}");
            }
            assert!(!occupancy.has_room_for(last));
            let group = |node: u32| fabric.group(2, node);
            let mut groups: Vec<u32> = last.nodes().iter().map(|&node| group(node)).collect();
            groups.dedup();
            assert_eq!(last.links().is_empty(), groups.len() == 1);
            let count = |of: u32| last.nodes().iter().filter(|&&node| group(node) == of).count();
            for (index, &a) in groups.iter().enumerate() {
                for &b in &groups[..index] {
                    let numbers = [a, b].map(|group| dragonfly.group_of_level_2(group));
                    let joins = |cable: u32| {
                        let (x, y) = dragonfly.cable(cable).unwrap().between;
                        let ends = [x, y].map(|switch| dragonfly.group_of(switch));
                        ends == numbers || ends == [numbers[1], numbers[0]]
                    };
                    let own = last.links().iter().filter(|&&link| joins(link - below)).count();
                    let all = (0..dragonfly.cables()).filter(|&cable| joins(cable)).count();
                    let nodes = fabric.node_range(2, a).len();
                    let cable = all as f64 / nodes as f64 * 25e9;
                    let flows = count(a).min(count(b)) as f64;
                    let needed = flows * cable.min(fabric.bandwidth(0)) / 25e9;
                    assert!(own >= 1 && own as f64 >= needed - 1e-9, "{own} of {all} for {flows}");
                }
            }
            let again = Placement::new(&fabric, last.nodes().to_vec(), Share::Whole)
                .isolated(true)
                .with_links(&fabric, last.links().to_vec(), last.bandwidth_share());
            assert_eq!(&again, last);
        });
    }

    /// Jobs with two promises on one machine: none uses what another has to itself.
    #[test]
    fn promises_hold_side_by_side(fabric in machines(&DRAGONFLIES), events in events(24), nodes in 1u32..30) {
        let promises = ["isolated", "isolated-global", "dedicated"];
        let pairs = promises.iter().flat_map(|first| promises.map(|second| (*first, second)));
        for (first, second) in pairs.filter(|(first, second)| first != second) {
            let (_, occupancy) = run(first, &fabric, &events, |_, _| {});
            let request = Request::whole_nodes(99, nodes, 1.0);
            if let Ok(placement) = policy(second, 1).unwrap().place(&request, &occupancy) {
                prop_assert!(occupancy.has_room_for(&placement), "{} next to {}: {:?}", second, first, placement.nodes());
            }
        }
    }

    /// On the cables of any two of its groups, whatever the others send, a job with a promise keeps its share: counted from
    /// the nodes of all jobs. A job that would take a share is refused, one without a promise too.
    #[test]
    fn jobs_keep_their_shares_of_cables_on_which_detours_meet(
        fabric in machines(&DETOURS), events in events(40), name in prop::sample::select(vec!["isolated", "isolated-global"]),
    ) {
        run(name, &fabric, &events, |jobs, occupancy| {
            let (jobs, most) = (jobs.iter().map(|(_, job)| job).collect::<Vec<_>>(), largest_load(&fabric));
            assert!(most(&jobs, &jobs) <= 1.0, "{jobs:?}");
            let request = Request::whole_nodes(99, 20, 1.0);
            if let Ok(random) = policy("random", 1).unwrap().place(&request, occupancy) {
                let with_it: Vec<_> = jobs.iter().copied().chain([&random]).collect();
                let meets = |job: &&Placement| !job.uses().and(random.uses()).is_empty();
                if !jobs.iter().any(meets) {
                    assert_eq!(occupancy.has_room_for(&random), most(&with_it, &jobs) <= 1.0);
                }
            }
        });
    }

    /// Level-Spread: a job lies in one group of the lowest level with room, and of the groups below none has two nodes
    /// more than another that has free nodes left.
    #[test]
    fn level_spread_is_even_in_the_smallest_level(fabric in machines(&DRAGONFLIES), events in events(24), nodes in 1u32..40) {
        let (_, occupancy) = run("random", &fabric, &events, |_, _| {});
        let request = Request::whole_nodes(99, nodes, 1.0);
        let Ok(placement) = policy("level-spread", 1).unwrap().place(&request, &occupancy) else { return Ok(()) };
        let free = occupancy.free_slots(&request);
        let level = (1..=3).find(|&level| {
            (0..fabric.groups(level)).any(|group| free.count(level, group) >= nodes)
        });
        let level = level.unwrap();
        let home = fabric.group(level, placement.nodes()[0]);
        prop_assert!(placement.nodes().iter().all(|&node| fabric.group(level, node) == home));
        for below in 1..level {
            let taken = |group| placement.nodes().iter().filter(|&&node| fabric.group(below, node) == group).count() as u32;
            for above in 0..fabric.groups(below + 1) {
                let groups = fabric.children(below + 1, above);
                let most = groups.clone().map(taken).max().unwrap();
                let short = |&group: &u32| taken(group) + 1 < most && taken(group) < free.count(below, group);
                let inside = |&group: &u32| fabric.group(level, fabric.node_range(below, group).start) == home;
                prop_assert_eq!(groups.filter(inside).find(short), None);
            }
        }
    }
}

/// Returns the largest load that `senders` can put on cables between two groups of one of `promised`, over what the
/// machine's detours allow.
fn largest_load(fabric: &Fabric) -> impl Fn(&[&Placement], &[&Placement]) -> f64 + '_ {
    let dragonfly = fabric.wiring().dragonfly().unwrap();
    let (detours, groups) = (dragonfly.detours().unwrap(), fabric.groups(2));
    let in_group = |job: &Placement, group: u32| {
        job.nodes().iter().filter(|&&node| fabric.group(2, node) == group).count()
    };
    // The nodes of one group send to the other while it has partners; the rest go on through a third one.
    let load = move |job: &Placement, one: u32, other: u32| {
        let (here, there) = (in_group(job, one), in_group(job, other));
        let by_detour = here.abs_diff(there).min(job.nodes().len() - here - there) as f64;
        let by_third = detours.part / f64::from(groups);
        let direct = (1.0 - detours.part + 2.0 * by_third) * here.min(there) as f64;
        (direct + by_third * by_detour) * fabric.bandwidth(0)
    };
    move |senders, promised| {
        let mut most: f64 = 0.0;
        for one in 0..groups {
            for other in (0..groups).filter(|&other| other != one) {
                let cables: f64 =
                    dragonfly.lanes(one, other).iter().map(|lane| lane.bandwidth).sum();
                let is_in_both =
                    |job: &&&Placement| in_group(job, one) > 0 && in_group(job, other) > 0;
                for job in promised.iter().filter(is_in_both) {
                    let others = senders.iter().filter(|sender| !std::ptr::eq(**sender, *job));
                    let others: f64 = others.map(|sender| load(sender, one, other)).sum();
                    most = most.max(others / ((1.0 - detours.share) * cables) - 1e-6);
                }
            }
        }
        most
    }
}

/// A policy that needs a tree refuses with a sentence, for one node too; the others fill the machine.
#[test]
fn policies_that_need_a_tree_refuse_a_dragonfly() {
    let fabric = machine("slingshot(nodes=48, groups=3, switches=4, cables=1)");
    let occupancy = Occupancy::new(Arc::clone(&fabric));
    let mut refused = Vec::new();
    for info in POLICIES.iter().filter(|info| info.name != "recorded") {
        let rule = (info.build)(1);
        for nodes in [1, 7, 48] {
            let request = Request::whole_nodes(1, nodes, 1.0);
            match rule.place(&request, &occupancy) {
                Err(refusal @ Refusal::WrongWiring { .. }) => {
                    let sentence = "the policy needs a tree, but the machine is a dragonfly";
                    assert_eq!(refusal.to_string(), sentence);
                    assert_eq!(rule.never(&request, &occupancy), Some(refusal));
                    refused.push(info.name);
                }
                placed => {
                    let placed = placed.unwrap();
                    assert_eq!(placed.nodes().len(), nodes as usize, "{}", info.name);
                }
            }
        }
    }
    refused.dedup();
    let expected = [
        "hop-bytes-exact",
        "isolated-hop-bytes",
        "jigsaw",
        "jigsaw-relaxed",
        "laas",
        "quiet-neighborhoods",
        "segments-isolated",
        "segments-dedicated",
    ];
    assert_eq!(refused, expected);
}

/// `isolated-global` is for dragonflies.
#[test]
fn a_tree_is_refused_by_name() {
    let tree = machine("fat-tree(radix=4)");
    let occupancy = Occupancy::new(tree);
    let refusal =
        policy("isolated-global", 1).unwrap().place(&Request::whole_nodes(1, 1, 1.0), &occupancy);
    assert_eq!(
        refusal.unwrap_err().to_string(),
        "the policy needs a dragonfly, but the machine is a tree"
    );
}

/// Where another job uses a cable between two groups, a job that owns cables takes another one. With all of the bandwidth
/// there is no place; with less there is.
#[test]
fn dedicated_jobs_share_a_pair_of_groups() {
    let fabric = machine("slingshot(nodes=32, groups=2, switches=4, cables=4)");
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    let place = |name, request: &Request, occupancy: &Occupancy| {
        policy(name, 1).unwrap().place(request, occupancy)
    };
    // Two groups of 16 nodes. The second job has 8 nodes in each group, and half of the cables.
    let over_both = Placement::new(&fabric, vec![0, 16], Share::Whole).isolated(true);
    let dragonfly = fabric.wiring().dragonfly().unwrap();
    let group = |switch| dragonfly.group_of(switch);
    let joins = |&cable: &u32| {
        let (a, b) = dragonfly.cable(cable).unwrap().between;
        group(a) != group(b)
    };
    let last = (0..dragonfly.cables()).rfind(joins).unwrap();
    let link = fabric.links() - dragonfly.cables() + last;
    let first = over_both.with_links(&fabric, vec![link], 0.25);
    occupancy.claim(&first).unwrap();
    let request = Request::whole_nodes(2, 18, 1.0);
    assert!(place("isolated", &request, &occupancy).is_err(), "all cables are one job's");
    let second = place("dedicated", &request, &occupancy).unwrap();
    assert!(!second.links().is_empty() && !second.links().contains(&link));
    assert!(second.bandwidth_share() >= 1.0);
    occupancy.claim(&second).unwrap();
}

/// Two jobs that take their own gateways are next to each other in a group; without them the second is refused.
#[test]
fn jobs_take_the_gateways_of_their_own_groups() {
    // Switch 0 of each group leads to the next group, switch 1 to the one before.
    let fabric = machine("slingshot(nodes=18, groups=3, switches=3, cables=1)");
    let rule = policy("isolated", 1).unwrap();
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    let first = rule.place(&Request::whole_nodes(1, 8, 1.0), &occupancy).unwrap();
    let dragonfly = fabric.wiring().dragonfly().unwrap();
    let mut groups: Vec<u32> = first.nodes().iter().map(|&node| fabric.group(2, node)).collect();
    groups.dedup();
    assert_eq!(groups.len(), 2, "a group has 6 nodes: {first:?}");
    for &group in &groups {
        let gates = dragonfly.gates_to(group, groups.iter().copied());
        let has = |place: u32| {
            let on = |&node: &u32| {
                dragonfly.switch_of_leaf(fabric.group(1, node))
                    == dragonfly.switches_of(group).start + place
            };
            first.nodes().iter().any(on)
        };
        assert!(
            (0..3).filter(|place| gates >> place & 1 == 1).all(has),
            "{first:?} has its gateways"
        );
    }
    occupancy.claim(&first).unwrap();
    let second = rule.place(&Request::whole_nodes(2, 8, 1.0), &occupancy).unwrap();
    assert!(second.uses().and(first.uses()).is_empty());
}

/// Areas on an empty machine: each switch, each group, the fewest groups together, and all of them.
#[test]
fn areas_grow_from_switches_to_the_machine() {
    let fabric = machine("slingshot(nodes=18, groups=3, switches=3, cables=1)");
    let occupancy = Occupancy::new(Arc::clone(&fabric));
    let sizes = |nodes| {
        let found = areas(&Request::whole_nodes(1, nodes, 1.0), &occupancy, KeepOff::All);
        found.iter().map(Vec::len).collect::<Vec<_>>()
    };
    assert_eq!(sizes(2), [vec![2; 9], vec![6; 3], vec![12, 18]].concat());
    assert_eq!(sizes(13), [18]);
    assert!(sizes(19).is_empty());
}

/// A placement keeps its isolation when a node is replaced, and gets it when a running job is taken over.
#[test]
fn placements_made_by_hand_keep_the_promise() {
    let fabric = machine("slingshot(nodes=16, groups=2, switches=4, cables=2)");
    let over = |nodes: Vec<u32>| Placement::new(&fabric, nodes, Share::Whole);
    for name in ["isolated-global", "isolated"] {
        let rule = policy(name, 1).unwrap();
        let job = rule.isolate(over(vec![0, 8]), &fabric);
        for job in [over(vec![1, 9]).isolated_as(&job, &fabric), job] {
            let mut occupancy = Occupancy::new(Arc::clone(&fabric));
            occupancy.claim(&job).unwrap();
            assert!(!occupancy.has_room_for(&over(vec![3, 11])), "{name}: {job:?}");
            assert!(occupancy.has_room_for(&over(vec![14, 15])), "{name}: {job:?}");
        }
    }
}
