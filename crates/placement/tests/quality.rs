//! The hops of a placement, the least possible value, and the policy that reaches it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

mod common;

use common::{
    Machine, ask, build, choices, crowded, machine, pair_hops, regular, rule, slots, tree,
};
use proptest::prelude::*;
use proptest::sample::Index;
use topolane_fabric::{Fabric, preset};
use topolane_placement::{Occupancy, Quality, Request, least_aph};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The hop-bytes for one byte between every pair are the sum of hops over unordered pairs, with 0 for slots on one
    /// node. APH is that sum divided by n (n - 1) / 2, for any order of the nodes.
    #[test]
    fn quality_is_the_sum_over_pairs(
        machine in machine(),
        nodes in prop::collection::vec(any::<Index>(), 1..12),
    ) {
        let fabric = machine.fabric();
        let nodes: Vec<u32> = nodes.iter().map(|node| node.index(fabric.nodes() as usize) as u32).collect();
        let Some(sum) = pair_hops(&fabric, &nodes) else { return Ok(()) };
        let quality = Quality::of(&fabric, &nodes);
        prop_assert_eq!(quality.pair_hops, sum as f64);
        let pairs = nodes.len() * (nodes.len() - 1) / 2;
        prop_assert_eq!(quality.aph, if pairs == 0 { 0.0 } else { sum as f64 / pairs as f64 });
    }

    /// On a tree with groups of equal size, `least_aph` is the minimum over all choices of n nodes. On any other
    /// connected machine it is an upper bound of the minimum.
    #[test]
    fn least_aph_is_the_least_on_regular_trees(machine in regular()) {
        let fabric = machine.fabric();
        prop_assume!(fabric.nodes() <= 9);
        let least = least_aph(&fabric);
        prop_assert_eq!(least.len(), fabric.nodes() as usize);
        for (n, &least) in (1..).zip(&least) {
            let all = choices(&vec![1; fabric.nodes() as usize], n);
            let best = all.iter().map(|nodes| Quality::of(&fabric, nodes).aph).fold(f64::MAX, f64::min);
            prop_assert!((best - least).abs() < 1e-12, "{} nodes: {} and {}", n, best, least);
        }
    }

    /// On a connected machine, no policy has fewer hops than `hop-bytes-exact` finds on the empty machine. On regular
    /// trees this equals `least_aph`.
    #[test]
    fn least_aph_is_what_the_exact_policy_reaches(machine in machine(), nodes in any::<Index>()) {
        let fabric = machine.fabric();
        prop_assume!(fabric.is_connected());
        let n = 1 + nodes.index(fabric.nodes() as usize) as u32;
        let exact = rule("hop-bytes-exact").place(&Request::whole_nodes(0, n, 1.0), &Occupancy::new(fabric.clone()));
        let exact = Quality::of(&fabric, exact.unwrap().nodes()).aph;
        let least = least_aph(&fabric)[n as usize - 1];
        let chain = fabric.sites() > 2;
        prop_assert!(least >= exact - 1e-12 || chain, "the bound {} is below the optimum {}", least, exact);
        if matches!(machine, Machine::Regular(_)) {
            prop_assert!((least - exact).abs() < 1e-12);
        }
    }

    /// `hop-bytes-exact` reaches the smallest sum of hops over all pairs of members, running and new, over all choices
    /// of free slots: whole, shared or stacked. Exact on one site and on two.
    #[test]
    fn the_exact_policy_is_exact(
        machine in machine(),
        others in prop::collection::vec(ask(), 0..5),
        ask in ask(),
    ) {
        let fabric = machine.fabric();
        prop_assume!(fabric.nodes() <= 12 && fabric.sites() <= 2 && fabric.is_connected());
        let occupancy = crowded(&fabric, &others, &[]);
        let mut request = ask.on(&fabric);
        request.nodes = 1 + ask.nodes.index(5) as u32;
        let Ok(placed) = rule("hop-bytes-exact").place(&request, &occupancy) else { return Ok(()) };
        let free: Vec<u32> = (0..fabric.nodes()).map(|node| slots(&occupancy, &request, node)).collect();
        let cost = |nodes: &[u32]| {
            let all: Vec<u32> = nodes.iter().chain(&request.members).copied().collect();
            pair_hops(&fabric, &all).unwrap()
        };
        let best = choices(&free, request.nodes).iter().map(|nodes| cost(nodes)).min().unwrap();
        prop_assert_eq!(cost(placed.nodes()), best);
        for name in ["first-fit", "hop-bytes", "slurm-tree", "scattered"] {
            let other = rule(name).place(&request, &occupancy).unwrap();
            prop_assert!(cost(other.nodes()) >= best, "{} beats the optimum", name);
        }
    }
}

/// Cab: one leaf holds 18 nodes (0 hops), one pod 324. With 19 nodes, 18 pairs are 2 apart: 36 / 171. With 325, 324
/// pairs are 4 apart, and pairs on different leaves of the pod 2.
#[test]
fn least_aph_of_cab_by_hand() {
    let fabric = Fabric::build(&preset("cab").unwrap().unwrap()).unwrap();
    let least = least_aph(&fabric);
    assert_eq!(least[17], 0.0);
    assert!((least[18] - 36.0 / 171.0).abs() < 1e-12);
    let in_pod = f64::from(18 * 17 / 2 * 18 * 18 * 2);
    assert!((least[324] - (in_pod + 4.0 * 324.0) / f64::from(325 * 324 / 2)).abs() < 1e-12);
}

/// Between a long and a short branch: two links up on the long side, one down on the short side. Over the WAN: up to
/// the core on both sides, and one link between.
#[test]
fn hops_over_padding_and_wan_by_hand() {
    let fabric = build(&[vec![(vec![2, 1], false), (vec![1], true)], vec![(vec![1], true)]], true);
    // Nodes 0, 1 and 2 are in the pod, 2 on its own leaf; 3 is on the short branch; 4 is at the other site.
    for (nodes, hops) in [([0, 1], 0.0), ([0, 2], 2.0), ([0, 3], 3.0), ([3, 4], 3.0), ([0, 4], 4.0)]
    {
        assert_eq!(Quality::of(&fabric, &nodes).pair_hops, hops, "{nodes:?}");
    }
    assert_eq!(Quality::of(&fabric, &[4, 0, 3]).aph, 10.0 / 3.0);
    assert_eq!(
        Quality::of(&tree(&[2, 2]), &[0, 0, 0, 2]).pair_hops,
        6.0,
        "three slots on one node"
    );
}
