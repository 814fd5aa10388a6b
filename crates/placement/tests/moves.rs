//! Moves of running members: their result, and that no job is worse off in between.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

mod common;

use std::collections::HashSet;
use std::sync::Arc;

use common::{pair_hops, tree};
use proptest::prelude::*;
use topolane_fabric::{Fabric, NodeIndex};
use topolane_placement::{MemberMove, Occupancy, Placement, RunningGroup, Share, moves};

/// The nodes after every move, starting with the initial ones. Checks that each move starts where the member is and
/// ends on a slot that is free at that moment.
fn way(members: &[NodeIndex], slots: &[u32], steps: &[MemberMove]) -> Vec<Vec<NodeIndex>> {
    let (mut nodes, mut slots) = (members.to_vec(), slots.to_vec());
    let mut way = vec![nodes.clone()];
    for step in steps {
        assert_eq!(nodes[step.member], step.from);
        assert!(slots[step.to as usize] > 0, "the slot is free");
        slots[step.to as usize] -= 1;
        slots[step.from as usize] += 1;
        nodes[step.member] = step.to;
        way.push(nodes.clone());
    }
    way
}

/// All sets of `count` of the `open` nodes.
fn sets(open: &[NodeIndex], count: usize) -> Vec<Vec<NodeIndex>> {
    let mut sets: Vec<Vec<NodeIndex>> = vec![Vec::new()];
    for &node in open {
        let longer: Vec<Vec<NodeIndex>> = sets
            .iter()
            .filter(|set| set.len() < count)
            .map(|set| [&set[..], &[node]].concat())
            .collect();
        sets.extend(longer);
    }
    sets.retain(|set| set.len() == count);
    sets
}

/// The number of other jobs' groups that are crossed.
fn shared(fabric: &Fabric, occupancy: &Occupancy, nodes: &[NodeIndex]) -> usize {
    let mut shared = 0;
    for level in 1..=fabric.depth() {
        for group in 0..fabric.groups(level) {
            let inside = nodes.iter().filter(|&&node| fabric.group(level, node) == group).count();
            let crossed = inside > 0 && inside < nodes.len();
            shared += usize::from(crossed && occupancy.crossing(level, group) > 0);
        }
    }
    shared
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The moves end where the sum of hops plus `price` per move is smallest over all possible sets of nodes, unless
    /// every way there passes through a placement worse than the first. No move leaves the group worse off than at the
    /// start, or on more links of others.
    #[test]
    fn the_least_sum_of_hops_and_price(
        children in prop_oneof![Just(vec![3u32, 4]), Just(vec![3, 2, 2])],
        picks in prop::collection::vec(0u32..3, 12),
        crossing in prop::collection::vec(prop::collection::vec(0u32..12, 2..4), 0..2),
        price in 1u32..8,
        isolates in any::<bool>(),
    ) {
        let fabric = tree(&children);
        let mut occupancy = Occupancy::new(Arc::clone(&fabric));
        for nodes in &crossing {
            let share = Share::part(0, 0);
            occupancy.overlay(&Placement::new(&fabric, nodes.clone(), share));
        }
        let of = |kind| (0..12).filter(move |&node| picks[node as usize] == kind);
        let (members, free): (Vec<u32>, Vec<u32>) = (of.clone()(1).collect(), of(2).collect());
        prop_assume!(members.len() > 1);
        let slots: Vec<u32> = (0..12).map(|node| u32::from(free.contains(&node))).collect();
        let group = RunningGroup { members: &members, fixed: &[], slots: &slots, stacked: false, isolates };
        let steps = moves(group, &occupancy, price);

        let hops = |nodes: &[NodeIndex]| pair_hops(&fabric, nodes).unwrap();
        let bad = |nodes: &[NodeIndex]| {
            (if isolates { shared(&fabric, &occupancy, nodes) } else { 0 }, hops(nodes))
        };
        let way = way(&members, &slots, &steps);
        for (step, pair) in steps.iter().zip(way.windows(2)) {
            prop_assert_eq!((step.before, step.after), (hops(&pair[0]) as f64, hops(&pair[1]) as f64));
        }
        prop_assert!(way.iter().all(|nodes| bad(nodes) <= bad(&members)));

        let arrivals = |nodes: &[NodeIndex]| nodes.iter().filter(|node| !members.contains(node)).count() as u64;
        let cost = |nodes: &[NodeIndex]| hops(nodes) + u64::from(price) * arrivals(nodes);
        let open = [&members[..], &free[..]].concat();
        let all = sets(&open, members.len());
        let allowed = all.iter().filter(|nodes| !isolates || shared(&fabric, &occupancy, nodes) == 0);
        let least = allowed.map(|nodes| cost(nodes)).min();
        let reached = cost(way.last().unwrap());
        match least {
            Some(least) if bad(&members).0 == 0 => prop_assert!(reached >= least && reached <= cost(&members)),
            _ => {}
        }
        // On two levels, a better leaf attracts members one by one, so a way always exists.
        if let (Some(least), 2, false) = (least, children.len(), isolates) {
            let alone = steps.is_empty() || bad(way.last().unwrap()) <= bad(&members);
            prop_assert!(alone && (reached == least || passes_worse(&fabric, &members, &free, least, &cost)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    /// No member moves twice in one plan, because the driver that carries it out identifies a move by its member.
    /// Each move is to a slot that is free at that moment.
    #[test]
    fn a_member_moves_once(
        members in prop::collection::vec(0u32..16, 3..8),
        slots in prop::collection::vec(0u32..3, 16),
        crossing in prop::collection::vec(prop::collection::vec(0u32..16, 2..4), 0..3),
        price in 1u32..6,
        isolates in any::<bool>(),
    ) {
        let fabric = tree(&[4, 2, 2]);
        let mut occupancy = Occupancy::new(Arc::clone(&fabric));
        for nodes in &crossing {
            occupancy.overlay(&Placement::new(&fabric, nodes.clone(), Share::part(0, 0)));
        }
        let group =
            RunningGroup { members: &members, fixed: &[], slots: &slots, stacked: true, isolates };
        let steps = moves(group, &occupancy, price);
        way(&members, &slots, &steps);
        let moved: HashSet<usize> = steps.iter().map(|step| step.member).collect();
        prop_assert_eq!(moved.len(), steps.len());
    }
}

/// Whether every set of least cost can only be reached through placements worse than the start, in any order of single
/// moves.
fn passes_worse(
    fabric: &Fabric,
    members: &[NodeIndex],
    free: &[NodeIndex],
    least: u64,
    cost: &dyn Fn(&[NodeIndex]) -> u64,
) -> bool {
    let hops = |nodes: &[NodeIndex]| pair_hops(fabric, nodes).unwrap();
    let start = hops(members);
    let mut seen = vec![members.to_vec()];
    let mut next = 0;
    let all = [members, free].concat();
    while next < seen.len() {
        let nodes = seen[next].clone();
        next += 1;
        if cost(&nodes) == least {
            return false;
        }
        for index in 0..nodes.len() {
            for &to in all.iter().filter(|to| !nodes.contains(to)) {
                let mut moved = nodes.clone();
                moved[index] = to;
                moved.sort_unstable();
                // No member moves twice: each goes directly to its final node.
                if hops(&moved) <= start && !seen.contains(&moved) {
                    seen.push(moved);
                }
            }
        }
    }
    true
}

/// Eight members are on one leaf and two elsewhere, with free slots for both next to the eight. Two moves are made; the
/// first gains 2 x (8 - 1) hops. At a price above the gain, no member moves.
#[test]
fn stragglers_come_home() {
    let fabric = tree(&[10, 4]);
    let occupancy = Occupancy::new(Arc::clone(&fabric));
    let members: Vec<u32> = (0..8).chain([10, 11]).collect();
    let slots: Vec<u32> = (0..40).map(|node| u32::from(!members.contains(&node))).collect();
    let group = RunningGroup {
        members: &members,
        fixed: &[],
        slots: &slots,
        stacked: false,
        isolates: false,
    };
    let steps = moves(group, &occupancy, 1);
    let gains: Vec<f64> = steps.iter().map(|step| step.before - step.after).collect();
    assert_eq!(gains, [14.0, 18.0]);
    assert_eq!(steps.iter().map(|step| step.to).collect::<Vec<_>>(), [8, 9]);
    assert!(moves(group, &occupancy, 17).is_empty());
}

/// A member that must stay attracts the others to its leaf.
#[test]
fn who_stays_is_joined() {
    let fabric = tree(&[4, 3]);
    let occupancy = Occupancy::new(Arc::clone(&fabric));
    let slots: Vec<u32> = (0..12).map(|node| u32::from(![0, 4].contains(&node))).collect();
    let group =
        RunningGroup { members: &[0], fixed: &[4], slots: &slots, stacked: false, isolates: false };
    let steps = moves(group, &occupancy, 1);
    assert_eq!(steps.iter().map(|step| (step.from, step.to)).collect::<Vec<_>>(), [(0, 5)]);
}

/// A group that isolates leaves links that another job crosses, even if that costs hops.
#[test]
fn foreign_links_are_left() {
    let fabric = tree(&[4, 3]);
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    let share = Share::part(0, 0);
    occupancy.overlay(&Placement::new(&fabric, vec![0, 4], share));
    let members = [1, 2, 5];
    let slots: Vec<u32> = (0..12).map(|node| u32::from(![0, 1, 2, 4, 5].contains(&node))).collect();
    let group = |isolates| RunningGroup {
        members: &members,
        fixed: &[],
        slots: &slots,
        stacked: false,
        isolates,
    };
    let ends =
        |isolates| way(&members, &slots, &moves(group(isolates), &occupancy, 1)).pop().unwrap();
    assert_eq!(shared(&fabric, &occupancy, &ends(true)), 0);
    assert_eq!(ends(false), [1, 2, 3]);
}
