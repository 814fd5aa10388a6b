//! The occupancy compared with a model that counts everything from scratch.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;

use common::{machine, seen};
use proptest::prelude::*;
use proptest::sample::Index;
use topolane_fabric::{Fabric, NodeIndex};
use topolane_placement::{Occupancy, Placement, Share};

/// Which placement holds what, as plain lists.
#[derive(Clone)]
struct Model {
    fabric: Arc<Fabric>,
    held: Vec<(Vec<NodeIndex>, Share)>,
    out: BTreeSet<NodeIndex>,
}

impl Model {
    fn on(&self, node: NodeIndex) -> impl Iterator<Item = Share> + '_ {
        let slots = move |(nodes, share): &(Vec<NodeIndex>, Share)| {
            vec![share.clone(); nodes.iter().filter(|&&other| other == node).count()]
        };
        self.held.iter().flat_map(slots)
    }

    /// Free cores and memory; none if a slot takes the whole node.
    fn free(&self, node: NodeIndex) -> (u32, u64) {
        let kind = self.fabric.kind(node);
        self.on(node).fold((kind.cores(), kind.memory), |(cores, memory), share| match share {
            Share::Whole => (0, 0),
            Share::Part(taken) => (cores - taken.cores() as u32, memory - taken.memory()),
        })
    }

    /// Whether all these slots can be taken.
    fn takes(&self, nodes: &[NodeIndex], share: &Share, in_service_or_not: bool) -> bool {
        nodes.iter().collect::<BTreeSet<_>>().into_iter().all(|&node| {
            let slots = nodes.iter().filter(|&&other| other == node).count();
            let free = self.free(node);
            (in_service_or_not || !self.out.contains(&node))
                && match share {
                    Share::Whole => slots == 1 && self.on(node).count() == 0,
                    Share::Part(amounts) => {
                        let (cores, memory) = (amounts.cores() as u32, amounts.memory());
                        let alone = self.on(node).all(|other| other != Share::Whole);
                        let slots = slots as u32;
                        alone && free.0 >= cores * slots && free.1 >= memory * u64::from(slots)
                    }
                }
        })
    }

    /// The number of placements with nodes inside and outside the group. For a node, only placements of several nodes
    /// that share it.
    fn crossing(&self, level: usize, group: u32) -> u32 {
        let crosses = |(nodes, share): &&(Vec<NodeIndex>, Share)| {
            let inside = |&&node: &&NodeIndex| self.fabric.group(level, node) == group;
            let within = nodes.iter().filter(inside).count();
            within > 0 && within < nodes.len() && (level > 0 || *share != Share::Whole)
        };
        self.held.iter().filter(crosses).count() as u32
    }

    fn agrees_with(&self, occupancy: &Occupancy) {
        let fabric = &self.fabric;
        let idle = |node: &NodeIndex| self.on(*node).count() == 0 && !self.out.contains(node);
        for node in 0..fabric.nodes() {
            assert_eq!(occupancy.held(node) as usize, self.on(node).count(), "node {node}");
            assert_eq!(occupancy.cores_free(node), self.free(node).0, "node {node}");
            if self.on(node).all(|share| share != Share::Whole) {
                assert_eq!(occupancy.memory_free(node), self.free(node).1, "node {node}");
            }
            assert_eq!(occupancy.idle().contains(node), idle(&node));
            assert_eq!(occupancy.in_service().contains(node), !self.out.contains(&node));
        }
        for level in 0..=fabric.depth() {
            for group in 0..fabric.groups(level) {
                let count = fabric.node_range(level, group).filter(idle).count() as u32;
                assert!(level == 0 || occupancy.idle_in(level, group) == count);
                let crossing = self.crossing(level, group);
                assert_eq!(occupancy.crossing(level, group), crossing, "{level} {group}");
            }
        }
        assert_eq!(occupancy.idle_nodes(), (0..fabric.nodes()).filter(idle).count() as u32);
    }
}

fn has_twice(nodes: &[NodeIndex]) -> bool {
    nodes.iter().collect::<BTreeSet<_>>().len() < nodes.len()
}

/// There is room exactly if the slots can be claimed and, for an isolated placement, no other job crosses the same
/// groups.
fn has_room_as(model: &Model, occupancy: &Occupancy, slots: &(Vec<NodeIndex>, Share), fits: bool) {
    let (nodes, share) = slots;
    let fabric = &model.fabric;
    let placed = Placement::new(fabric, nodes.clone(), share.clone());
    assert_eq!(occupancy.has_room_for(&placed), fits);
    let of_both = |level: usize, group: u32| {
        let alone = Model { held: vec![slots.clone()], ..model.clone() };
        alone.crossing(level, group) > 0 && model.crossing(level, group) > 0
    };
    let shares = (0..=fabric.depth())
        .any(|level| (0..fabric.groups(level)).any(|group| of_both(level, group)));
    assert_eq!(occupancy.has_room_for(&placed.isolated(true)), fits && !shares);
}

#[derive(Debug, Clone)]
enum Step {
    Claim(Vec<Index>, Share),
    Adopt(Vec<Index>, Share),
    Release(Index),
    InService(Index, bool),
    /// Releases, then claims, which are all undone.
    WhatIf(Vec<Index>, Vec<(Vec<Index>, Share)>),
}

fn share() -> impl Strategy<Value = Share> {
    let part = (0u32..4, 0u64..6);
    prop_oneof![
        Just(Share::Whole),
        part.prop_map(|(cores, gib)| Share::part(cores.max(1), gib << 30)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let nodes = || prop::collection::vec(any::<Index>(), 1..5);
    let ending = prop::collection::vec(any::<Index>(), 0..4);
    let starting = prop::collection::vec((nodes(), share()), 0..4);
    prop_oneof![
        4 => (nodes(), share()).prop_map(|(nodes, share)| Step::Claim(nodes, share)),
        1 => (nodes(), share()).prop_map(|(nodes, share)| Step::Adopt(nodes, share)),
        2 => any::<Index>().prop_map(Step::Release),
        1 => (any::<Index>(), any::<bool>()).prop_map(|(node, on)| Step::InService(node, on)),
        2 => (ending, starting).prop_map(|(ending, starting)| Step::WhatIf(ending, starting)),
    ]
}

/// Makes a step in the model and in the occupancy, and checks that both allow it or both refuse.
fn walk(step: &Step, model: &mut Model, occupancy: &mut Occupancy) {
    let fabric = Arc::clone(&model.fabric);
    let on = |nodes: &[Index]| -> Vec<u32> {
        nodes.iter().map(|node| node.index(fabric.nodes() as usize) as u32).collect()
    };
    let placement =
        |(nodes, share): &(Vec<u32>, Share)| Placement::new(&fabric, nodes.clone(), share.clone());
    let before = seen(occupancy);
    match step {
        Step::Claim(nodes, share) | Step::Adopt(nodes, share) => {
            let adopted = matches!(step, Step::Adopt(..));
            let slots = (on(nodes), share.clone());
            let fits = model.takes(&slots.0, share, adopted);
            let placed = placement(&slots);
            let is_sound = *share != Share::Whole || !has_twice(&slots.0);
            if !adopted && is_sound {
                has_room_as(model, occupancy, &slots, fits);
            }
            let done = if adopted { occupancy.adopt(&placed) } else { occupancy.claim(&placed) };
            assert_eq!(done.is_ok(), fits, "{step:?}");
            if fits {
                model.held.push(slots);
            } else {
                assert_eq!(seen(occupancy), before, "a failed claim changes nothing");
            }
        }
        Step::Release(which) if !model.held.is_empty() => {
            let which = which.index(model.held.len());
            occupancy.release(&placement(&model.held.swap_remove(which)));
        }
        Step::Release(_) => {}
        Step::InService(node, on) => {
            let node = node.index(fabric.nodes() as usize) as u32;
            occupancy.set_in_service(node, *on);
            if *on {
                model.out.remove(&node)
            } else {
                model.out.insert(node)
            };
        }
        Step::WhatIf(ending, starting) => {
            let mut inside = model.clone();
            let mut what_if = occupancy.what_if();
            for which in ending.iter().filter(|_| !model.held.is_empty()) {
                if inside.held.is_empty() {
                    break;
                }
                let which = which.index(inside.held.len());
                what_if.release(Arc::new(placement(&inside.held.swap_remove(which))));
            }
            for (nodes, share) in starting {
                let slots = (on(nodes), share.clone());
                let fits = inside.takes(&slots.0, share, false);
                assert_eq!(what_if.claim(Arc::new(placement(&slots))).is_ok(), fits);
                inside.held.extend(fits.then_some(slots));
            }
            inside.agrees_with(&what_if);
            drop(what_if);
            assert_eq!(seen(occupancy), before, "what was tried is undone");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Free cores and memory, idle nodes and crossings always equal those counted from the list of placements. A claim
    /// succeeds exactly if every slot fits; a failed claim changes nothing; everything in a `what_if` is undone; no
    /// core is given twice.
    #[test]
    fn occupancy_counts_as_the_model_does(
        machine in machine(),
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let fabric = machine.fabric();
        let mut occupancy = Occupancy::new(Arc::clone(&fabric));
        let mut model = Model { fabric, held: Vec::new(), out: BTreeSet::new() };
        for step in &steps {
            walk(step, &mut model, &mut occupancy);
            model.agrees_with(&occupancy);
        }
        let mut copy = Occupancy::new(Arc::clone(&model.fabric));
        copy.clone_from(&occupancy);
        prop_assert_eq!(seen(&copy), seen(&occupancy));
        for (nodes, share) in std::mem::take(&mut model.held) {
            occupancy.release(&Placement::new(&model.fabric, nodes, share));
        }
        for node in 0..model.fabric.nodes() {
            occupancy.set_in_service(node, true);
        }
        prop_assert_eq!(seen(&occupancy), seen(&Occupancy::new(Arc::clone(&model.fabric))));
    }

    /// A placement crosses exactly the groups of level 1 and above that hold some but not all of its nodes.
    #[test]
    fn crossed_groups_are_those_with_nodes_inside_and_outside(
        machine in machine(),
        nodes in prop::collection::vec(any::<Index>(), 1..8),
    ) {
        let fabric = machine.fabric();
        let nodes: Vec<u32> = nodes.iter().map(|node| node.index(fabric.nodes() as usize) as u32).collect();
        let mut expected = Vec::new();
        for level in 1..=fabric.depth() {
            for group in 0..fabric.groups(level) {
                let within = nodes.iter().filter(|&&node| fabric.group(level, node) == group).count();
                if within > 0 && within < nodes.len() {
                    expected.push((level as u8, group));
                }
            }
        }
        let placement = Placement::new(&fabric, nodes, Share::Whole);
        prop_assert_eq!(placement.crossed(), &expected[..]);
    }
}

/// A node held whole has no slot left, not even for a share without cores.
#[test]
fn a_node_held_whole_has_no_slot_left() {
    let fabric = common::tree(&[2, 2]);
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    occupancy.claim(&common::whole(&fabric, &[0])).unwrap();
    for memory in [0, 1 << 20] {
        let guest = Placement::new(&fabric, vec![0], Share::part(0, memory));
        assert!(!occupancy.fits(0, guest.share()));
        assert!(occupancy.claim(&guest).is_err());
    }
}

/// Two slots of one placement on a node count as one crossing of its link, and only if the placement also has other
/// nodes.
#[test]
fn a_stacked_placement_crosses_its_nodes_once() {
    let fabric = common::tree(&[2, 2]);
    let share = Share::part(2, 0);
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    occupancy.claim(&Placement::new(&fabric, vec![0, 0, 1], share.clone())).unwrap();
    occupancy.claim(&Placement::new(&fabric, vec![3, 3], share)).unwrap();
    assert_eq!([0, 1, 3].map(|node| occupancy.crossing(0, node)), [1, 1, 0]);
    assert_eq!(occupancy.crossing(1, 0), 0, "both nodes are on one leaf");
}
