//! Tori, meshes and pods: hops, links and cables against messages that walk router by router; files; faults.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;

use proptest::prelude::*;
use topolane_fabric::{Fabric, Torus, preset, read, write};

fn machine(name: &str) -> Fabric {
    Fabric::build(&preset(name).unwrap().unwrap()).unwrap()
}

fn torus(fabric: &Fabric) -> &Torus {
    fabric.wiring().torus().unwrap()
}

fn small() -> impl Strategy<Value = Fabric> {
    let size = prop_oneof![
        3 => (1u32..=6).prop_map(|size| size.to_string()),
        1 => (1u32..=6).prop_map(|size| format!("{size}m"))
    ];
    let sizes = prop::collection::vec(size, 2..=4);
    (sizes, 1u32..=2).prop_map(|(sizes, nodes)| {
        machine(&format!("torus(size={}, nodes={nodes})", sizes.join("x")))
    })
}

/// A directed link, by its routers.
type Hop = (u32, u32);

/// All routers that a message may go to next, in the order of the dimensions.
fn next_of(torus: &Torus, at: u32, to: u32) -> Vec<u32> {
    for dimension in 0..torus.sizes().len() {
        let (size, stride) =
            (i64::from(torus.sizes()[dimension]), i64::from(torus.strides()[dimension]));
        let place = |router| i64::from(torus.place(router, dimension));
        let (from, to) = (place(at), place(to));
        if from == to {
            continue;
        }
        let step =
            |way: i64| (i64::from(at) + ((from + way).rem_euclid(size) - from) * stride) as u32;
        if !torus.rings()[dimension] {
            return vec![step((to - from).signum())];
        }
        let up = (to - from).rem_euclid(size);
        return [(up, 1), (size - up, -1)]
            .into_iter()
            .filter(|&(links, _)| 2 * links <= size)
            .map(|(_, way)| step(way))
            .collect();
    }
    Vec::new()
}

fn walk(torus: &Torus, at: u32, to: u32, used: &mut BTreeSet<Hop>) -> u32 {
    let mut links = 0;
    for next in next_of(torus, at, to) {
        used.insert((at, next));
        links = 1 + walk(torus, next, to, used);
    }
    links
}

/// The links of a set, in the numbering that `Torus` documents.
fn hops_in(fabric: &Fabric, nodes: &[u32]) -> BTreeSet<Hop> {
    let torus = torus(fabric);
    let mut found = BTreeSet::new();
    for &(number, bits) in fabric.links_of(nodes).words() {
        let (plane, word) = (number / torus.words_of_plane(), number % torus.words_of_plane());
        let (dimension, is_down) = ((plane / 2) as usize, plane % 2 == 1);
        for bit in (0..64).filter(|bit| bits >> bit & 1 == 1) {
            let router = word * 64 + bit;
            let (size, stride) = (torus.sizes()[dimension], torus.strides()[dimension]);
            let is_last = torus.place(router, dimension) + 1 == size;
            let next = if is_last { router - (size - 1) * stride } else { router + stride };
            found.insert(if is_down { (next, router) } else { (router, next) });
        }
    }
    found
}

proptest! {
    /// The links of a job are those on the ways between each two of its routers; hops are the links of a way.
    #[test]
    fn links_are_those_that_messages_walk(fabric in small(), picked in prop::collection::vec(any::<prop::sample::Index>(), 1..8)) {
        let torus = torus(&fabric);
        let nodes: BTreeSet<u32> = picked.iter().map(|index| index.index(fabric.nodes() as usize) as u32).collect();
        let nodes: Vec<u32> = nodes.into_iter().collect();
        let mut used = BTreeSet::new();
        let mut pairs = 0.0;
        for &a in &nodes {
            for &b in &nodes {
                let router = |node| torus.router_of_leaf(fabric.group(1, node));
                let links = walk(torus, router(a), router(b), &mut used);
                prop_assert_eq!(fabric.hops(a, b), Some(links));
                pairs += f64::from(links) / 2.0;
            }
        }
        prop_assert_eq!(hops_in(&fabric, &nodes), used);
        let on = nodes.iter().map(|&node| (torus.router_of_leaf(fabric.group(1, node)), 1.0));
        prop_assert!((torus.pair_hops(&on.collect::<Vec<_>>()) - pairs).abs() < 1e-6);
    }

    /// Each cable joins neighbours, each pair of neighbours has one cable, and each has its name.
    #[test]
    fn cables_join_neighbours(fabric in small()) {
        let torus = torus(&fabric);
        let mut expected = BTreeSet::new();
        for router in 0..torus.routers() {
            for to in 0..torus.routers() {
                if torus.hops(router, to) == 1 {
                    expected.insert((router.min(to), router.max(to)));
                }
            }
        }
        let names = write::link_names(&fabric);
        let mut found = BTreeSet::new();
        for id in fabric.nodes()..fabric.links() {
            let (a, b) = fabric.wired_cable(id).unwrap().between;
            prop_assert!(found.insert((a.min(b), a.max(b))));
            prop_assert_eq!(&names[id as usize].lower.name, torus.router_name(a));
            prop_assert_eq!(&names[id as usize].upper.name, torus.router_name(b));
            prop_assert!(fabric.bandwidth(id) > 0.0);
        }
        prop_assert_eq!(found.len() as u32, torus.cables());
        prop_assert_eq!(found, expected);
    }

    /// Our own format has the whole machine.
    #[test]
    fn our_format_has_the_whole_torus(fabric in small()) {
        let text = write::machine_toml(&fabric);
        let again = read::machine_toml(&text).unwrap();
        prop_assert_eq!(&again, &fabric.description());
        prop_assert_eq!(write::machine_toml(&Fabric::build(&again).unwrap()), text);
    }
}

/// The presets have the sizes of the published machines.
#[test]
fn presets_have_published_sizes() {
    let titan = machine("titan");
    assert_eq!((titan.nodes(), torus(&titan).routers()), (18_688, 9_600));
    assert_eq!(torus(&titan).cables(), 3 * 9_600);
    assert_eq!(torus(&titan).leaf_of_router(9_599), None, "the last routers have no nodes");
    let pod = machine("tpu-v4");
    assert_eq!((pod.nodes(), torus(&pod).sizes()), (4096, &[64, 4, 4, 4][..]));
    assert_eq!(torus(&pod).cables(), 64 * 3 * 48);
    // The farthest chips of a torus of 16 in each dimension, with the wrap of cubes.
    assert_eq!((0..4096).map(|node| pod.hops(0, node).unwrap()).max(), Some(24));
    for name in ["titan", "tpu-v4"] {
        let text = write::machine_toml(&machine(name));
        assert_eq!(read::machine_toml(&text).unwrap(), machine(name).description(), "{name}");
    }
    assert!(write::tree(&pod, 20).contains("pod of 64 cubes of 4 x 4 x 4"));
    assert!(write::tree(&titan, 20).contains("torus: 25 x 16 x 24, 9,600 routers, 28,800 cables"));
    let mesh = write::tree(&machine("torus(size=4x8m)"), 20);
    assert!(mesh.contains("torus: 4 x 8, 32 routers, 60 cables, no wrap in dimension 2"), "{mesh}");
}

/// In a pod, a job in one cube uses its cables only; whole cubes are joined in all dimensions, with all their ports; and
/// a job with a part of one cube uses one cross-section along a chain.
#[test]
fn jobs_in_several_cubes_are_chains_or_whole_cubes() {
    let pod = machine("tpu-v4");
    let torus = torus(&pod);
    let ports = |nodes: &[u32]| {
        let first = torus.planes_of_ports(1)[0];
        let links = pod.links_of(nodes);
        let words = links.words().iter().filter(|&&(word, _)| word >= first);
        words.map(|&(_, bits)| bits.count_ones()).sum::<u32>()
    };
    let cables = |nodes: &[u32]| pod.cables_in(&pod.links_of(nodes));
    let whole: Vec<u32> = (0..64).collect();
    assert_eq!((cables(&whole), ports(&whole)), (2 * 144, 0));
    let two: Vec<u32> = (0..128).collect();
    assert_eq!((cables(&two), ports(&two)), (4 * 144, 2 * 96), "two whole cubes");
    // A whole cube, and the two low layers of the first dimension of the next: 4 x 4 x 6.
    let six: Vec<u32> = (0..96).collect();
    assert_eq!((cables(&six), ports(&six)), (2 * (144 + 64), 32 + 16));
    // One node of a layer: the chain has the cross-section of the cube all the same.
    let one: Vec<u32> = (0..65).collect();
    assert_eq!((cables(&one), ports(&one)), (2 * (144 + 24), 32 + 16));
    // Parts of three cubes that are no chain in any dimension.
    let parts = [0, 21, 64, 85, 128, 149];
    assert_eq!((cables(&parts), ports(&parts)), (2 * 3 * 144, 3 * 96));
}

/// What no torus can be gives one sentence.
#[test]
fn what_is_no_torus_is_refused() {
    let refused = |name: &str| preset(name).unwrap().unwrap_err().to_string();
    for (name, sentence) in [
        ("torus(size=4)", "a torus has 2 to 6 dimensions of 1 to 64 routers, not [4]"),
        ("torus(size=4x65)", "a torus has 2 to 6 dimensions of 1 to 64 routers, not [4, 65]"),
        ("torus(size=4x0)", "a torus has 2 to 6 dimensions of 1 to 64 routers, not [4, 0]"),
        ("torus(size=64x64x64x64)", "a torus of 64 x 64 x 64 x 64 has more than 1048576 routers"),
        ("torus(size=8x8, cube=3x4)", "a cube of 3 x 4 cannot be one of a machine of 8 x 8"),
        ("torus(size=8x8m, cube=4x4)", "optical switches join cubes to rings"),
        ("torus(size=4x4, nodes=0)", "\"nodes=0\" is not 1 to 256 nodes on a router"),
        ("torus(size=4xa)", "is not such as size=8x8x4"),
        ("torus(4x4)", "\"4x4\" is none of size=AxBxC"),
        ("torus(nodes=2)", "a torus has 2 to 6 dimensions"),
    ] {
        assert!(refused(name).contains(sentence), "{name}: {}", refused(name));
    }
    let text = |torus: &str| {
        format!("name = \"m\"\n[[site]]\nname = \"all\"\nchildren = [1, 2, 3]\n[torus]\n{torus}\n")
    };
    let fault = |torus: &str| match read::machine_toml(&text(torus)) {
        Err(error) => error.to_string(),
        Ok(description) => Fabric::build(&description).unwrap_err().to_string(),
    };
    assert!(
        read::machine_toml(&text("dimensions = [2, 3]")).is_ok_and(|it| Fabric::build(&it).is_ok())
    );
    for (table, sentence) in [
        ("dimensions = [2, 4]", "a torus of 2 x 4 has 8 routers, not 6"),
        (
            "dimensions = [2, 3]\nwrap = [true]",
            "5: wrap and bandwidth of a torus need a value for each of the 2 dimensions",
        ),
        ("dimensions = [2, 3]\nbandwidth = 0", "5: bandwidth of cables must be above 0, not 0 B/s"),
        (
            "dimensions = [2, 3]\nrouters = \"a[1-6]\"",
            "has nodes, but the torus has no router of this name",
        ),
        ("dimensions = [2, 4]\nrouters = \"leaf[0-5],leaf[0-1]\"", "two routers are named"),
        (
            "dimensions = [2, 3]\n[dragonfly]\ngroups = []",
            "5: a machine is a dragonfly or a torus, not both",
        ),
        ("dimensions = [2, 3]\ncolour = 1", "unknown field"),
    ] {
        assert!(fault(table).contains(sentence), "{table}: {}", fault(table));
    }
}
