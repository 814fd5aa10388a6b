//! Slots given one at a time, owned links, and spread placements.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

mod common;

use std::sync::Arc;

use common::{pair_hops, rule, tree};
use proptest::prelude::*;
use topolane_fabric::{Fabric, NodeIndex};
use topolane_placement::{Occupancy, Placement, Refusal, Request, Share};

/// A small tree with jobs, as numbers that proptest can shrink.
#[derive(Debug, Clone)]
struct Scene {
    children: Vec<u32>,
    /// The free slots of every node; longer lists are cut off.
    slots: Vec<u32>,
    members: Vec<u32>,
    /// Other groups as node lists, and whether they own their links and have members beyond the machine.
    others: Vec<(Vec<u32>, bool, bool)>,
    /// The number of members beyond the machine.
    beyond: u32,
    wanted: u32,
}

fn scene() -> impl Strategy<Value = Scene> {
    let children = prop_oneof![Just(vec![3, 4]), Just(vec![3, 2, 2]), Just(vec![2, 3, 2])];
    let others = prop::collection::vec(
        (prop::collection::vec(0u32..12, 1..4), any::<bool>(), prop::bool::weighted(0.2)),
        0..4,
    );
    let slots = prop::collection::vec(0u32..2, 12);
    let beyond = prop_oneof![4 => Just(0u32), 1 => 1u32..3];
    (children, slots, prop::collection::vec(0u32..12, 0..4), others, 1u32..6, beyond).prop_map(
        |(children, slots, members, others, wanted, beyond)| Scene {
            children,
            slots,
            members,
            others,
            beyond,
            wanted,
        },
    )
}

impl Scene {
    fn fabric(&self) -> Arc<Fabric> {
        tree(&self.children)
    }

    fn request(&self, stacked: bool) -> Request {
        let slots = self.slots.iter().map(|&slots| if stacked { 2 * slots } else { slots });
        Request {
            members: self.members.clone(),
            beyond: self.beyond,
            slots: Some(slots.collect()),
            stacked,
            ..Request::whole_nodes(0, self.wanted, 1.0)
        }
    }

    fn occupancy(&self) -> Occupancy {
        let fabric = self.fabric();
        let mut occupancy = Occupancy::new(Arc::clone(&fabric));
        for (nodes, owns, beyond) in &self.others {
            let share = Share::part(0, 0);
            let placement = Placement::new(&fabric, nodes.clone(), share).isolated(*owns);
            let reaching = placement.clone().reaching_beyond(&fabric);
            occupancy.overlay(if *beyond { &reaching } else { &placement });
        }
        occupancy
    }
}

/// All ways to take the slots, each as a list of nodes.
fn all_ways(request: &Request) -> Vec<Vec<NodeIndex>> {
    let slots = request.slots.as_ref().unwrap();
    let mut ways = vec![Vec::new()];
    for (node, &most) in (0..).zip(slots.iter()) {
        let longer = |way: &Vec<NodeIndex>| -> Vec<Vec<NodeIndex>> {
            let room = (request.nodes as usize - way.len()).min(most as usize);
            (0..=room).map(|n| [way.clone(), vec![node; n]].concat()).collect()
        };
        ways = ways.iter().flat_map(longer).collect();
    }
    ways.retain(|way| way.len() == request.nodes as usize);
    ways
}

/// Whether the members and the new slots avoid crossing any group that is `taken` by another job, except groups that
/// the members alone already cross.
fn keeps_off(
    fabric: &Fabric,
    request: &Request,
    way: &[NodeIndex],
    taken: impl Fn(usize, u32) -> bool,
) -> bool {
    let crosses = |nodes: &[NodeIndex], level: usize, group: u32| {
        let inside = nodes.iter().filter(|&&node| fabric.group(level, node) == group).count();
        let all = nodes.len() + request.beyond as usize;
        0 < inside && inside < all
    };
    let all = with_members(request, way);
    (usize::from(!request.stacked)..=fabric.depth()).all(|level| {
        (0..fabric.groups(level)).all(|group| {
            !crosses(&all, level, group)
                || crosses(&request.members, level, group)
                || !taken(level, group)
        })
    })
}

fn with_members(request: &Request, way: &[NodeIndex]) -> Vec<NodeIndex> {
    [&request.members[..], way].concat()
}

/// Gives slots one after another, each on the node of least cost, as for a driver that asks for one at a time.
fn incremental(name: &str, request: &Request, occupancy: &Occupancy) -> Option<Vec<NodeIndex>> {
    let mut request = request.clone();
    let mut given = Vec::new();
    for left in (1..=request.nodes).rev() {
        request.nodes = left;
        let costs = rule(name).weigh(&request, occupancy).ok()?;
        let best = (0..costs.len()).min_by(|&a, &b| costs[a].total_cmp(&costs[b])).unwrap();
        assert!(costs[best].is_finite());
        let mut slots = request.slots.as_ref().unwrap().to_vec();
        slots[best] -= 1;
        request.slots = Some(slots.into());
        request.members.push(best as NodeIndex);
        given.push(best as NodeIndex);
    }
    Some(given)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Among all ways in which no two placements cross the same group (`isolated-hop-bytes`), or which avoid owned
    /// groups (`hop-bytes-exact`), the answer has the smallest sum of hops over pairs, including members. The policy
    /// refuses exactly if there is no such way.
    #[test]
    fn the_best_of_all_allowed_ways(scene in scene(), stacked in any::<bool>()) {
        let (fabric, occupancy, request) = (scene.fabric(), scene.occupancy(), scene.request(stacked));
        let ways = all_ways(&request);
        for (name, isolates) in [("isolated-hop-bytes", true), ("hop-bytes-exact", false)] {
            let taken = |level: usize, group| {
                if isolates { occupancy.crossing(level, group) > 0 } else { occupancy.isolated_crossing(level, group) > 0 }
            };
            let hops = |way: &Vec<NodeIndex>| pair_hops(&fabric, &with_members(&request, way)).unwrap();
            let allowed = ways.iter().filter(|way| {
                keeps_off(&fabric, &request, way, taken)
            });
            let least = allowed.map(hops).min();
            match rule(name).place(&request, &occupancy) {
                Ok(placed) => {
                    let all = with_members(&request, placed.nodes());
                    prop_assert!(keeps_off(&fabric, &request, placed.nodes(), taken), "{name}");
                    prop_assert_eq!(pair_hops(&fabric, &all), least, "{}", name);
                }
                Err(Refusal::WouldShareLinks { .. }) => prop_assert_eq!(least, None),
                Err(_) => prop_assert!(ways.is_empty()),
            }
        }
    }

    /// The cost of a node is finite exactly if some allowed way has a slot there. The nodes of least cost are those
    /// from which the smallest number of hops can still be reached.
    #[test]
    fn costs_tell_what_each_node_leads_to(scene in scene()) {
        let (fabric, occupancy, request) = (scene.fabric(), scene.occupancy(), scene.request(false));
        let Ok(costs) = rule("isolated-hop-bytes").weigh(&request, &occupancy) else { return Ok(()) };
        let taken = |level: usize, group| occupancy.crossing(level, group) > 0;
        let hops = |way: &Vec<NodeIndex>| pair_hops(&fabric, &with_members(&request, way)).unwrap();
        let mut ways = all_ways(&request);
        ways.retain(|way| keeps_off(&fabric, &request, way, taken));
        let through = |node: usize| {
            ways.iter().filter(|way| way.contains(&(node as NodeIndex))).map(hops).min()
        };
        for a in 0..costs.len() {
            prop_assert_eq!(costs[a].is_finite(), through(a).is_some());
            for b in (0..costs.len()).filter(|&b| through(a).is_some() && through(b) > through(a)) {
                prop_assert!(costs[a] < costs[b], "node {} before {}", a, b);
            }
        }
    }

    /// Giving slots one after another, each where it costs least, ends with as few hops as placing all at once.
    #[test]
    fn incremental_is_as_good_as_all_at_once(scene in scene(), stacked in any::<bool>()) {
        let (fabric, occupancy, request) = (scene.fabric(), scene.occupancy(), scene.request(stacked));
        for name in ["hop-bytes-exact", "isolated-hop-bytes", "spread"] {
            let at_once = rule(name).place(&request, &occupancy).ok();
            let stepwise = incremental(name, &request, &occupancy);
            let hops = |nodes: &[NodeIndex]| pair_hops(&fabric, &with_members(&request, nodes));
            prop_assert_eq!(at_once.map(|p| hops(p.nodes())), stepwise.map(|nodes| hops(&nodes)), "{}", name);
        }
    }

    /// `spread` separates pairs as far as possible: no other way has a larger sum of hops.
    #[test]
    fn spread_is_as_far_apart_as_can_be(scene in scene()) {
        let (fabric, occupancy, request) = (scene.fabric(), scene.occupancy(), scene.request(false));
        let hops = |way: &Vec<NodeIndex>| pair_hops(&fabric, &with_members(&request, way)).unwrap();
        let most = all_ways(&request).iter().map(hops).max();
        let placed = rule("spread").place(&request, &occupancy).ok();
        prop_assert_eq!(placed.map(|p| hops(&p.nodes().to_vec())), most);
    }

    /// Each host has the weight (members of its bunch + min(free there, awaiting)) x (largest bunch + 1) + members
    /// there. `bunch` gives each virtual machine in turn to the first host of greatest weight.
    #[test]
    fn bunch_is_the_listing(scene in scene()) {
        let (fabric, occupancy) = (scene.fabric(), scene.occupancy());
        let mut request = scene.request(false);
        let placed = rule("bunch").place(&request, &occupancy).ok();
        let largest = scene.children[0];
        let mut by_hand = Vec::new();
        for awaiting in (1..=scene.wanted).rev() {
            request.nodes = awaiting;
            let slots = request.slots.clone().unwrap();
            let Ok(costs) = rule("bunch").weigh(&request, &occupancy) else { break };
            let weight = |node: NodeIndex| {
                let bunch = fabric.node_range(1, fabric.group(1, node));
                let free: u32 = bunch.clone().map(|host| slots[host as usize]).sum();
                let members = request.members.iter().filter(|member| bunch.contains(member)).count() as u32;
                (members + free.min(awaiting)) * (largest + 1) + members
            };
            let open: Vec<NodeIndex> = (0..fabric.nodes()).filter(|&node| slots[node as usize] > 0).collect();
            for &node in &open {
                prop_assert_eq!(costs[node as usize], -f64::from(weight(node)));
            }
            let best = *open.iter().rev().max_by_key(|&&node| weight(node)).unwrap();
            let mut slots = slots.to_vec();
            slots[best as usize] -= 1;
            request.slots = Some(slots.into());
            request.members.push(best);
            by_hand.push(best);
        }
        by_hand.sort_unstable();
        prop_assert_eq!(placed.map_or(Vec::new(), |p| p.nodes().to_vec()), by_hand);
    }
}

/// Among placements with equal hops, the tightest is taken: a leaf with just enough slots before a larger one of lower
/// index, and the last free leaf of a pod before an unused pod.
#[test]
fn of_equals_the_tightest() {
    let fabric = tree(&[4, 2, 2]);
    let occupancy = Occupancy::new(Arc::clone(&fabric));
    let placed = |slots: &[u32], wanted| {
        let request = Request { slots: Some(slots.into()), ..Request::whole_nodes(0, wanted, 1.0) };
        rule("hop-bytes-exact").place(&request, &occupancy).unwrap().nodes().to_vec()
    };
    assert_eq!(placed(&[1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1], 3), [4, 5, 6]);
    assert_eq!(placed(&[1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1], 4), [12, 13, 14, 15]);
}

/// A large group of stacked slots on a deep machine is placed without overflow of the costs.
#[test]
fn a_crowd_is_placed_on_a_deep_machine() {
    let fabric = tree(&[1, 10, 10, 10, 2]);
    let occupancy = Occupancy::new(Arc::clone(&fabric));
    let slots: Arc<[u32]> = vec![1; 2_000].into();
    let request =
        Request { slots: Some(slots), stacked: true, ..Request::whole_nodes(0, 1_990, 1.0) };
    assert!(rule("hop-bytes-exact").place(&request, &occupancy).is_ok());
}

/// With several slots per node, among equal hops the way with the fewest pairs on different nodes is taken.
#[test]
fn stacked_members_share_nodes() {
    let fabric = tree(&[4, 2]);
    let occupancy = Occupancy::new(Arc::clone(&fabric));
    let slots: Arc<[u32]> = Arc::from([1, 1, 3, 1, 2, 2, 2, 2]);
    let request = Request {
        slots: Some(slots),
        stacked: true,
        members: vec![3],
        ..Request::whole_nodes(0, 3, 1.0)
    };
    let placed = rule("hop-bytes-exact").place(&request, &occupancy).unwrap();
    assert_eq!(placed.nodes(), [2, 2, 2], "one node for the three, whose leaf has the member");
}
