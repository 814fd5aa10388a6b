//! Routes of tori and HyperX. `tests/wirings/test_grid_routes.py` compares them with all routes over the cables.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "common/routes.rs"]
mod routes;

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use routes::{keeps_traffic, parts};
use topolane_fabric::{Fabric, Wiring, preset, routing};

const TORI: [&str; 8] = [
    "torus(size=4x4x4)",
    "torus(size=4mx5mx3m)",
    "torus(size=5x7, nodes=2)",
    "torus(size=6x3mx2, nodes=2)",
    "torus(size=8x1x4)",
    "torus(size=2x3x2x3x2)",
    "torus(size=4x2x3mx2x2x2)",
    "torus(size=64x2)",
];
const HYPERX: [&str; 6] = [
    "hyperx(size=6x6, nodes=2)",
    "hyperx(size=3x8, nodes=1, cables=2)",
    "hyperx(size=2x5x3, nodes=2, cables=1x2x3)",
    "hyperx(size=3x4x2x3)",
    "hyperx(size=4x1x3)",
    "hyperx(size=9, nodes=4)",
];

fn made(name: &str) -> Arc<Fabric> {
    Arc::new(Fabric::build(&preset(name).unwrap().unwrap()).unwrap())
}

/// A machine, one of its routings, and two nodes.
fn routed() -> impl Strategy<Value = (&'static str, &'static str, usize, usize)> {
    let torus = prop::sample::select(&TORI[..]).prop_map(|machine| (machine, "dimension-order"));
    let ways = prop::sample::select(vec!["dimension-order", "minimal"]);
    let hyperx = (prop::sample::select(&HYPERX[..]), ways);
    (prop_oneof![torus, hyperx], any::<usize>(), any::<usize>())
        .prop_map(|((machine, routing), from, to)| (machine, routing, from, to))
}

fn switch_of(fabric: &Fabric, leaf: u32) -> u32 {
    match fabric.wiring() {
        Wiring::Torus(torus) => torus.router_of_leaf(leaf),
        Wiring::HyperX(hyperx) => hyperx.switch_of_leaf(leaf),
        other => panic!("{} is no grid", other.name()),
    }
}

proptest! {
    /// All bytes leave the sender and reach the receiver, over as many links as the switches are apart.
    #[test]
    fn no_switch_keeps_or_makes_traffic((machine, name, from, to) in routed()) {
        let fabric = made(machine);
        let routing = routing(name, &fabric, 0).unwrap();
        let nodes = fabric.nodes();
        let (from, to) = (from as u32 % nodes, to as u32 % nodes);
        keeps_traffic(&*routing, (from, to), &|leaf| switch_of(&fabric, leaf))
            .map_err(TestCaseError::fail)?;
        let between = parts(&*routing, from, to).into_iter().filter(|it| it.0 >= 2 * nodes);
        let hops: f64 = between.map(|(_, part)| part).sum();
        prop_assert!((hops - f64::from(fabric.hops(from, to).unwrap())).abs() < 1e-9);
    }

    /// A routing uses no link outside the closure, which isolation keeps apart. The default uses all of it.
    #[test]
    fn routes_stay_in_the_closure((machine, name, from, to) in routed()) {
        let fabric = made(machine);
        let (from, to) = (from as u32 % fabric.nodes(), to as u32 % fabric.nodes());
        let below = fabric.nodes();
        let used = |name: &str| {
            let routing = routing(name, &fabric, 0).unwrap();
            let both = [parts(&*routing, from, to), parts(&*routing, to, from)].concat();
            let links = both.into_iter().flat_map(|(channel, _)| routing.links(channel));
            links.filter(|link| link.cable >= below).collect::<BTreeSet<_>>()
        };
        let all = used("default");
        prop_assert!(used(name).is_subset(&all));
        prop_assert_eq!(all.len() as u32, fabric.cables_in(&fabric.links_of(&[from, to])));
    }
}

/// The names of the links from a node to another, with their parts: switches by their places.
fn shown(machine: &str, name: &str, (from, to): (u32, u32)) -> Vec<String> {
    let fabric = made(machine);
    let routing = routing(name, &fabric, 0).unwrap();
    let mut shown = Vec::new();
    for (channel, part) in parts(&*routing, from, to) {
        if let Some(cable) = fabric.wired_cable(routing.links(channel)[0].cable) {
            let (a, b) = cable.between;
            let (a, b) = if channel % 2 == 0 { (a, b) } else { (b, a) };
            shown.push(format!("{a}-{b}: {part:.3}"));
        }
    }
    shown
}

/// On a torus of 3 x 4 a message first goes along the first dimension. Around half of the ring of four, half of it goes
/// each way.
#[test]
fn a_message_goes_dimension_by_dimension_and_halves_where_both_ways_are_as_short() {
    let torus = "torus(size=3x4)";
    let shown = |from, to| shown(torus, "default", (from, to));
    assert_eq!(shown(0, 9), ["0-8: 1.000", "8-9: 1.000"], "backwards in a ring of three");
    assert_eq!(shown(1, 7), ["1-5: 1.000", "5-6: 0.500", "6-7: 0.500", "5-4: 0.500", "4-7: 0.500"]);
    let mesh = self::shown("torus(size=3mx4m)", "default", (0, 11));
    assert_eq!(mesh, ["0-4: 1.000", "4-8: 1.000", "8-9: 1.000", "9-10: 1.000", "10-11: 1.000"]);
}

/// On a HyperX of 3 x 4, `minimal` takes both corners alike and `dimension-order` one. In three dimensions, two of the
/// six orders begin with a link, and one passes a link in the middle.
#[test]
fn orders_of_the_dimensions_are_alike() {
    let plane = "hyperx(size=3x4)";
    assert_eq!(
        shown(plane, "minimal", (0, 11)),
        ["0-8: 0.500", "0-3: 0.500", "8-11: 0.500", "3-11: 0.500"]
    );
    assert_eq!(shown(plane, "dimension-order", (11, 0)), ["11-3: 1.000", "3-0: 1.000"]);
    assert_eq!(shown(plane, "minimal", (0, 3)), ["0-3: 1.000"]);
    let cube = shown("hyperx(size=2x2x2)", "minimal", (0, 7));
    let with = |part: &str| cube.iter().filter(|link| link.ends_with(part)).count();
    assert_eq!((cube.len(), with("0.333"), with("0.167")), (12, 6, 6));
}

/// What has no routes is refused in one sentence.
#[test]
fn what_has_no_routes_is_refused() {
    let refused = |machine, name| routing(name, &made(machine), 0).unwrap_err().to_string();
    let pod = refused("torus(size=8x4x4, cube=4x4x4)", "default");
    assert!(pod.contains("is a pod, whose optical switches are set for each job"), "{pod}");
    let torus = refused("torus(size=4x4)", "minimal");
    assert!(torus.contains("needs a dragonfly or a HyperX"), "{torus}");
    assert!(torus.ends_with("take one of dimension-order"), "{torus}");
    let hyperx = refused("hyperx(size=4x4)", "d-mod-k");
    assert!(hyperx.ends_with("take one of minimal, dimension-order"), "{hyperx}");
    let large = "hyperx(size=16x16x16x16)";
    assert!(refused(large, "minimal").contains("are too many"));
    assert!(routing("dimension-order", &made(large), 0).is_ok());
}
