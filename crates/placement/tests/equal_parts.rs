//! Partitions of equal parts: `jigsaw`, `jigsaw-relaxed` and `laas`; and the blocks of `quiet-neighborhoods`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use common::{rule, seen};
use proptest::prelude::*;
use proptest::sample::Index;
use topolane_fabric::{Fabric, pgft};
use topolane_placement::{Occupancy, Placement, Request, Share};

const EQUAL: [&str; 3] = ["jigsaw", "jigsaw-relaxed", "laas"];

/// A tree of three levels in which every switch has an uplink for each group below it.
fn full(children: [u32; 3]) -> Arc<Fabric> {
    let [nodes, leaves, _] = children;
    Arc::new(Fabric::build(&pgft("n", &children, &[1, nodes, leaves], &[1; 3])).unwrap())
}

fn ask(id: u64, nodes: u32) -> Request {
    Request::whole_nodes(id, nodes, 1.0)
}

/// For each leaf of a placement, its nodes there and the second-level switches to which it owns uplinks.
fn on_leaves(fabric: &Fabric, placement: &Placement) -> BTreeMap<u32, (u32, BTreeSet<u32>)> {
    let mut leaves: BTreeMap<u32, (u32, BTreeSet<u32>)> = BTreeMap::new();
    for &node in placement.nodes() {
        leaves.entry(fabric.group(1, node)).or_default().0 += 1;
    }
    for &link in placement.links() {
        let (level, leaf, _, parent, _) = fabric.cable_place(link).unwrap();
        if level == 1 {
            assert!(leaves.get_mut(&leaf).unwrap().1.insert(parent));
        }
    }
    leaves
}

/// For each pod and plane of a placement, the core switches to which it owns uplinks.
fn in_pods(fabric: &Fabric, placement: &Placement) -> BTreeMap<u32, BTreeMap<u32, BTreeSet<u32>>> {
    let mut pods: BTreeMap<u32, BTreeMap<u32, BTreeSet<u32>>> = BTreeMap::new();
    for &link in placement.links() {
        let (level, pod, plane, parent, _) = fabric.cable_place(link).unwrap();
        if level == 2 {
            assert!(pods.entry(pod).or_default().entry(plane).or_default().insert(parent));
        }
    }
    pods
}

/// Checks that the parts are equal as published. All leaves but one have the same number of nodes, each with as many
/// common uplinks as nodes; the last leaf has fewer of both. Of several pods, all but one have the same number of
/// leaves and, in each plane, as many common uplinks as leaves; the last pod has fewer of both. The last leaf is in the
/// last pod.
fn has_equal_parts(fabric: &Fabric, placement: &Placement, whole_leaves: bool) {
    let leaves = on_leaves(fabric, placement);
    if leaves.len() == 1 {
        assert!(placement.links().is_empty());
        return;
    }
    let mut pods: BTreeMap<u32, Vec<(u32, BTreeSet<u32>)>> = BTreeMap::new();
    for (&leaf, held) in &leaves {
        pods.entry(fabric.parent(1, leaf)).or_default().push(held.clone());
    }
    let (most, set) = leaves.values().max_by_key(|leaf| leaf.0).unwrap();
    assert_eq!(set.len() as u32, *most);
    let is_full = |leaf: &&(u32, BTreeSet<u32>)| leaf.0 == *most;
    let smaller: Vec<_> = leaves.values().filter(|leaf| !is_full(leaf)).collect();
    assert!(leaves.values().filter(is_full).all(|leaf| leaf.1 == *set));
    assert!(smaller.len() < 2, "{leaves:?}");
    for leaf in &smaller {
        assert!(leaf.1.len() as u32 == leaf.0 && leaf.1.is_subset(set), "{leaves:?}");
    }
    let cores = in_pods(fabric, placement);
    if pods.len() == 1 {
        assert!(cores.is_empty());
        return;
    }
    if whole_leaves {
        assert_eq!(*most, fabric.node_range(1, 0).len() as u32);
    }
    let full_leaves = |pod: &[(u32, BTreeSet<u32>)]| pod.iter().filter(is_full).count();
    let broad = pods.values().map(|pod| full_leaves(pod)).max().unwrap();
    let first = &cores[pods.iter().find(|pod| full_leaves(pod.1) == broad).unwrap().0];
    let is_equal = |pod: &[(u32, BTreeSet<u32>)]| full_leaves(pod) == broad && pod.len() == broad;
    assert!(pods.values().filter(|pod| !is_equal(pod)).count() < 2, "{pods:?}");
    for (number, pod) in &pods {
        for plane in 0..fabric.node_range(1, 0).len() as u32 {
            let own = cores
                .get(number)
                .and_then(|planes| planes.get(&plane))
                .cloned()
                .unwrap_or_default();
            let used = pod.iter().filter(|leaf| leaf.1.contains(&plane)).count();
            assert_eq!(
                own.len(),
                used,
                "one uplink of pod {number} for each of a leaf in plane {plane}"
            );
            if is_equal(pod) && set.contains(&plane) {
                assert_eq!(own, first[&plane]);
            }
            assert!(own.is_empty() || own.is_subset(&first[&plane]));
        }
    }
}

/// Jobs that arrive and leave: a size, and possibly which job leaves.
fn traffic() -> impl Strategy<Value = Vec<(u32, Option<Index>)>> {
    prop::collection::vec((1u32..50, prop::option::weighted(0.4, any::<Index>())), 1..60)
}

/// Runs jobs on a machine under a policy and shows every placement with the state before it.
fn play(
    fabric: &Arc<Fabric>,
    policy: &str,
    jobs: &[(u32, Option<Index>)],
    mut show: impl FnMut(&Placement, &Occupancy, &[Placement]),
) {
    let mut occupancy = Occupancy::new(Arc::clone(fabric));
    let mut running: Vec<Placement> = Vec::new();
    for (id, (nodes, leaves)) in (0..).zip(jobs) {
        if let Some(index) = leaves.filter(|_| !running.is_empty()) {
            occupancy.release(&running.swap_remove(index.index(running.len())));
        }
        let size = if nodes % 3 == 0 { *nodes } else { nodes % 9 + 1 };
        if let Ok(placement) = rule(policy).place(&ask(id, size), &occupancy) {
            show(&placement, &occupancy, &running);
            occupancy.claim(&placement).unwrap();
            running.push(placement);
        }
    }
    for placement in &running {
        occupancy.release(placement);
    }
    assert_eq!(seen(&occupancy), seen(&Occupancy::new(Arc::clone(fabric))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    /// Every partition has equal parts; no node or link is held twice; everything is given back.
    #[test]
    fn jobs_get_equal_parts_of_their_own(jobs in traffic(), wide in any::<bool>()) {
        let fabric = full(if wide { [3, 4, 5] } else { [4, 3, 4] });
        for policy in EQUAL {
            play(&fabric, policy, &jobs, |placement, _, running| {
                if policy != "laas" {
                    has_equal_parts(&fabric, placement, policy == "jigsaw");
                }
                let theirs = running.iter().flat_map(Placement::links).collect::<BTreeSet<_>>();
                assert!(placement.links().iter().all(|link| !theirs.contains(link)));
                assert_eq!(placement.bandwidth_share(), 1.0);
            });
        }
    }

    /// Inside a pod, a partition of equal parts is found whenever one exists, compared with all choices of leaves. With
    /// a long queue, `dedicated` gives the same as `jigsaw`.
    #[test]
    fn a_partition_in_a_pod_is_found_if_there_is_one(
        jobs in traffic(),
        nodes in 2u32..14,
    ) {
        let fabric = Arc::new(Fabric::build(&pgft("n", &[4, 4], &[1, 4], &[1; 2])).unwrap());
        let mut states = Vec::new();
        play(&fabric, "dedicated", &jobs, |_, occupancy, _| states.push(occupancy.clone()));
        for occupancy in states.iter().filter(|state| state.idle_nodes() >= nodes) {
            let exists = exists_in_pod(occupancy, nodes);
            let owned = rule("dedicated");
            let long_queue = owned.for_queue_length(256).place(&ask(1, nodes), occupancy).ok();
            let jigsaw = rule("jigsaw").place(&ask(1, nodes), occupancy).ok();
            if occupancy.idle_nodes() < fabric.nodes() {
                prop_assert_eq!(long_queue, jigsaw);
            }
            for policy in EQUAL {
                let found = rule(policy).place(&ask(1, nodes), occupancy).is_ok();
                prop_assert_eq!(found, exists, "{}", policy);
            }
        }
    }

    /// Over several pods, `laas` holds whole leaves, including nodes that the job does not use, and all their uplinks.
    #[test]
    fn laas_holds_whole_leaves_above_a_pod(jobs in traffic()) {
        let fabric = full([4, 3, 4]);
        play(&fabric, "laas", &jobs, |placement, occupancy, _| {
            let pods: BTreeSet<u32> = placement.nodes().iter().map(|&node| fabric.group(2, node)).collect();
            let held: BTreeSet<u32> = placement.held().collect();
            if pods.len() == 1 {
                assert!(placement.spare().is_empty());
                return;
            }
            assert!(placement.spare().len() < 4);
            for (leaf, (_, uplinks)) in on_leaves(&fabric, placement) {
                assert!(fabric.node_range(1, leaf).all(|node| held.contains(&node)));
                assert_eq!(uplinks.len(), 4);
            }
            let mut after = occupancy.clone();
            after.claim(placement).unwrap();
            assert_eq!(after.idle_nodes(), occupancy.idle_nodes() - held.len() as u32);
        });
    }

    /// `quiet-neighborhoods` puts a job into one block: a leaf, an aligned power of two of leaves or of pods, or all of
    /// them. No smaller block could hold it, and no leaf or pod is crossed twice.
    #[test]
    fn quiet_keeps_to_blocks(jobs in traffic()) {
        let fabric = full([4, 5, 4]);
        play(&fabric, "quiet-neighborhoods", &jobs, |placement, occupancy, _| {
            let groups = |level| -> BTreeSet<u32> {
                placement.nodes().iter().map(|&node| fabric.group(level, node)).collect()
            };
            for &(level, group) in placement.crossed() {
                assert_eq!(occupancy.crossing(usize::from(level), group), 0);
            }
            let wanted = placement.nodes().len() as u32;
            let (level, each, all) = match wanted {
                0..=4 => return assert_eq!(groups(1).len(), 1),
                5..=20 => (1, 4, 5),
                _ => (2, 20, 4),
            };
            let size = wanted.div_ceil(each).next_power_of_two();
            let size = if size >= all { all } else { size };
            let in_group = |group: u32| (group % all) / size + group / all * all;
            let blocks: BTreeSet<u32> = groups(level).into_iter().map(in_group).collect();
            assert_eq!(blocks.len(), 1, "{wanted} nodes on {:?}", groups(level));
        });
    }
}

/// Whether a pod can hold `wanted` nodes in equal parts, by trying all choices of planes and of a smaller leaf.
fn exists_in_pod(occupancy: &Occupancy, wanted: u32) -> bool {
    let leaves: Vec<(u32, u64)> = (0..4)
        .map(|leaf| (occupancy.idle_in(1, leaf), occupancy.free_uplink_slots(1, leaf, 0)))
        .collect();
    if leaves.iter().any(|leaf| leaf.0 >= wanted) {
        return true;
    }
    let fits = |leaf: &(u32, u64), nodes: u32, set: u64| leaf.0 >= nodes && leaf.1 & set == set;
    (1..=4u32.min(wanted - 1)).any(|each| {
        let (count, left) = ((wanted / each) as usize, wanted % each);
        let sets = |size: u32| (0..16u64).filter(move |set| set.count_ones() == size);
        sets(each).any(|set| {
            let full = leaves.iter().filter(|leaf| fits(leaf, each, set)).count();
            if left == 0 {
                return full >= count;
            }
            (0..4).any(|last| {
                let part =
                    sets(left).any(|part| part & set == part && fits(&leaves[last], left, part));
                let others = full - usize::from(fits(&leaves[last], each, set));
                part && others >= count
            })
        })
    })
}

/// Two pods of three leaves of 4 nodes. A job of 10 nodes gets 4, 4 and 2 in one pod, the last leaf with two of the
/// others' uplinks. A job of 14 nodes gets 3 leaves of one pod and 2 nodes of the other.
#[test]
fn equal_parts_by_hand() {
    let fabric = full([4, 3, 2]);
    let empty = Occupancy::new(Arc::clone(&fabric));
    let shape = |policy: &str, nodes| {
        let placement = rule(policy).place(&ask(1, nodes), &empty).unwrap();
        let leaves = on_leaves(&fabric, &placement);
        leaves
            .into_iter()
            .map(|(leaf, (nodes, uplinks))| (leaf, nodes, uplinks.len()))
            .collect::<Vec<_>>()
    };
    for policy in EQUAL {
        assert_eq!(shape(policy, 4), [(0, 4, 0)]);
        assert_eq!(shape(policy, 10), [(0, 4, 4), (1, 4, 4), (2, 2, 2)], "{policy}");
    }
    for policy in ["jigsaw", "jigsaw-relaxed"] {
        assert_eq!(shape(policy, 14), [(0, 4, 4), (1, 4, 4), (2, 4, 4), (3, 2, 2)], "{policy}");
    }
    assert_eq!(shape("laas", 14), [(0, 4, 4), (1, 4, 4), (2, 4, 4), (3, 2, 4)]);
}

/// If one node of every leaf is taken, no leaf is whole, so only `jigsaw-relaxed` finds a placement over pods.
#[test]
fn whole_leaves_are_the_restriction_that_relaxed_lifts() {
    let fabric = full([4, 3, 2]);
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    for leaf in 0..6 {
        let one = Placement::new(&fabric, vec![4 * leaf], Share::Whole);
        occupancy.claim(&one).unwrap();
    }
    let found = |policy: &str, nodes| rule(policy).place(&ask(1, nodes), &occupancy).is_ok();
    for (policy, expected) in [("jigsaw", false), ("jigsaw-relaxed", true), ("laas", false)] {
        assert!(found(policy, 9), "{policy}: three nodes on each leaf of a pod");
        assert_eq!(found(policy, 15), expected, "{policy}");
    }
}

/// A pod with free leaves of three, one and one nodes, and nothing else free: the rest is `claimed`, or out of service.
fn three_one_one(claimed: bool) -> Occupancy {
    let fabric = full([4, 4, 2]);
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    for node in (0..fabric.nodes()).filter(|node| ![0, 4, 8, 9, 10].contains(node)) {
        if claimed {
            occupancy.claim(&Placement::new(&fabric, vec![node], Share::Whole)).unwrap();
        } else {
            occupancy.set_in_service(node, false);
        }
    }
    occupancy
}

/// Five nodes on leaves of three, one and one are not equal parts. `dedicated` gives them to a job with 255 jobs
/// waiting, but not with 256, unless the machine is otherwise empty, so that the end of other jobs cannot help.
#[test]
fn among_many_shapes_are_equal_parts() {
    let (rule, request) = (rule("dedicated"), ask(1, 5));
    let busy = three_one_one(true);
    assert!(rule.for_queue_length(255).place(&request, &busy).is_ok());
    assert!(rule.for_queue_length(256).place(&request, &busy).is_err());
    assert!(rule.for_queue_length(256).can_place(&request, &busy).is_err());
    assert!(rule.for_queue_length(256).place(&request, &three_one_one(false)).is_ok());
    let less = Request { min_bandwidth: Some(0.5), ..request };
    assert!(rule.for_queue_length(256).place(&less, &busy).is_ok(), "any shape at half bandwidth");
}

/// The waste of a placement, per node of the job: the nodes with uplinks that other jobs over leaves lose in addition
/// to the job's nodes, plus 4 for a leaf that it breaks into and .02 for each node left on a leaf. On leaves of four
/// nodes and four uplinks it is 0 for a whole leaf, (4 + .02) / 3 for three nodes of one, and (4 + .04) / 6 for six.
#[test]
fn waste_is_what_is_left_behind() {
    let fabric = full([4, 4, 2]);
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    let rule = rule("dedicated");
    let many = rule.for_queue_length(256);
    let waste = |nodes: u32, occupancy: &Occupancy| {
        let request = ask(1, nodes);
        let placement = many.place(&request, occupancy).unwrap();
        let waste = many.waste(&request, &placement, occupancy);
        // The plan has the same waste and leads to the same placement.
        let planned = many.plan(&request, occupancy).unwrap();
        assert_eq!(planned.waste(), waste);
        assert_eq!(*many.carry_out(&planned, &request, occupancy), placement);
        waste
    };
    for (nodes, expected) in [(4, 0.0), (3, 4.02 / 3.0), (6, 4.04 / 6.0), (8, 0.0)] {
        let found = waste(nodes, &occupancy);
        assert!((found - expected).abs() < 1e-12, "{nodes}: {found}");
    }
    // A leaf that is already in use has one node left: a job that gets it wastes nothing.
    occupancy.claim(&many.place(&ask(2, 3), &occupancy).unwrap()).unwrap();
    assert_eq!(waste(1, &occupancy), 0.0);
    // The waste is the same with a short queue.
    let any = rule.for_queue_length(255);
    let request = ask(1, 3);
    let placed = any.place(&request, &occupancy).unwrap();
    let expected = waste(3, &occupancy);
    assert!((any.waste(&request, &placed, &occupancy) - expected).abs() < 1e-12);
    assert!((many.waste(&request, &placed, &occupancy) - expected).abs() < 1e-12);
    // A job that shares nodes, on a leaf without idle nodes, wastes nothing.
    let shared = Placement::new(&fabric, vec![4, 5, 6, 7], Share::part(1, 0));
    occupancy.claim(&shared).unwrap();
    assert_eq!(any.waste(&request, &shared, &occupancy), 0.0);
}
