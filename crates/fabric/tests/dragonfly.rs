//! Dragonflies: hops, closures of links, the readers and the writer, and what is refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;
use topolane_fabric::read::{Format, MachineOptions, machine, read};
use topolane_fabric::write::{WRITERS, Writer, cables_named, link_names};
use topolane_fabric::{
    Description, DragonflyDescription, Fabric, LinkSet, SwitchCable, WiringDescription, preset,
};

fn made(name: &str) -> Fabric {
    Fabric::build(&preset(name).unwrap().unwrap()).unwrap()
}

fn wiring(description: &mut Description) -> &mut DragonflyDescription {
    match &mut description.wiring {
        WiringDescription::Dragonfly(dragonfly) => dragonfly,
        _ => panic!("no dragonfly"),
    }
}

/// The links inside groups, by switch, that a breadth-first search finds on shortest ways, and the pairs of groups.
/// Written without the code under test, over the list of cables alone.
type Closure = (BTreeSet<(u32, u32)>, BTreeSet<(u32, u32)>);

struct Cables {
    near: BTreeMap<u32, BTreeSet<u32>>,
    group_of: Vec<u32>,
}

impl Cables {
    fn of(description: &DragonflyDescription) -> Self {
        let mut group_of = Vec::new();
        for (group, switches) in (0..).zip(&description.groups) {
            group_of.extend(switches.iter().map(|_| group));
        }
        let mut near: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for SwitchCable { between: (a, b), .. } in &description.cables {
            near.entry(*a).or_default().insert(*b);
            near.entry(*b).or_default().insert(*a);
        }
        Cables { near, group_of }
    }

    fn distances(&self, from: u32) -> BTreeMap<u32, u32> {
        let (mut found, mut next) = (BTreeMap::from([(from, 0)]), VecDeque::from([from]));
        while let Some(at) = next.pop_front() {
            for &other in &self.near[&at] {
                let inside = self.group_of[other as usize] == self.group_of[at as usize];
                if inside && !found.contains_key(&other) {
                    found.insert(other, found[&at] + 1);
                    next.push_back(other);
                }
            }
        }
        found
    }

    fn ways(&self, from: u32, to: u32, links: &mut BTreeSet<(u32, u32)>) {
        let (out, back) = (self.distances(from), self.distances(to));
        for (&at, &far) in &out {
            for other in &self.near[&at] {
                if back.get(other).is_some_and(|left| far + 1 + left == out[&to]) {
                    links.insert((at, *other));
                }
            }
        }
    }

    /// The links of a job with nodes on these switches; between groups it has those cables of which `keeps` is true.
    fn closure(&self, switches: &BTreeSet<u32>, keeps: impl Fn(u32, u32) -> bool) -> Closure {
        let (mut links, mut between) = (BTreeSet::new(), BTreeSet::new());
        for &a in switches {
            for &b in switches {
                let (of_a, of_b) = (self.group_of[a as usize], self.group_of[b as usize]);
                if of_a == of_b {
                    self.ways(a, b, &mut links);
                    continue;
                }
                for (&x, far) in &self.near {
                    for &y in far {
                        let ends = (self.group_of[x as usize], self.group_of[y as usize]);
                        if ends == (of_a, of_b) && keeps(x, y) {
                            between.extend([(x, y), (y, x)]);
                            self.ways(a, x, &mut links);
                            self.ways(y, b, &mut links);
                        }
                    }
                }
            }
        }
        (links, between)
    }

    fn hops(&self, a: u32, b: u32) -> u32 {
        if self.group_of[a as usize] == self.group_of[b as usize] {
            return self.distances(a)[&b];
        }
        let (from, to) = (self.distances(a), self.distances(b));
        let over = |(x, far): (&u32, &u32)| {
            let ends = self.near[x].iter().filter_map(|y| to.get(y)).min()?;
            Some(far + 1 + ends)
        };
        from.iter().filter_map(over).min().unwrap()
    }
}

/// The links of a set, in the numbering that `Dragonfly` documents: inside groups, and between them.
fn ends_of(fabric: &Fabric, links: &LinkSet) -> Closure {
    let dragonfly = fabric.wiring().dragonfly().unwrap();
    let (switches, groups) = (dragonfly.switches(), dragonfly.groups());
    let (mut inside, mut between) = (BTreeSet::new(), BTreeSet::new());
    for &(number, word) in links.words() {
        for bit in (0..64).filter(|bit| word >> bit & 1 == 1) {
            if number < 2 * switches {
                let first = dragonfly.switches_of(dragonfly.group_of(number / 2)).start;
                inside.insert((number / 2, first + number % 2 * 64 + bit));
                continue;
            }
            let mut pairs = (0..groups).flat_map(|a| (a + 1..groups).map(move |b| (a, b)));
            let is_of = |&(a, b): &(u32, u32)| dragonfly.lane_words(a, b).contains(&number);
            let (a, b) = pairs.find(is_of).unwrap();
            let lane = (number - dragonfly.lane_words(a, b).start) * 64 + bit;
            let ends = dragonfly.lanes(a, b)[lane as usize].ends;
            let switch = |group, place: u8| dragonfly.switches_of(group).start + u32::from(place);
            let (a, b) = (switch(a, ends.0), switch(b, ends.1));
            between.extend([(a, b), (b, a)]);
        }
    }
    (inside, between)
}

/// A small machine: a preset, or a damaged one with fewer cables inside and between groups.
fn small() -> impl Strategy<Value = Fabric> {
    let shape = (2u32..5, 1u32..5, 1u32..4, any::<u64>());
    shape.prop_filter_map("is in one piece", |(groups, switches, cables, seed)| {
        let (nodes, most) = (groups * switches * 2, cables.min(switches));
        let name = if seed % 2 == 0 {
            format!("slingshot(nodes={nodes}, groups={groups}, switches={switches}, cables={most})")
        } else {
            let plus = format!("leaves={switches}, spines={cables}, cables={cables}");
            format!("dragonfly+(nodes={nodes}, groups={groups}, {plus})")
        };
        let mut description = preset(&name)?.ok()?;
        let mut keep = seed | 1;
        wiring(&mut description).cables.retain(|_| {
            keep = keep.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            seed % 3 == 0 || keep >> 61 != 0
        });
        Fabric::build(&description).ok()
    })
}

proptest! {
    /// The closure of a job is the set of all links on all minimal routes between its nodes, and the hops are those of
    /// the shortest of these routes.
    #[test]
    fn links_and_hops_are_those_of_the_cables(
        fabric in small(),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
    ) {
        let mut description = fabric.description();
        let cables = Cables::of(wiring(&mut description));
        let nodes: BTreeSet<u32> =
            picks.iter().map(|pick| pick.index(fabric.nodes() as usize) as u32).collect();
        let nodes: Vec<u32> = nodes.into_iter().collect();
        let dragonfly = fabric.wiring().dragonfly().unwrap();
        let switch = |node: u32| dragonfly.switch_of_leaf(fabric.group(1, node));
        let switches: BTreeSet<u32> = nodes.iter().map(|&node| switch(node)).collect();
        prop_assert_eq!(ends_of(&fabric, &fabric.links_of(&nodes)), cables.closure(&switches, |_, _| true));
        for &a in &nodes {
            for &b in &nodes {
                let same = (fabric.hops(a, b), fabric.hops(b, a));
                let hops = if a == b { 0 } else { cables.hops(switch(a), switch(b)) };
                prop_assert_eq!(same, (Some(hops), Some(hops)));
            }
        }
    }

    /// A job that keeps to some lanes has these between each two groups with one of them, and only the ways to their ends.
    /// The cables of lanes are those by which the lanes are found.
    #[test]
    fn a_job_may_keep_to_some_lanes(
        fabric in small(),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
        keep in any::<u64>(),
    ) {
        let mut description = fabric.description();
        let cables = Cables::of(wiring(&mut description));
        let dragonfly = fabric.wiring().dragonfly().unwrap();
        let chosen: Vec<u32> = (0..dragonfly.cables()).filter(|cable| keep >> (cable % 61) & 1 == 1).collect();
        let lanes = dragonfly.lanes_with(chosen.iter().copied());
        let ends: BTreeSet<(u32, u32)> =
            chosen.iter().map(|&cable| dragonfly.cable(cable).unwrap().between).flat_map(|(a, b)| [(a, b), (b, a)]).collect();
        let group = |switch| dragonfly.group_of(switch);
        let of_pair = |a, b| ends.iter().any(|&(x, y)| (group(x), group(y)) == (group(a), group(b)));
        let nodes: Vec<u32> = picks.iter().map(|pick| pick.index(fabric.nodes() as usize) as u32).collect();
        let leaves = || nodes.iter().map(|&node| fabric.group(1, node));
        let switches: BTreeSet<u32> = leaves().map(|leaf| dragonfly.switch_of_leaf(leaf)).collect();
        let links = dragonfly.links_over(&dragonfly.parts_of(leaves()), &lanes);
        let keeps = |a, b| ends.contains(&(a, b)) || !of_pair(a, b);
        prop_assert_eq!(ends_of(&fabric, &links), cables.closure(&switches, keeps));
        let of_lanes = dragonfly.cables_of_lanes(&lanes);
        let is_between = |cable: &u32| {
            let (a, b) = dragonfly.cable(*cable).unwrap().between;
            group(a) != group(b) && ends.contains(&(a, b))
        };
        let expected: Vec<u32> = (0..dragonfly.cables()).filter(is_between).collect();
        prop_assert_eq!(of_lanes, expected);
    }

    /// Our own format has everything: writing and reading gives the same machine, also without some nodes.
    #[test]
    fn our_format_has_the_whole_dragonfly(fabric in small(), left in any::<u64>()) {
        let toml = Writer::named("toml").unwrap();
        let nodes = (0..fabric.nodes()).filter(|node| left >> (node % 64) & 1 == 1 || *node == 0);
        let part = fabric.only(&topolane_fabric::NodeSet::of(fabric.nodes(), nodes)).unwrap();
        for fabric in [fabric, part] {
            let again = machine(&(toml.write)(&fabric), Format::Toml).unwrap();
            let again = Fabric::build(&again).unwrap();
            prop_assert_eq!(again.description().wiring, fabric.description().wiring);
            prop_assert_eq!(again.nodes(), fabric.nodes());
            let all: Vec<u32> = (0..fabric.nodes()).collect();
            prop_assert_eq!(again.links_of(&all), fabric.links_of(&all));
        }
    }
}

/// The sizes of the presets are those that their descriptions say.
#[test]
fn presets_have_their_published_sizes() {
    for (name, nodes, groups, switches, inside, between) in [
        ("theta", 4392, 12, 1152, 12 * (6 * 120 + 3 * 16 * 15), 66 * 48),
        ("edison", 5760, 15, 1440, 15 * (6 * 120 + 3 * 16 * 15), 105 * 24),
        ("frontier", 9472, 74, 2368, 74 * 496, 2701 * 4),
        ("slingshot(nodes=4392, groups=12, switches=23, cables=4)", 4392, 12, 276, 12 * 253, 264),
        ("jupiter", 6000, 25, 775, 25 * 15 * 16 * 2, 300 * 16),
    ] {
        let fabric = made(name);
        let dragonfly = fabric.wiring().dragonfly().unwrap();
        assert_eq!((fabric.nodes(), dragonfly.groups()), (nodes, groups), "{name}");
        assert_eq!(dragonfly.switches(), switches, "{name}");
        assert_eq!(dragonfly.cables_between_groups(), between, "{name}");
        assert_eq!(dragonfly.cables() - between, inside, "{name}");
        assert_eq!(fabric.links(), nodes + inside + between, "nodes have a cable each");
        let all: Vec<u32> = (0..nodes).collect();
        let uses = fabric.links_of(&all);
        assert!(fabric.cables_in(&uses) <= 2 * (inside + between));
    }
    assert_eq!(made("theta").hops(0, 1), Some(0), "one router");
    let fabric = made("theta");
    let farthest = (0..4392).map(|node| fabric.hops(0, node).unwrap()).max();
    assert_eq!(farthest, Some(4), "its own row leads to gateways of every group");
}

/// A cable of every colour, from both ends, and tiles of two nodes and of one.
const ARIES: &str = "\
c0-0c0s0a0l00(0:0:0) green -> c0-0c0s1a0l00(0:0:1)
c0-0c0s1a0l00(0:0:1) green -> c0-0c0s0a0l00(0:0:0)
c0-0c0s0a0l01(0:0:0) black -> c0-0c1s0a0l01(0:1:0)
c0-0c1s0a0l01(0:1:0) black -> c0-0c0s0a0l01(0:0:0)
c0-0c0s0a0l02(0:0:0) black -> c0-0c1s0a0l02(0:1:0)
c0-0c1s0a0l02(0:1:0) black -> c0-0c0s0a0l02(0:0:0)
c0-0c0s0a0l03(0:0:0) blue -> c2-0c0s0a0l03(1:0:0)
c2-0c0s0a0l03(1:0:0) blue -> c0-0c0s0a0l03(0:0:0)
c0-0c0s0a0l04(0:0:0) blue -> unused
c0-0c0s1a0l05(0:0:1) ptile -> processor
c0-0c0s1a0l06(0:0:1) ptile -> processor
c2-0c0s0a0l05(1:0:0) ptile -> processor
c2-0c0s0a0l06(1:0:0) ptile -> processor
c2-0c0s0a0l07(1:0:0) ptile -> processor
c2-0c0s0a0l10(1:0:0) ptile -> processor
";

/// The interconnect file has routers, parallel cables and nodes; a router without processor tiles has no nodes.
#[test]
fn an_interconnect_file_is_a_dragonfly() {
    assert_eq!(Format::guess("m.txt", ARIES), Some(Format::Aries));
    assert_eq!(Format::guess("m.interconnect", ""), Some(Format::Aries));
    let made = read(ARIES, Format::Aries, &MachineOptions::default()).unwrap();
    assert!(made.notes[0].contains("two processor tiles"), "{:?}", made.notes);
    let fabric = Fabric::build(&made.description).unwrap();
    let dragonfly = fabric.wiring().dragonfly().unwrap();
    assert_eq!((fabric.nodes(), fabric.groups(1), dragonfly.switches()), (3, 2, 4));
    assert_eq!((dragonfly.cables(), dragonfly.cables_between_groups()), (4, 1));
    let names: Vec<&str> = (0..3).map(|node| fabric.node_name(node)).collect();
    assert_eq!(names, ["c0-0c0s1n0", "c2-0c0s0n0", "c2-0c0s0n1"]);
    assert_eq!((fabric.hops(0, 1), fabric.hops(1, 2)), (Some(2), Some(0)));
    let uses = fabric.links_of(&[0, 1]);
    assert_eq!(fabric.cables_in(&uses), 4, "one green and one blue cable, both ways");
}

/// A malformed interconnect file gives one sentence with its line.
#[test]
fn a_bad_interconnect_file_is_refused() {
    let line = |number: usize, with: &str| {
        let mut lines: Vec<&str> = ARIES.lines().collect();
        lines[number - 1] = with;
        lines.join("\n")
    };
    for (text, at, words) in [
        (line(3, "c0-0c0s0a0l01(0:0:0) black"), 3, "is not ROUTERlTILE"),
        (line(3, "c0-0c0s0a0l01(0:0) black -> unused"), 3, "is not ROUTERlTILE"),
        (line(3, "c0-0c0s0a0lx1(0:0:0) black -> unused"), 3, "is not ROUTERlTILE"),
        (line(3, "c0-0c0s0a0l01(0:0:0) red -> unused"), 3, "is not ROUTERlTILE"),
        (line(3, "c0-0c0s0a0l01(0:0:0) ptile -> unused"), 3, "is not ROUTERlTILE"),
        (line(3, "c0-0c0s0a0l01(0:0:0) green -> c0-0c1s0a0l01(0:1:0)"), 3, "a green link cannot"),
        (line(3, "c0-0c0s0a0l01(0:0:0) black -> c0-0c0s0a0l02(0:0:0)"), 3, "a black link cannot"),
        (line(3, "c0-0c0s0a0l01(0:0:0) blue -> c0-0c1s0a0l01(0:1:0)"), 3, "a blue link cannot"),
        (line(2, "c0-0c0s0a0l00(0:0:0) green -> c0-0c0s1a0l00(0:0:1)"), 2, "stands on two lines"),
        (
            line(2, "c0-0c0s1a0l00(0:0:2) green -> c0-0c0s0a0l00(0:0:0)"),
            2,
            "is at (0:0:1) and at (0:0:2)",
        ),
        (line(2, "c0-0c0s9a0l00(0:0:1) green -> c0-0c0s0a0l00(0:0:0)"), 2, "are both at (0:0:1)"),
        (line(2, "c0-0c0s1a0l00(0:0:1) green -> unused"), 1, "does not lead back"),
        (line(11, ARIES.lines().nth(9).unwrap()), 11, "stands on two lines"),
        (line(10, ""), 11, "has 1 processor tiles, but a node has two"),
        ("c0-0c0s0a0l04(0:0:0) blue -> unused".to_owned(), 0, "there are 0 nodes"),
    ] {
        let error = machine(&text, Format::Aries).map(|_| ()).expect_err(&text);
        assert_eq!(error.line, at, "{error}");
        assert!(error.to_string().contains(words), "{error} should say {words}");
    }
}

/// A dragonfly that cannot be one gives one sentence.
#[test]
fn what_is_no_dragonfly_is_refused() {
    type Change = fn(&mut Description);
    let changes: [(Change, &str); 9] = [
        (
            |made| wiring(made).cables.retain(|cable| cable.between.0 < 3 && cable.between.1 < 3),
            "no cable joins groups 0 and 1",
        ),
        (
            |made| {
                wiring(made)
                    .cables
                    .retain(|cable| cable.between != (0, 1) && cable.between != (0, 2));
            },
            "no cables inside group 0 lead from switch",
        ),
        (|made| wiring(made).cables[0].between = (0, 99), "must join two of the 9 switches"),
        (|made| wiring(made).cables[0].count = 0, "must join two of the 9 switches"),
        (|made| wiring(made).cables[0].bandwidth = f64::NAN, "must join two of the 9 switches"),
        (|made| wiring(made).groups[0][0] = "other".to_owned(), "no switch of this name"),
        (|made| wiring(made).groups[0][0] = "g0s1".to_owned(), "two switches are named"),
        (
            |made| wiring(made).groups[1].clear(),
            "group 1 of the dragonfly must have 1 to 128 switches, not 0",
        ),
        (|made| wiring(made).cables[0].count = u32::MAX, "too large"),
    ];
    for (change, words) in changes {
        let mut description =
            preset("slingshot(nodes=18, groups=3, switches=3, cables=2)").unwrap().unwrap();
        change(&mut description);
        let error = Fabric::build(&description).map(|_| ()).expect_err(words);
        assert!(error.to_string().contains(words), "{error} should say {words}");
    }
    for name in [
        "slingshot()",
        "slingshot(nodes=7, groups=3, switches=2)",
        "slingshot(x=1)",
        "slingshot(nodes=0, groups=1, switches=1)",
        "slingshot(nodes=1024, groups=1024, switches=128, cables=128)",
        "dragonfly+(nodes=8, groups=2, leaves=2)",
        "dragonfly+(nodes=8, groups=2, switches=2, spines=2)",
        "dragonfly+(nodes=8, groups=2, leaves=2, spines=2, cables=3)",
        "dragonfly+(nodes=8, groups=2, leaves=4294967295, spines=1)",
        "dragonfly+(nodes=8, groups=2, leaves=64, spines=65)",
    ] {
        assert!(preset(name).unwrap().is_err(), "{name}");
    }
}

/// The table of our own format gives the line of a bad cable.
#[test]
fn a_bad_table_is_refused_with_its_line() {
    let toml =
        (Writer::named("toml").unwrap().write)(&made("slingshot(nodes=4, groups=2, switches=2)"));
    assert!(machine(&toml, Format::Toml).is_ok(), "{toml}");
    for (old, new, words) in [
        ("[0, 1, 1]", "[0, 4, 1]", "[0, 4, 1] is not two of the 4 switches"),
        ("[0, 1, 1]", "[1, 1, 1]", "[1, 1, 1] is not two of the 4 switches"),
        ("  bandwidth = 25000000000.0", "  bandwidth = 0.0", "must be above 0, not 0 B/s"),
        ("\"g0s[0-1]\",\n  \"g1", "\"g0s[0-\",\n  \"g1", "bracket"),
        ("\"g0s[0-1]\",\n  \"g1", "\"g0s[0-128]\",\n  \"g1", "1 to 128 switches, not 129"),
        (
            "\"g0s[0-1]\",\n  \"g1",
            &format!("{}\"g1", "\"x\",\n  ".repeat(1024)),
            "more than 1024 groups",
        ),
    ] {
        let text = toml.replacen(old, new, 1);
        assert_ne!(text, toml, "{old} is in {toml}");
        let error = machine(&text, Format::Toml).map(|_| ()).expect_err(new);
        assert!(error.line > 0 && error.to_string().contains(words), "{error} should say {words}");
    }
}

/// A format that has cables of trees only is refused; one that has no cables says what it drops.
#[test]
fn other_formats_say_what_they_drop() {
    let fabric = made("slingshot(nodes=8, groups=2, switches=2)");
    for writer in WRITERS {
        let refused = writer.check(&fabric).err().map(|error| error.to_string());
        match writer.name {
            "toml" => assert_eq!((refused, writer.lost(&fabric)), (None, Vec::new())),
            "ibnetdiscover" | "ibsim-net" => {
                assert!(refused.unwrap().contains("is written for trees only"));
            }
            _ => {
                assert_eq!(refused, None);
                let lost = writer.lost(&fabric).join("\n");
                assert!(lost.contains("does not say the cables of a dragonfly"), "{lost}");
            }
        }
    }
}

/// A switch of a dragonfly cannot be named for an outage: that would take only the cables of its nodes.
#[test]
fn only_cables_of_nodes_have_names() {
    let fabric = made("slingshot(nodes=4, groups=2, switches=2)");
    let names = link_names(&fabric);
    assert_eq!(names.len() as u32, fabric.links());
    assert_eq!((&*names[4].lower.name, &*names[4].upper.name), ("g0s0", "g0s1"), "the first cable");
    assert_eq!(cables_named(&fabric, &names, "slingshot3").unwrap(), [2]);
    for text in ["g0s1", "g0s0->g0s1"] {
        let error = cables_named(&fabric, &names, text).expect_err(text).to_string();
        assert!(error.contains("only cables of nodes can fail"), "{error}");
    }
    assert!(cables_named(&fabric, &names, "group0").is_err());
}

/// Hops do not depend on whether a machine is small enough for tables of them.
#[test]
fn large_machines_have_the_hops_of_small_ones() {
    let small = made("slingshot(nodes=384, groups=4, switches=96, cables=3)");
    let large = made("slingshot(nodes=19200, groups=200, switches=96, cables=3)");
    for node in 0..384 {
        // The first cables of group 0 are those to group 1 on both machines.
        assert!(large.hops(0, node).unwrap() <= 3);
        if node < 192 {
            assert_eq!(small.hops(0, node), large.hops(0, node), "node {node}");
        }
    }
}
