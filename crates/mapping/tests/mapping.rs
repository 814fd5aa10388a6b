//! Mappings are bijections, are never worse than rank order, and cost what they report.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

#[path = "../../placement/tests/common/mod.rs"]
mod common;

use common::{machine, one_site, tree};
use proptest::prelude::*;
use proptest::sample::Index;
use topolane_fabric::{Fabric, NodeIndex};
use topolane_mapping::{EFFORTS, Effort, Links, MappingSettings, assign, map};
use topolane_traffic::{Traffic, TrafficEntry};

/// Traffic of this many ranks, made of the drawn pairs.
fn traffic(ranks: u32, pairs: &[(Index, Index, f64)]) -> Traffic {
    let rank = |index: &Index| index.index(ranks as usize) as u32;
    let entry = |(from, to, bytes): &(Index, Index, f64)| TrafficEntry {
        from: rank(from),
        to: rank(to),
        bytes: *bytes,
        messages: 1.0,
    };
    Traffic::new(ranks, pairs.iter().map(entry)).unwrap()
}

fn pairs() -> impl Strategy<Value = Vec<(Index, Index, f64)>> {
    prop::collection::vec((any::<Index>(), any::<Index>(), 0.0..1e6f64), 0..80)
}

/// The sum over the entries of links crossed times bytes.
fn hop_bytes(
    fabric: &Fabric,
    links: Links,
    traffic: &Traffic,
    node: impl Fn(u32) -> NodeIndex,
) -> f64 {
    let cost = |entry: &TrafficEntry| {
        let (a, b) = (node(entry.from), node(entry.to));
        let node_links = if links == Links::All && a != b { 2 } else { 0 };
        f64::from(fabric.hops(a, b).unwrap() + node_links) * entry.bytes
    };
    traffic.entries().iter().map(cost).sum()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs())
}

fn links() -> impl Strategy<Value = Links> {
    prop_oneof![Just(Links::BetweenSwitches), Just(Links::All)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// On any machine, with any ranks per node and any order of slots, every rank has a slot and no slot is taken
    /// twice. The reported hop-bytes are those computed from traffic and fabric, their split by hops adds up, and they
    /// are no more than in rank order.
    #[test]
    fn a_mapping_is_one_and_costs_what_it_says(
        machine in machine(),
        per_node in 1u32..4,
        idle_slots in any::<Index>(),
        pairs in pairs(),
        links in links(),
        effort in 0usize..2,
        seed in any::<u64>(),
    ) {
        let fabric = machine.fabric();
        prop_assume!(fabric.is_connected());
        // The nodes go in reverse, so that slots are not in the order of the fabric.
        let nodes: Vec<NodeIndex> = (0..fabric.nodes()).rev()
            .flat_map(|node| std::iter::repeat_n(node, per_node as usize)).collect();
        let ranks = nodes.len() - idle_slots.index(nodes.len());
        let traffic = traffic(ranks as u32, &pairs);
        let search = MappingSettings { effort: EFFORTS[effort].1, seed, threads: 1, links };
        let mapping = map(&fabric, &nodes, &traffic, search).unwrap();
        prop_assert_eq!(mapping.slots.len(), ranks);
        let mut slots = mapping.slots.clone();
        slots.sort_unstable();
        slots.dedup();
        prop_assert_eq!(slots.len(), ranks);
        let node = |rank: u32| nodes[mapping.slots[rank as usize] as usize];
        prop_assert!(close(mapping.hop_bytes, hop_bytes(&fabric, links, &traffic, node)));
        let in_order = hop_bytes(&fabric, links, &traffic, |rank| nodes[rank as usize]);
        prop_assert!(close(mapping.rank_order, in_order));
        prop_assert!(mapping.hop_bytes <= mapping.rank_order);
        let split = |bytes: fn(&topolane_mapping::Crossed) -> f64| -> (f64, f64) {
            let rows = mapping.crossed.iter();
            let hops = rows.clone().map(|row| f64::from(row.hops.unwrap_or(0)) * bytes(row)).sum();
            (hops, rows.map(bytes).sum())
        };
        let (before, after) = (split(|row| row.rank_order), split(|row| row.mapped));
        prop_assert!(close(before.0, mapping.rank_order) && close(after.0, mapping.hop_bytes));
        prop_assert!(close(before.1, traffic.bytes()) && close(after.1, traffic.bytes()));
    }

    /// The answer depends on the seed, not on the number of threads.
    #[test]
    fn threads_do_not_change_the_answer(machine in one_site(), pairs in pairs(), seed in any::<u64>()) {
        let fabric = machine.fabric();
        let nodes: Vec<NodeIndex> = (0..fabric.nodes()).collect();
        let traffic = traffic(nodes.len() as u32, &pairs);
        let with = |threads| {
            let search = MappingSettings { effort: Effort::Eco, seed, threads, ..MappingSettings::default() };
            map(&fabric, &nodes, &traffic, search).unwrap()
        };
        let one = with(1);
        for threads in [2, 3, 8] {
            prop_assert_eq!(&one, &with(threads));
        }
    }

    /// With eight slots, `strong` finds the optimum of a search over all 8! orders.
    #[test]
    fn strong_is_optimal_on_tiny_machines(pairs in pairs(), links in links()) {
        let fabric = tree(&[2, 2, 2]);
        let traffic = traffic(8, &pairs);
        let nodes: Vec<NodeIndex> = (0..8).collect();
        let mut least = f64::INFINITY;
        let mut order: Vec<NodeIndex> = nodes.clone();
        permute(&mut order, 0, &mut |order| {
            least = least.min(hop_bytes(&fabric, links, &traffic, |rank| order[rank as usize]));
        });
        let search = MappingSettings { effort: Effort::Strong, links, ..MappingSettings::default() };
        let mapping = map(&fabric, &nodes, &traffic, search).unwrap();
        prop_assert!(close(mapping.hop_bytes, least), "{} but {least}", mapping.hop_bytes);
    }
}

/// Calls `visit` with every order of `items`.
fn permute(items: &mut [u32], fixed: usize, visit: &mut impl FnMut(&[u32])) {
    if fixed == items.len() {
        return visit(items);
    }
    for next in fixed..items.len() {
        items.swap(fixed, next);
        permute(items, fixed + 1, visit);
        items.swap(fixed, next);
    }
}

/// 64 ranks talk in pairs that rank order always parts. The best mapping puts every pair on a leaf, at 0 hops.
#[test]
fn pairs_come_together() {
    let fabric = tree(&[4, 4, 4]);
    let nodes: Vec<NodeIndex> = (0..64).collect();
    let pair = |rank: u32| TrafficEntry { from: rank, to: rank + 32, bytes: 1.0, messages: 1.0 };
    let traffic = Traffic::new(64, (0..32).map(pair)).unwrap();
    for &(name, effort) in EFFORTS {
        let mapping = map(
            &fabric,
            &nodes,
            &traffic,
            MappingSettings { effort, ..MappingSettings::default() },
        )
        .unwrap();
        assert_eq!((mapping.rank_order, mapping.hop_bytes), (128.0, 0.0), "{name}");
    }
}

/// Of mappings with equal hop-bytes, the one with more bytes inside nodes is chosen.
#[test]
fn of_equals_the_one_inside_nodes() {
    let fabric = tree(&[4, 2]);
    let nodes: Vec<NodeIndex> = (0..4).flat_map(|node| [node, node]).collect();
    let pair = |rank: u32| TrafficEntry { from: rank, to: rank + 4, bytes: 1.0, messages: 1.0 };
    let traffic = Traffic::new(8, (0..4).map(pair)).unwrap();
    let mapping = map(&fabric, &nodes, &traffic, MappingSettings::default()).unwrap();
    assert_eq!(mapping.hop_bytes, 0.0);
    let inside: Vec<_> = mapping.crossed.iter().filter(|row| row.hops.is_none()).collect();
    assert_eq!((inside[0].rank_order, inside[0].mapped), (0.0, 4.0));
}

/// With the most and the least bytes that are allowed, the search ends, and pairs still come together.
#[test]
fn extreme_bytes_are_mapped() {
    let fabric = tree(&[2, 2, 2]);
    let nodes: Vec<NodeIndex> = (0..8).collect();
    for bytes in [1e30, 1e-30] {
        let pair = |rank: u32| TrafficEntry { from: rank, to: rank + 4, bytes, messages: 1.0 };
        let traffic = Traffic::new(8, (0..4).map(pair)).unwrap();
        let mapping = map(&fabric, &nodes, &traffic, MappingSettings::default()).unwrap();
        assert_eq!(mapping.hop_bytes, 0.0, "{bytes}");
    }
}

#[test]
fn what_cannot_be_mapped_is_refused() {
    let fabric = tree(&[2, 2]);
    let traffic = Traffic::new(3, []).unwrap();
    let says = |nodes: &[NodeIndex]| {
        map(&fabric, nodes, &traffic, MappingSettings::default()).unwrap_err().message
    };
    assert_eq!(says(&[0, 1]), "the traffic is that of 3 ranks, but there are 2 slots");
    assert_eq!(says(&[0, 1, 4]), "node 4 is not on the machine");
}

/// nug12 (Nugent, Vollmann & Ruml 1968): 12 items on a grid of 3 x 4 with Manhattan distances;
/// the optimum is 578 (QAPLIB, Burkard, Karisch & Rendl 1997).
#[test]
fn nug12_is_solved() {
    let rows = [
        "0 5 2 4 1 0 0 6 2 1 1 1",
        "5 0 3 0 2 2 2 0 4 5 0 0",
        "2 3 0 0 0 0 0 5 5 2 2 2",
        "4 0 0 0 5 2 2 10 0 0 5 5",
        "1 2 0 5 0 10 0 0 0 5 1 1",
        "0 2 0 2 10 0 5 1 1 5 4 0",
        "0 2 0 2 0 5 0 10 5 2 3 3",
        "6 0 5 10 0 1 10 0 0 0 5 0",
        "2 4 5 0 0 1 5 0 0 0 10 10",
        "1 5 2 0 5 5 2 0 0 0 5 0",
        "1 0 2 5 1 4 3 5 10 5 0 2",
        "1 0 2 5 1 0 3 0 10 0 2 0",
    ];
    let flow: Vec<f64> =
        rows.iter().flat_map(|row| row.split(' ').map(|v| v.parse::<f64>().unwrap())).collect();
    let at = |place: i32| (place / 4, place % 4);
    let distance: Vec<f64> = (0..12)
        .flat_map(|a| (0..12).map(move |b| (at(a), at(b))))
        .map(|(a, b)| f64::from((a.0 - b.0).abs() + (a.1 - b.1).abs()))
        .collect();
    let search = MappingSettings { effort: Effort::Strong, ..MappingSettings::default() };
    let found = assign(12, &flow, &distance, search).unwrap();
    let mut value = 0.0;
    for a in 0..12 {
        for b in 0..12 {
            let places = (found.places[a] as usize, found.places[b] as usize);
            value += flow[a * 12 + b] * distance[places.0 * 12 + places.1];
        }
    }
    assert_eq!((value, found.value), (578.0, 578.0));
}
