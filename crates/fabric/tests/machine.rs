//! The machine model: counts, hops, numbers of cables, routes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "common/uneven.rs"]
mod uneven_trees;

use common::machine;
use proptest::prelude::*;
use topolane_fabric::{
    Cabling, Description, Direction, Fabric, MissingCable, NodeKind, PRESETS, SiteDescription,
    WanDescription, fat_tree, pgft, preset,
};
use uneven_trees::{leaf, over};

fn build(description: &Description) -> Fabric {
    Fabric::build(description).unwrap()
}

fn known(name: &str) -> Fabric {
    build(&preset(name).unwrap().unwrap())
}

#[test]
fn presets_have_the_published_counts() {
    for (name, nodes, leaves, pods, core) in [
        ("cab", 1296, 72, 4, 36),
        ("pinot", 2592, 144, 8, 108),
        ("sc18-network", 10_648, 484, 22, 242),
        ("fat-tree(radix=16)", 1024, 128, 16, 64),
        ("fat-tree(radix=22)", 2662, 242, 22, 121),
        ("fat-tree( radix=28 , )", 5488, 392, 28, 196),
        ("fat-tree(radix=16, pods=2)", 128, 16, 2, 64),
    ] {
        let fabric = known(name);
        let groups = [fabric.nodes(), fabric.groups(1), fabric.groups(2), fabric.width(0, 3)];
        assert_eq!(groups, [nodes, leaves, pods, core], "{name}");
    }
    for (name, _) in PRESETS {
        assert!(name.contains('(') || preset(name).is_some_and(|machine| machine.is_ok()));
    }
}

#[test]
fn a_rack_of_nvl72_is_a_domain_of_72_gpus_on_a_leaf_of_each_rail() {
    for (name, units) in [("nvl72-5000", 35), ("nvl72(units=2)", 2), ("nvl72(units=1)", 1)] {
        let fabric = known(name);
        assert_eq!((fabric.nodes(), fabric.domains()), (144 * units, 8 * units), "{name}");
        let gpus = fabric.resources().index("gpu:gb200").unwrap();
        for domain in 0..fabric.domains() {
            let nodes = fabric.domain_nodes(domain);
            let leaf = fabric.node_range(1, fabric.group(1, nodes[0]));
            assert_eq!(nodes, leaf.collect::<Vec<_>>());
            assert_eq!(nodes.iter().map(|&node| fabric.counts(node)[gpus]).sum::<u64>(), 72);
        }
        // At full bisection every level has a cable for each of the four adapters of its nodes.
        for level in 0..fabric.depth() {
            let cables: u32 = (0..fabric.groups(level))
                .map(|group| fabric.uplinks(level, group).len() as u32)
                .sum();
            assert_eq!(cables, 4 * fabric.nodes(), "{name}, level {level}");
        }
    }
}

#[test]
fn presets_refuse_what_is_out_of_range() {
    assert!(preset("no-such-machine").is_none());
    for name in [
        "fat-tree()",
        "fat-tree(radix=15)",
        "fat-tree(radix=130)",
        "fat-tree(radix=x)",
        "fat-tree(radix=4, pods=5)",
        "fat-tree(radix=4, pods=0)",
        "fat-tree(4)",
        "nvl72()",
        "nvl72(units=0)",
        "nvl72(units=65)",
        "nvl72(racks=8)",
    ] {
        assert!(preset(name).unwrap().is_err(), "{name}");
    }
    assert_eq!(fat_tree(4, 4).unwrap().sites[0].cabling.len(), 3);
}

#[test]
fn every_port_of_cab_is_used() {
    // A switch of a group of n children has n * cables ports down, and its uplinks up. The core has 36 switches, each
    // with 9 cables to one switch of every pod.
    let cab = known("cab");
    for level in 1..=3 {
        for group in 0..cab.groups(level) {
            let width = cab.width(0, level);
            let down: u32 = cab
                .children(level, group)
                .map(|child| cab.uplinks(level - 1, child).len() as u32)
                .sum();
            let up = if level < 3 { cab.uplinks(level, group).len() as u32 } else { 0 };
            assert_eq!(down % width, 0);
            assert_eq!(down / width + up / width, 36, "level {level}, group {group}");
        }
    }
}

#[test]
fn hops_of_cab_are_0_in_a_leaf_2_in_a_pod_4_across() {
    let cab = known("cab");
    for (a, b, hops) in [(0, 0, 0), (0, 17, 0), (0, 18, 2), (0, 323, 2), (0, 324, 4), (1295, 0, 4)]
    {
        assert_eq!(cab.hops(a, b), Some(hops));
        assert_eq!(cab.group(1, a), a / 18, "nodes are numbered in leaf order");
        assert_eq!(cab.group(2, a), a / 324);
    }
    assert_eq!(cab.node_named("cab325"), Some(324));
    assert_eq!(cab.node_range(2, 1), 324..648);
}

/// Several sites of different depth. In the first, a leaf hangs right under the core, a shorter branch than the other.
fn uneven() -> Description {
    let cabling = |parents, cables| Cabling::new(parents, cables, 1e9);
    let tall = over("tall", vec![over("pod", vec![leaf("a", 2), leaf("b", 3)]), leaf("c", 1)]);
    let short = over("short", vec![leaf("d", 2), leaf("e", 2)]);
    let site = |root, cabling| SiteDescription { root, cabling, missing: Vec::new() };
    Description {
        name: "uneven".to_owned(),
        sites: vec![
            site(tall, vec![cabling(1, 1), cabling(2, 1), cabling(2, 3)]),
            site(short, vec![cabling(1, 1), cabling(3, 2)]),
            site(leaf("f", 1), vec![cabling(1, 1)]),
        ],
        wans: vec![WanDescription {
            between: ("short".to_owned(), "tall".to_owned()),
            latency: 0.0,
            bandwidth: 1e9,
        }],
        kinds: vec![NodeKind::default()],
        domains: Vec::new(),
        ..Description::default()
    }
}

#[test]
fn padding_costs_no_hop() {
    let fabric = build(&uneven());
    let n = |name: &str| fabric.node_named(name).unwrap();
    let hops = |a: &str, b: &str| fabric.hops(n(a), n(b));
    assert!(fabric.is_padded());
    assert_eq!(hops("an0", "bn2"), Some(2));
    assert_eq!(hops("an0", "cn0"), Some(3), "two links up to the core, one down to the leaf");
    assert_eq!(hops("dn0", "en1"), Some(2));
    assert_eq!(hops("dn0", "an0"), Some(1 + 1 + 2), "up, over the WAN, down twice");
    assert_eq!(hops("fn0", "an0"), None);
    assert!(!fabric.is_connected());
    assert_eq!(fabric.width(1, 3), 3, "the short site's core has its leaves' parents");
    assert_eq!(fabric.uplinks(1, fabric.group(1, n("dn0"))).len(), 6);
    assert!(fabric.uplinks(1, fabric.group(1, n("fn0"))).is_empty(), "a lone leaf has no uplinks");
    for (from, to) in (0..fabric.nodes()).flat_map(|a| (0..fabric.nodes()).map(move |b| (a, b))) {
        let between = fabric.route(from, to).map(|route| {
            let to_a_node = |id| fabric.cable_place(id).is_some_and(|place| place.0 == 0);
            route.iter().filter(|link| !to_a_node(link.cable)).count() as u32
        });
        assert_eq!(between, fabric.hops(from, to), "{from} to {to}");
    }
}

#[test]
fn a_site_of_three_levels_next_to_one_of_four_keeps_its_cabling() {
    let mut machine = pgft("deep", &[1, 2, 2, 2], &[1, 1, 1, 1], &[1, 1, 1, 1]);
    let mut cab = preset("cab").unwrap().unwrap().sites.remove(0);
    cab.root.name = "cab".to_owned();
    let last = MissingCable { level: 2, group: 3, switch: 17, parent: 1, cable: 8 };
    cab.missing.push(last);
    machine.sites.push(cab.clone());
    let fabric = build(&machine);
    let pod = fabric.level_range(1, 3).start;
    assert_eq!(fabric.uplinks(3, pod).len(), 18 * 2 * 9);
    assert_eq!((fabric.width(1, 3), fabric.width(1, 4)), (18, 36));
    assert_eq!(fabric.missing_cables(), [fabric.cable(3, pod + 3, 17, 1, 8).unwrap()]);
    assert_eq!(fabric.description().sites[1], cab);
}

#[test]
fn what_cannot_be_built_is_refused() {
    let with = |change: fn(&mut Description)| {
        let mut machine = uneven();
        change(&mut machine);
        Fabric::build(&machine).unwrap_err().message
    };
    let missing = |level, group| MissingCable { level, group, switch: 0, parent: 0, cable: 0 };
    for (message, words) in [
        (with(|m| m.sites.clear()), "no site"),
        (with(|m| m.kinds.clear()), "no kind of node"),
        (with(|m| m.kinds[0].sockets = 0), "sockets of a node must be at least 1"),
        (with(|m| m.sites[2].root.name = "short".to_owned()), "two sites are named short"),
        (with(|m| m.sites[2].root = leaf("a", 1)), "node an0 stands in two places"),
        (with(|m| m.sites[2].root = leaf("f", 0)), "has no nodes"),
        (with(|m| m.sites[2].root = over("f", Vec::new())), "has no switches"),
        (with(|m| m.sites[1].cabling[0].cables = 0), "above 0"),
        (with(|m| m.sites[1].cabling[1].bandwidth = f64::NAN), "above 0"),
        (with(|m| m.sites[1].cabling.truncate(1)), "cabling for 1"),
        (with(|m| m.sites[0].cabling[1].parents = u32::MAX), "too large"),
        (with(|m| m.sites[0].cabling[1].parents = 1 << 20), "more than 1048576 switches"),
        (with(|m| m.sites[0].cabling[1].cables = 1 << 20), "more than 65536 cables for"),
        (with(|m| m.name = "a\u{1b}[31m".to_owned()), "holds a control character"),
        (with(|m| m.sites[2].root = leaf("f\n", 1)), "holds a control character"),
        (with(|m| m.wans[0].latency = f64::NAN), "latency of at least 0"),
        (with(|m| m.wans[0].between.0 = "tall".to_owned()), "must join two sites"),
        (with(|m| m.wans[0].between.0 = "away".to_owned()), "site away"),
        (with(|m| m.sites = vec![m.sites[0].clone(); 1025]), "more than 1024"),
    ] {
        assert!(message.contains(words), "{message} should say {words}");
    }
    for outside in [missing(3, 0), missing(2, 2), missing(1, 3), missing(1, u32::MAX)] {
        let mut machine = uneven();
        machine.sites[0].missing.push(outside);
        assert!(Fabric::build(&machine).is_err(), "{outside:?} is no place of the first site");
    }
}

proptest! {
    /// The numbers of cables have no gaps. A cable's number gives its place, and the place gives the number.
    #[test]
    fn cable_numbers_and_places_are_inverse(machine in machine()) {
        let fabric = build(&machine);
        let mut next = 0;
        for level in 0..fabric.depth() {
            for group in 0..fabric.groups(level) {
                let site = fabric.site_of_group(level, group);
                let cabling = fabric.cabling(site, level);
                let uplinks = fabric.uplinks(level, group);
                prop_assert_eq!(uplinks.start, next);
                next = uplinks.end;
                if uplinks.is_empty() {
                    continue;
                }
                for switch in 0..fabric.width(site, level) {
                    for parent in 0..cabling.parents {
                        for cable in 0..cabling.cables {
                            let id = fabric.cable(level, group, switch, parent, cable).unwrap();
                            prop_assert_eq!(fabric.cable_place(id), Some((level, group, switch, parent, cable)));
                        }
                    }
                }
                prop_assert_eq!(fabric.cable(level, group, fabric.width(site, level), 0, 0), None);
            }
        }
        prop_assert_eq!(next as usize + machine.wans.len(), fabric.links() as usize);
        prop_assert_eq!(fabric.missing_cables().len(), (0..fabric.links()).filter(|&id| !fabric.has_cable(id)).count());
    }

    /// The description of a built machine is the one it was built from, up to the order of missing cables and copies
    /// among them.
    #[test]
    fn description_is_the_inverse_of_build(machine in machine()) {
        let again = build(&machine).description();
        prop_assert_eq!(build(&again).description(), again.clone());
        let trees = |m: &Description| m.sites.iter().map(|s| (s.root.clone(), s.cabling.clone())).collect::<Vec<_>>();
        prop_assert_eq!(trees(&again), trees(&machine));
    }

    /// A route is a connected walk from node to node over existing cables. It has as many links between switches as
    /// there are hops.
    #[test]
    fn routes_are_connected_walks(
        machine in machine(),
        ends in prop::collection::vec(any::<(prop::sample::Index, prop::sample::Index)>(), 1..8),
    ) {
        let fabric = build(&machine);
        let nodes = fabric.nodes() as usize;
        for (from, to) in ends {
            let (from, to) = (from.index(nodes) as u32, to.index(nodes) as u32);
            let Some(route) = fabric.route(from, to) else {
                let whole = fabric.missing_cables().is_empty();
                prop_assert!(!whole || fabric.hops(from, to).is_none(), "a whole tree has a way");
                continue;
            };
            // The place that the walk has reached: level, group, parallel switch.
            let mut at = (0, from, 0);
            let mut between_switches = 0;
            for link in &route {
                prop_assert!(fabric.has_cable(link.cable));
                let Some((level, group, switch, parent, _)) = fabric.cable_place(link.cable) else {
                    let (_, (a, b), _, _) = fabric.wans().find(|wan| wan.0 == link.cable).unwrap();
                    let (site, next) = if link.direction == Direction::Up { (a, b) } else { (b, a) };
                    prop_assert_eq!(fabric.site_of_group(at.0, at.1), site);
                    // A WAN link can be reached from any core switch, and leads to any.
                    let top = (fabric.depth(), next, u32::MAX);
                    at = top;
                    between_switches += 1;
                    continue;
                };
                let low = (level, group, switch);
                let mut high = (level + 1, fabric.parent(level, group));
                // Padding levels, and levels above a lone leaf, are the same place as the level below them.
                while high.0 < fabric.depth() && fabric.uplinks(high.0, high.1).is_empty() {
                    high = (high.0 + 1, fabric.parent(high.0, high.1));
                }
                let number = switch * fabric.cabling(fabric.site_of_group(level, group), level).parents + parent;
                let high = (high.0, high.1, number);
                let (start, end) = if link.direction == Direction::Up { (low, high) } else { (high, low) };
                prop_assert!(start == at || (start.0, start.1, u32::MAX) == at, "{start:?} {at:?}");
                at = end;
                between_switches += u32::from(level > 0);
            }
            prop_assert_eq!(at, (0, to, 0));
            prop_assert_eq!(Some(between_switches), fabric.hops(from, to));
        }
    }
}
