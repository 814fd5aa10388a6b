//! What holds for every routing, and what holds for each of them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::HashSet;
use std::sync::Arc;

use common::{machine, mark_missing, small_tree};
use proptest::prelude::*;
use topolane_fabric::{
    Channel, Description, Direction, Fabric, Link, MissingCable, ROUTINGS, Routing, fat_tree, pgft,
    routing,
};

/// A switch, or a node at level 0: the level, the group, and the number among the group's parallel switches.
type Switch = (usize, u32, u32);

fn build(description: &Description) -> Arc<Fabric> {
    Arc::new(Fabric::build(description).unwrap())
}

fn by_name(name: &str, fabric: &Arc<Fabric>) -> Box<dyn Routing> {
    routing(name, fabric, 7).unwrap()
}

fn pairs(fabric: &Fabric) -> impl Iterator<Item = (u32, u32)> + use<> {
    let nodes = fabric.nodes();
    (0..nodes).flat_map(move |a| (0..nodes).map(move |b| (a, b)))
}

fn path(routing: &dyn Routing, (a, b): (u32, u32)) -> Option<Vec<Channel>> {
    let mut path = Vec::new();
    routing.path(a, b, &mut path).ok().map(|()| path)
}

/// The route on one rail, on which all its links are.
fn rail_path(routing: &dyn Routing, pair: (u32, u32), rail: u32) -> Vec<Channel> {
    let mut path = Vec::new();
    routing.rail_path(pair, (rail, rail), &mut path).unwrap();
    path
}

/// The links of the channels of a static route, one for each channel.
fn links(routing: &dyn Routing, path: &[Channel]) -> Vec<Link> {
    path.iter().flat_map(|&channel| routing.links(channel)).collect()
}

/// The lower and the upper end of a cable of the tree.
fn ends(fabric: &Fabric, cable: u32) -> Option<(Switch, Switch)> {
    let (level, group, switch, parent, _) = fabric.cable_place(cable)?;
    let parents = fabric.cabling(fabric.site_of_group(level, group), level).parents;
    let above = (level + 1, fabric.parent(level, group), switch * parents + parent);
    Some(((level, group, switch), above))
}

/// The switches of level `top` to which a node can climb over existing cables.
fn reached(fabric: &Fabric, node: u32, top: usize) -> HashSet<Switch> {
    let mut reached = HashSet::from([(0, node, 0)]);
    for level in 0..top {
        let cables = fabric.uplinks(level, fabric.group(level, node));
        let there = cables.filter(|&cable| fabric.has_cable(cable));
        let climbed = there.filter_map(|cable| ends(fabric, cable));
        reached = climbed.filter(|(low, _)| reached.contains(low)).map(|(_, high)| high).collect();
    }
    reached
}

/// A tree of one site, with some cables missing.
fn broken_tree() -> impl Strategy<Value = Description> {
    let missing = prop::collection::vec(any::<prop::sample::Index>(), 0..8);
    (small_tree("a"), missing).prop_map(|(mut machine, missing)| {
        for which in missing {
            mark_missing(&mut machine, which);
        }
        machine
    })
}

/// The number of flows on the busiest channel when every node sends to the node `by` further on.
fn most_under_shift(routing: &dyn Routing, by: u32) -> u32 {
    let nodes = routing.fabric().nodes();
    let mut flows = vec![0; routing.channels() as usize];
    for from in 0..nodes {
        for channel in path(routing, (from, (from + by) % nodes)).unwrap() {
            flows[channel as usize] += 1;
        }
    }
    flows.into_iter().max().unwrap()
}

proptest! {
    // Every case tries all pairs.
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// A route that uses no missing cable is the same as on the whole machine, where it is found without a search.
    #[test]
    fn a_missing_cable_elsewhere_changes_no_way(tree in small_tree("a"), which: prop::sample::Index) {
        let whole = build(&tree);
        let mut damaged = tree;
        mark_missing(&mut damaged, which);
        let damaged = build(&damaged);
        let missing: Vec<Channel> =
            damaged.missing_cables().iter().flat_map(|cable| [2 * cable, 2 * cable + 1]).collect();
        for name in ["d-mod-k", "s-mod-k", "random"] {
            let (on_whole, on_damaged) = (by_name(name, &whole), by_name(name, &damaged));
            for pair in pairs(&whole) {
                let way = path(&*on_whole, pair).expect("a whole tree joins all nodes");
                if way.iter().all(|channel| !missing.contains(channel)) {
                    prop_assert_eq!(Some(way), path(&*on_damaged, pair), "{} {:?}", name, pair);
                }
                for rail in 0..whole.rails(0) {
                    let way = rail_path(&*on_whole, pair, rail);
                    if way.iter().all(|channel| !missing.contains(channel)) {
                        prop_assert_eq!(&way, &rail_path(&*on_damaged, pair, rail), "{}", rail);
                    }
                }
            }
        }
    }

    /// A route goes up, then over WAN links if the sites differ, then down. It begins and ends with the links of its
    /// two nodes. It has hops + 2 channels, and each of them has bandwidth.
    #[test]
    fn every_way_climbs_and_descends(description in machine()) {
        let fabric = build(&description);
        for info in ROUTINGS.iter().filter(|info| info.wirings.contains(&"tree")) {
            let routing = topolane_fabric::routing(info.name, &fabric, 7).unwrap();
            for (a, b) in pairs(&fabric) {
                let Some(path) = path(&*routing, (a, b)) else { continue };
                if a == b {
                    prop_assert!(path.is_empty());
                    continue;
                }
                prop_assert_eq!(Some(path.len() as u32), fabric.hops(a, b).map(|hops| hops + 2));
                prop_assert!(path.iter().all(|&channel| routing.capacity(channel) > 0.0));
                let first_links: Vec<Link> =
                    path.iter().map(|&channel| routing.links(channel)[0]).collect();
                let wans: Vec<bool> =
                    first_links.iter().map(|l| fabric.cable_place(l.cable).is_none()).collect();
                let tree = first_links.iter().zip(&wans).filter(|(_, wan)| !**wan);
                let ways: Vec<Direction> = tree.map(|(link, _)| link.direction).collect();
                prop_assert!(ways.is_sorted(), "down before up: {:?}", ways);
                let same_site = fabric.common_level(a, b).is_some();
                prop_assert_eq!(wans.iter().any(|&wan| wan), !same_site);
                let node_of = |link: &Link| fabric.cable_place(link.cable).map(|p| (p.0, p.1));
                prop_assert_eq!(node_of(&first_links[0]), Some((0, a)));
                prop_assert_eq!(node_of(first_links.last().unwrap()), Some((0, b)));
            }
        }
    }

    /// Every link of a static route begins at the switch at which the link before it ended.
    #[test]
    fn static_ways_are_contiguous(description in broken_tree()) {
        let fabric = build(&description);
        for name in ["d-mod-k", "s-mod-k", "random"] {
            let routing = by_name(name, &fabric);
            for (a, b) in pairs(&fabric) {
                let Some(path) = path(&*routing, (a, b)) else { continue };
                let mut at = (0, a, 0);
                for link in links(&*routing, &path) {
                    prop_assert!(fabric.has_cable(link.cable));
                    let (low, high) = ends(&fabric, link.cable).unwrap();
                    let up = link.direction == Direction::Up;
                    let (tail, head) = if up { (low, high) } else { (high, low) };
                    prop_assert_eq!(at, tail);
                    at = head;
                }
                prop_assert_eq!(at, (0, b, 0));
            }
        }
    }

    /// Whatever cables are missing, a route is found exactly if there is one: if both nodes can climb to the same
    /// switch of the lowest group that holds both.
    #[test]
    fn a_way_is_found_exactly_where_there_is_one(description in broken_tree()) {
        let fabric = build(&description);
        for name in ["d-mod-k", "s-mod-k", "random", "adaptive"] {
            let routing = by_name(name, &fabric);
            for (a, b) in pairs(&fabric) {
                let top = fabric.common_level(a, b).unwrap();
                let there = !reached(&fabric, a, top).is_disjoint(&reached(&fabric, b, top));
                prop_assert_eq!(path(&*routing, (a, b)).is_some(), there, "{} {} {}", name, a, b);
            }
        }
    }

    /// On a whole tree the route of s-mod-k is the route of d-mod-k from the other end, reversed.
    #[test]
    fn s_mod_k_is_d_mod_k_turned_round(description in small_tree("a")) {
        let fabric = build(&description);
        let (by_source, by_destination) = (by_name("s-mod-k", &fabric), by_name("d-mod-k", &fabric));
        for (a, b) in pairs(&fabric) {
            let there = path(&*by_source, (a, b)).unwrap();
            let mut back = path(&*by_destination, (b, a)).unwrap();
            back.reverse();
            // The other direction of a channel has the neighbouring number.
            prop_assert_eq!(there, back.iter().map(|channel| channel ^ 1).collect::<Vec<_>>());
        }
    }

    /// A channel of `adaptive` has the summed bandwidth of its links. The link at each place of a static route is in
    /// the channel at the same place of the adaptive route.
    #[test]
    fn adaptive_bundles_what_static_ways_choose_from(description in machine()) {
        let fabric = build(&description);
        let (adaptive, fixed) = (by_name("adaptive", &fabric), by_name("random", &fabric));
        for channel in 0..adaptive.channels() {
            let sum: f64 =
                adaptive.links(channel).iter().map(|link| fabric.bandwidth(link.cable)).sum();
            prop_assert!((adaptive.capacity(channel) - sum).abs() <= 1e-12 * sum);
        }
        for pair in pairs(&fabric) {
            let Some(chosen) = path(&*fixed, pair) else { continue };
            let bundles = path(&*adaptive, pair).unwrap();
            prop_assert_eq!(bundles.len(), chosen.len());
            for (bundle, link) in bundles.iter().zip(links(&*fixed, &chosen)) {
                prop_assert!(adaptive.links(*bundle).contains(&link));
            }
        }
    }
}

/// Zahavi 2010: d-mod-k carries every shift of all nodes of a full tree without contention, one
/// flow a channel, with parallel switches and with parallel cables.
#[test]
fn d_mod_k_carries_shifts_without_contention_on_full_trees() {
    let trees = [
        fat_tree(4, 4).unwrap(),
        fat_tree(8, 8).unwrap(),
        pgft("cables", &[4, 4, 4], &[1, 2, 4], &[1, 2, 2]),
        pgft("two", &[6, 5], &[1, 3], &[1, 2]),
    ];
    for tree in &trees {
        let fabric = build(tree);
        for name in ["d-mod-k", "s-mod-k"] {
            let routing = by_name(name, &fabric);
            for by in 1..fabric.nodes() {
                let most = most_under_shift(&*routing, by);
                assert_eq!(most, 1, "{name} on {}, shift by {by}", tree.name);
            }
        }
    }
}

/// Random routes are worse: some shift puts two flows on one channel.
#[test]
fn random_ways_contend_under_shifts() {
    let routing = by_name("random", &build(&fat_tree(8, 8).unwrap()));
    assert!((1..128).any(|by| most_under_shift(&*routing, by) > 1));
}

/// The same seed gives the same routes, and another seed gives others.
#[test]
fn random_ways_follow_their_seed() {
    let fabric = build(&fat_tree(8, 8).unwrap());
    let all = |seed| {
        let routing = routing("random", &fabric, seed).unwrap();
        pairs(&fabric).map(|pair| path(&*routing, pair).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(all(1), all(1));
    let (one, two) = (all(1), all(2));
    let same = one.iter().zip(&two).filter(|(a, b)| a == b).count();
    // Pairs on one leaf have only one route. Of the others, 1 in 4 or 1 in 16 agree by chance.
    assert!(same < one.len() / 4, "{same} of {} ways agree", one.len());
}

/// Of n pairs over P ports, each port carries n / P, within five standard deviations of a binomial draw.
#[test]
fn random_ways_spread_over_all_ports() {
    let fabric = build(&pgft("wide", &[16, 8], &[1, 4], &[1, 2]));
    let routing = by_name("random", &fabric);
    let mut flows = vec![0u32; routing.channels() as usize];
    for pair in pairs(&fabric) {
        for channel in path(&*routing, pair).unwrap() {
            flows[channel as usize] += 1;
        }
    }
    let crossing = 16.0 * 112.0;
    let (mean, deviation) = (crossing / 8.0, (crossing / 8.0 * 7.0 / 8.0f64).sqrt());
    for cable in (0..fabric.groups(1)).flat_map(|leaf| fabric.uplinks(1, leaf)) {
        for channel in [2 * cable, 2 * cable + 1] {
            let off = (f64::from(flows[channel as usize]) - mean).abs();
            assert!(off < 5.0 * deviation, "channel {channel}: {}", flows[channel as usize]);
        }
    }
}

/// Two leaves have two cables each to one switch above. Leaf 0 has lost its first cable and leaf 1 its second. So the
/// route goes up over the cable that leaf 0 has and down over the one that leaf 1 has.
#[test]
fn the_ways_up_and_down_need_not_be_the_same_parallel_cable() {
    let mut tree = pgft("two", &[1, 2], &[1, 1], &[1, 2]);
    for (group, cable) in [(0, 0), (1, 1)] {
        let place = MissingCable { level: 1, group, switch: 0, parent: 0, cable };
        tree.sites[0].missing.push(place);
    }
    let fabric = build(&tree);
    let up = fabric.cable(1, 0, 0, 0, 1).unwrap();
    let down = fabric.cable(1, 1, 0, 0, 0).unwrap();
    for name in ["d-mod-k", "s-mod-k", "random"] {
        let routing = by_name(name, &fabric);
        let links = links(&*routing, &path(&*routing, (0, 1)).unwrap());
        let cables: Vec<u32> = links.iter().map(|link| link.cable).collect();
        assert_eq!(cables[1..3], [up, down], "{name}");
    }
}
