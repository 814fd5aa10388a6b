//! The policy for groups of virtual machines (hop-byte scheduling in `OpenStack`, 2013).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

mod common;

use std::sync::Arc;

use common::{ask, crowded, one_site, pair_hops, rule, tree, whole};
use proptest::prelude::*;
use topolane_fabric::{Fabric, NodeIndex};
use topolane_placement::{Occupancy, Quality, Request};

/// A bunch as in the paper: hosts under one switch.
#[derive(Clone, Copy)]
struct Bunch {
    free: u32,
    members: u32,
}

/// The algorithm of the paper. Each virtual machine in turn goes to the bunch of greatest weight, where weight =
/// (members there + min(free there, still to place)) x (largest bunch + 1) + members there. Among equal weights it
/// takes the tightest bunch, then the first. Returns the number in each bunch.
fn paper(mut bunches: Vec<Bunch>, largest: u32, wanted: u32) -> Vec<u32> {
    let mut given = vec![0; bunches.len()];
    for left in (1..=wanted).rev() {
        let weight =
            |bunch: Bunch| (bunch.members + bunch.free.min(left)) * (largest + 1) + bunch.members;
        let open = (0..bunches.len()).filter(|&b| bunches[b].free > 0);
        let best =
            open.min_by_key(|&b| (u32::MAX - weight(bunches[b]), bunches[b].free, b)).unwrap();
        bunches[best].free -= 1;
        bunches[best].members += 1;
        given[best] += 1;
    }
    given
}

/// The number of slots of a placement on every leaf.
fn by_leaf(fabric: &Fabric, nodes: &[NodeIndex]) -> Vec<u32> {
    let mut counts = vec![0; fabric.groups(1) as usize];
    for &node in nodes {
        counts[fabric.group(1, node) as usize] += 1;
    }
    counts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// On two levels, `hop-bytes` gives every leaf the same number as the paper's algorithm.
    #[test]
    fn two_levels_are_filled_as_the_paper_lists(
        size in 1u32..7,
        leaves in prop::collection::vec((0u32..7, 0u32..4), 1..7),
        wanted in any::<prop::sample::Index>(),
    ) {
        let fabric = tree(&[size, leaves.len() as u32]);
        let mut occupancy = Occupancy::new(Arc::clone(&fabric));
        let (mut bunches, mut members) = (Vec::new(), Vec::new());
        for (leaf, &(busy, running)) in (0u32..).zip(&leaves) {
            // On each leaf, the first of the busy hosts run members of the group.
            let busy: Vec<u32> = (leaf * size..leaf * size + busy.min(size)).collect();
            occupancy.claim(&whole(&fabric, &busy)).unwrap();
            members.extend(busy.iter().take(running as usize));
            let running = busy.len().min(running as usize) as u32;
            bunches.push(Bunch { free: size - busy.len() as u32, members: running });
        }
        let free: u32 = bunches.iter().map(|bunch| bunch.free).sum();
        prop_assume!(free > 0);
        let wanted = 1 + wanted.index(free as usize) as u32;
        let request = Request { members, ..Request::whole_nodes(0, wanted, 1.0) };
        let placed = rule("hop-bytes").place(&request, &occupancy).unwrap();
        prop_assert_eq!(by_leaf(&fabric, placed.nodes()), paper(bunches, size, wanted));
    }

    /// Moving a virtual machine from the smaller of two bunches to the larger (or between equal ones) always lowers the
    /// sum over pairs, both of hops and of switches on the route. For switches, each pair counts 1 inside a bunch and 3
    /// between bunches: n (n - 1) / 2 inside and 3 n m between.
    #[test]
    fn a_lopsided_pair_of_bunches_beats_an_even_one(larger in 1u32..12, smaller in 1u32..12) {
        let (larger, smaller) = (larger.max(smaller), larger.min(smaller));
        let fabric = tree(&[24, 2]);
        let sums = |a: u32, b: u32| {
            let nodes: Vec<u32> = (0..a).chain(24..24 + b).collect();
            let hops = Quality::of(&fabric, &nodes).pair_hops;
            let switches = hops + f64::from((a + b) * (a + b - 1) / 2);
            let inside = |n: u32| n * n.saturating_sub(1) / 2;
            assert_eq!(switches, f64::from(inside(a) + inside(b) + 3 * a * b));
            (hops, switches)
        };
        let (before, after) = (sums(larger, smaller), sums(larger + 1, smaller - 1));
        prop_assert!(after.0 < before.0 && after.1 < before.1);
    }

    /// If one group of the tree can hold the whole request, the answer is in such a group of the lowest possible level.
    #[test]
    fn the_lowest_group_with_room_holds_it_all(
        machine in one_site(),
        others in prop::collection::vec(ask(), 0..8),
        ask in ask(),
    ) {
        let fabric = machine.fabric();
        let occupancy = crowded(&fabric, &others, &[]);
        let mut request = ask.on(&fabric);
        request.members.clear();
        let Ok(placed) = rule("hop-bytes").place(&request, &occupancy) else { return Ok(()) };
        let free = occupancy.free_slots(&request);
        let lowest = (1..=fabric.depth())
            .find(|&level| (0..fabric.groups(level)).any(|g| free.count(level, g) >= request.nodes))
            .unwrap();
        let first = fabric.group(lowest, placed.nodes()[0]);
        prop_assert!(placed.nodes().iter().all(|&node| fabric.group(lowest, node) == first));
        let tightest = (0..fabric.groups(lowest)).map(|g| free.count(lowest, g));
        let tightest = tightest.filter(|&slots| slots >= request.nodes).min();
        prop_assert_eq!(Some(free.count(lowest, first)), tightest, "and in the tightest");
    }
}

/// Over 300 occupied machines, the heuristic needs fewer hops than first fit in total, and at most 3 % more than the
/// exact optimum.
#[test]
fn the_heuristic_lies_between_first_fit_and_the_optimum() {
    let fabric = tree(&[6, 4, 3]);
    let mut sums = [0u64; 3];
    for seed in 0..300 {
        let mut occupancy = Occupancy::new(Arc::clone(&fabric));
        let busy = Request::whole_nodes(seed, 10 + seed as u32 % 40, 1.0);
        occupancy.claim(&rule("random").place(&busy, &occupancy).unwrap()).unwrap();
        let request = Request::whole_nodes(seed, 2 + seed as u32 % 20, 1.0);
        for (sum, name) in sums.iter_mut().zip(["hop-bytes-exact", "hop-bytes", "first-fit"]) {
            let placed = rule(name).place(&request, &occupancy).unwrap();
            *sum += pair_hops(&fabric, placed.nodes()).unwrap();
        }
    }
    let [exact, heuristic, first_fit] = sums;
    assert!(exact <= heuristic && heuristic < first_fit, "{sums:?}");
    assert!(heuristic as f64 <= 1.03 * exact as f64, "{sums:?}");
}

/// Members attract new ones. With two members on the second leaf and two free nodes on either leaf, the second leaf
/// gets the new ones. If the members' leaf is full, only the first term decides.
#[test]
fn members_pull_newcomers_to_their_leaf() {
    let fabric = tree(&[4, 3]);
    let mut occupancy = Occupancy::new(Arc::clone(&fabric));
    occupancy.claim(&whole(&fabric, &[0, 1, 4, 5])).unwrap();
    let mut request = Request { members: vec![4, 5], ..Request::whole_nodes(0, 2, 1.0) };
    let placed = |request: &Request, occupancy: &Occupancy| {
        rule("hop-bytes").place(request, occupancy).unwrap().nodes().to_vec()
    };
    assert_eq!(placed(&request, &occupancy), [6, 7]);
    request.nodes = 3;
    assert_eq!(placed(&request, &occupancy), [2, 6, 7], "then the tightest");
    occupancy.claim(&whole(&fabric, &[6, 7])).unwrap();
    assert_eq!(placed(&request, &occupancy), [8, 9, 10], "one leaf holds all three");
}
