//! HyperX: hops, links and cables against all minimal routes; files; faults.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use topolane_fabric::{Fabric, HyperX, preset, read, write};

fn machine(name: &str) -> Fabric {
    Fabric::build(&preset(name).unwrap().unwrap()).unwrap()
}

fn hyperx(fabric: &Fabric) -> &HyperX {
    fabric.wiring().hyperx().unwrap()
}

fn small() -> impl Strategy<Value = Fabric> {
    let sizes = prop::collection::vec((1u32..=4, 1u32..=3), 1..=4);
    (sizes, 1u32..=2).prop_map(|(sizes, nodes)| {
        let each = |of: fn(&(u32, u32)) -> u32| {
            sizes.iter().map(|it| of(it).to_string()).collect::<Vec<_>>().join("x")
        };
        let (size, cables) = (each(|it| it.0), each(|it| it.1));
        machine(&format!("hyperx(size={size}, nodes={nodes}, cables={cables})"))
    })
}

/// A directed link, by its switches.
type Hop = (u32, u32);

/// Walks all minimal routes: each link goes to the place in any of the dimensions that are left. Returns the links of one.
fn walk(hyperx: &HyperX, at: u32, to: u32, used: &mut BTreeSet<Hop>) -> u32 {
    let mut links = 0;
    for dimension in 0..hyperx.sizes().len() {
        let (from, end) = (hyperx.place(at, dimension), hyperx.place(to, dimension));
        if from != end {
            let stride = hyperx.strides()[dimension];
            let next = at - from * stride + end * stride;
            used.insert((at, next));
            links = 1 + walk(hyperx, next, to, used);
        }
    }
    links
}

/// The links of a set, in the numbering that `HyperX` documents.
fn hops_in(fabric: &Fabric, nodes: &[u32]) -> BTreeSet<Hop> {
    let hyperx = hyperx(fabric);
    let (size, last) = (hyperx.row_size(), hyperx.sizes().len() - 1);
    let mut links_of_word = BTreeMap::new();
    for row in 0..hyperx.rows() {
        for dimension in 0..last {
            for place in 0..hyperx.sizes()[dimension] {
                let (stride, own) =
                    (hyperx.strides()[dimension], hyperx.place(row * size, dimension));
                let links = (0..size).map(|at| row * size + at);
                let links =
                    links.map(|from| (from, from - own * stride + place * stride)).collect();
                links_of_word.insert(hyperx.word_to_row(dimension, row, place), links);
            }
        }
        for switch in row * size..(row + 1) * size {
            let links: Vec<Hop> = (0..size).map(|at| (switch, row * size + at)).collect();
            links_of_word.insert(hyperx.word_in_row(switch), links);
        }
    }
    assert_eq!(links_of_word.len() as u32, fabric.link_words(), "each word has its links");
    let mut found = BTreeSet::new();
    for &(number, bits) in fabric.links_of(nodes).words() {
        let links = &links_of_word[&number];
        found.extend((0..64).filter(|bit| bits >> bit & 1 == 1).map(|bit| links[bit]));
    }
    found
}

proptest! {
    /// The links of a job are those on all minimal routes between each two of its switches; hops are the links of one.
    #[test]
    fn links_are_those_of_all_minimal_routes(fabric in small(), picked in prop::collection::vec(any::<prop::sample::Index>(), 1..10)) {
        let hyperx = hyperx(&fabric);
        let nodes: BTreeSet<u32> = picked.iter().map(|index| index.index(fabric.nodes() as usize) as u32).collect();
        let nodes: Vec<u32> = nodes.into_iter().collect();
        let switch = |node| hyperx.switch_of_leaf(fabric.group(1, node));
        let mut used = BTreeSet::new();
        let mut pairs = 0.0;
        for &a in &nodes {
            for &b in &nodes {
                let links = walk(hyperx, switch(a), switch(b), &mut used);
                prop_assert_eq!(fabric.hops(a, b), Some(links));
                pairs += f64::from(links) / 2.0;
            }
        }
        prop_assert_eq!(hops_in(&fabric, &nodes), used.clone());
        let on = nodes.iter().map(|&node| (switch(node), 1.0));
        prop_assert!((hyperx.pair_hops(&on.collect::<Vec<_>>()) - pairs).abs() < 1e-6);
        // Each link counts with its parallel cables.
        let mut cables = BTreeMap::new();
        for id in fabric.nodes()..fabric.links() {
            let (a, b) = fabric.wired_cable(id).unwrap().between;
            *cables.entry((a, b)).or_insert(0) += 1;
        }
        let count = used.iter().map(|&(a, b)| cables[&(a.min(b), a.max(b))]).sum::<u32>();
        prop_assert_eq!(fabric.cables_in(&fabric.links_of(&nodes)), count);
    }

    /// Each two switches that differ in one dimension have the cables of this dimension, each with its name.
    #[test]
    fn cables_join_switches_of_a_line(fabric in small()) {
        let hyperx = hyperx(&fabric);
        let mut expected = BTreeMap::new();
        for a in 0..hyperx.switches() {
            for b in a + 1..hyperx.switches() {
                if hyperx.hops(a, b) == 1 {
                    let dimensions = 0..hyperx.sizes().len();
                    let dimension = dimensions.clone().find(|&it| hyperx.place(a, it) != hyperx.place(b, it));
                    expected.insert((a, b), hyperx.description().cables[dimension.unwrap()]);
                }
            }
        }
        let names = write::link_names(&fabric);
        let mut found = BTreeMap::new();
        for id in fabric.nodes()..fabric.links() {
            let cable = fabric.wired_cable(id).unwrap();
            let (a, b) = cable.between;
            *found.entry((a, b)).or_insert(0) += 1;
            prop_assert_eq!(&names[id as usize].lower.name, hyperx.switch_name(a));
            prop_assert_eq!(&names[id as usize].upper.name, hyperx.switch_name(b));
            prop_assert_eq!(names[id as usize].number.is_some(), cable.count > 1);
            prop_assert!(fabric.bandwidth(id) > 0.0);
        }
        prop_assert_eq!(found, expected);
        prop_assert_eq!(names.len() as u32, fabric.links());
    }

    /// Our own format has the whole machine.
    #[test]
    fn our_format_has_the_whole_hyperx(fabric in small()) {
        let text = write::machine_toml(&fabric);
        let again = read::machine_toml(&text).unwrap();
        prop_assert_eq!(&again, &fabric.description());
        prop_assert_eq!(write::machine_toml(&Fabric::build(&again).unwrap()), text);
    }
}

/// The tree of `topolane machine show` names the shape.
#[test]
fn the_shape_is_shown() {
    let text = write::tree(&machine("hyperx(size=12x8, nodes=7)"), 20);
    assert!(text.contains("HyperX: 12 x 8, 96 switches, 864 cables\n"), "{text}");
    let text = write::tree(&machine("hyperx(size=4x4x4, cables=1x1x2)"), 20);
    let shape = "HyperX: 4 x 4 x 4, 64 switches, 384 cables, 1 x 1 x 2 between two switches\n";
    assert!(text.contains(shape), "{text}");
}

/// What no HyperX can be gives one sentence.
#[test]
fn what_is_no_hyperx_is_refused() {
    let refused = |name: &str| preset(name).unwrap().unwrap_err().to_string();
    for (name, sentence) in [
        ("hyperx(size=4x65)", "a HyperX has 1 to 4 dimensions of 1 to 64 switches, not [4, 65]"),
        ("hyperx(size=2x2x2x2x2)", "a HyperX has 1 to 4 dimensions of 1 to 64 switches, not [2, 2"),
        ("hyperx(nodes=2)", "a HyperX has 1 to 4 dimensions of 1 to 64 switches, not []"),
        ("hyperx(size=64x64x64)", "a HyperX of 64 x 64 x 64 has more than 65536 switches"),
        ("hyperx(size=64x64, nodes=257)", "\"nodes=257\" is not 1 to 256 nodes on a switch"),
        ("hyperx(size=64x64x16, nodes=32)", "that is more than 1,048,576 nodes"),
        ("hyperx(size=4x4, cables=0)", "1 to 256 cables join two switches of a HyperX, not 0"),
        (
            "hyperx(size=4x4, cables=1x2x3)",
            "cables and bandwidth of a HyperX need a value for each of the 2 dimensions",
        ),
        ("hyperx(size=4x4, cables=x)", "\"cables=x\" is not such as cables=2"),
        ("hyperx(size=4x4m)", "\"size=4x4m\" is not such as size=8x8"),
        ("hyperx(4x4)", "\"4x4\" is none of size=AxB, nodes=N, cables=PxQ"),
    ] {
        assert!(refused(name).contains(sentence), "{name}: {}", refused(name));
    }
    let large = preset("hyperx(size=64x64, cables=200)").unwrap().unwrap();
    let error = Fabric::build(&large).unwrap_err().to_string();
    assert!(error.contains("is too large: more than 262144 cables for 4096 nodes"), "{error}");
    let text = |table: &str| {
        format!("name = \"m\"\n[[site]]\nname = \"all\"\nchildren = [1, 2, 3]\n[hyperx]\n{table}\n")
    };
    let fault = |table: &str| match read::machine_toml(&text(table)) {
        Err(error) => error.to_string(),
        Ok(description) => Fabric::build(&description).unwrap_err().to_string(),
    };
    assert!(
        read::machine_toml(&text("dimensions = [2, 3]")).is_ok_and(|it| Fabric::build(&it).is_ok())
    );
    for (table, sentence) in [
        ("dimensions = [2, 4]", "a HyperX of 2 x 4 has 8 switches, not 6"),
        ("dimensions = [2, 3]\ncables = [1]", "5: cables and bandwidth of a HyperX need a value"),
        ("dimensions = [2, 3]\nbandwidth = 0", "5: bandwidth of cables must be above 0, not 0 B/s"),
        (
            "dimensions = [2, 3]\nswitches = \"a[1-6]\"",
            "has nodes, but the HyperX has no switch of this name",
        ),
        ("dimensions = [2, 4]\nswitches = \"leaf[0-5],leaf[0-1]\"", "two switches are named"),
        (
            "dimensions = [2, 3]\n[torus]\ndimensions = [2, 3]",
            "5: a machine is a dragonfly, a torus or a HyperX, not two of them",
        ),
        ("dimensions = [2, 3]\nwrap = [true]", "unknown field"),
    ] {
        assert!(fault(table).contains(sentence), "{table}: {}", fault(table));
    }
}
