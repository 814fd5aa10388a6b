//! Routes of dragonflies. `tests/wirings/test_dragonfly_routes.py` compares them with all routes that a list of cables has.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "common/routes.rs"]
mod routes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use routes::{keeps_traffic, parts};
use topolane_fabric::{
    Fabric, ROUTINGS, Routing, SpreadRouting, WiringDescription, pgft, preset, routing,
};

const NAMES: [&str; 4] = ["minimal", "minimal-hashed", "valiant", "valiant(fraction=0.25)"];

fn made(name: &str) -> Arc<Fabric> {
    Arc::new(Fabric::build(&preset(name).unwrap().unwrap()).unwrap())
}

/// A dragonfly in which some cables are missing and some are parallel.
fn uneven(missing: &[usize], double: &[usize]) -> Option<Arc<Fabric>> {
    let mut description =
        preset("slingshot(nodes=48, groups=4, switches=6, cables=3)").unwrap().unwrap();
    let WiringDescription::Dragonfly(wiring) = &mut description.wiring else { return None };
    let count = wiring.cables.len();
    for &place in double {
        wiring.cables[place % count].count += 2;
    }
    for &place in missing {
        let count = wiring.cables.len();
        wiring.cables.remove(place % count);
    }
    Fabric::build(&description).ok().map(Arc::new)
}

proptest! {
    /// What enters a switch leaves it: all bytes leave the sender and reach the receiver, and no switch gains or loses
    /// any.
    #[test]
    fn no_switch_keeps_or_makes_traffic(
        name in prop::sample::select(&NAMES[..]),
        missing in prop::collection::vec(any::<usize>(), 0..20),
        double in prop::collection::vec(any::<usize>(), 0..10),
        pairs in prop::collection::vec((0u32..48, 0u32..48), 1..8),
    ) {
        let Some(fabric) = uneven(&missing, &double) else { return Ok(()) };
        let routing = routing(name, &fabric, 5).unwrap();
        for (from, to) in pairs {
            let dragonfly = fabric.wiring().dragonfly().unwrap();
            keeps_traffic(&*routing, (from, to), &|leaf| dragonfly.switch_of_leaf(leaf))
                .map_err(TestCaseError::fail)?;
        }
    }

    /// Minimal routes use no link outside the closure: the links that isolation keeps apart. The same is true of a job that
    /// keeps to some cables between groups, and no switch keeps or makes traffic of it.
    #[test]
    fn minimal_routes_stay_in_the_closure(
        missing in prop::collection::vec(any::<usize>(), 0..20),
        double in prop::collection::vec(any::<usize>(), 0..10),
        (from, to) in (0u32..48, 0u32..48),
        own in prop::collection::vec(any::<usize>(), 0..6),
    ) {
        let Some(fabric) = uneven(&missing, &double) else { return Ok(()) };
        let own: BTreeSet<u32> =
            own.iter().map(|pick| 48 + *pick as u32 % (fabric.links() - 48)).collect();
        let own: Vec<u32> = own.into_iter().collect();
        let closure = fabric.links_over(&[from, to], &own);
        let cables = fabric.cables_in(&closure);
        let mut used = BTreeSet::new();
        let spread = SpreadRouting::over(Arc::clone(&fabric), &own).unwrap();
        let dragonfly = fabric.wiring().dragonfly().unwrap();
        keeps_traffic(&spread, (from, to), &|leaf| dragonfly.switch_of_leaf(leaf))
            .map_err(TestCaseError::fail)?;
        for (a, b) in [(from, to), (to, from)] {
            for (channel, _) in parts(&spread, a, b) {
                used.extend(spread.links(channel).into_iter().filter(|link| link.cable >= 48));
            }
        }
        // All of the closure and nothing else: it is a superset, and of the same size.
        prop_assert_eq!(used.len() as u32, cables);
        if !own.is_empty() {
            return Ok(());
        }
        let hashed = routing("minimal-hashed", &fabric, 0).unwrap();
        for (channel, _) in parts(&*hashed, from, to) {
            let link = hashed.links(channel)[0];
            prop_assert!(link.cable < 48 || used.contains(&link));
        }
    }
}

/// Over all destinations, hashed routes use the cables between two groups about evenly.
#[test]
fn hashed_routes_spread_over_the_cables() {
    let fabric = made("theta");
    let routing = routing("minimal-hashed", &fabric, 1).unwrap();
    let mut users: BTreeMap<u32, u32> = BTreeMap::new();
    for from in fabric.node_range(2, 0).step_by(4) {
        for to in fabric.node_range(2, 1) {
            for (channel, _) in parts(&*routing, from, to) {
                let link = routing.links(channel)[0];
                let wired = fabric.wired_cable(link.cable);
                if wired.is_some_and(|cable| (cable.between.0 < 96) != (cable.between.1 < 96)) {
                    *users.entry(channel).or_default() += 1;
                }
            }
        }
    }
    let (least, most) = (users.values().min().unwrap(), users.values().max().unwrap());
    assert_eq!(users.len(), 48, "2 cables from each of 24 routers");
    assert!(most < &(least * 3 / 2), "{least} to {most} routes on a cable");
}

/// A name stands for a routing of one kind of wiring, and what is wrong with it is said in one sentence.
#[test]
fn names_are_checked() {
    let (tree, dragonfly) = (
        Arc::new(Fabric::build(&pgft("t", &[4, 4], &[1, 2], &[1, 1])).unwrap()),
        made("slingshot(nodes=64, groups=4, switches=4, cables=2)"),
    );
    assert_eq!(routing("default", &tree, 0).unwrap().name(), "d-mod-k");
    assert_eq!(routing("default", &dragonfly, 0).unwrap().name(), "minimal");
    for info in ROUTINGS {
        assert_eq!(routing(info.name, &tree, 0).is_ok(), info.wirings.contains(&"tree"));
        assert_eq!(routing(info.name, &dragonfly, 0).is_ok(), info.wirings.contains(&"dragonfly"));
    }
    let refused = |name, fabric| routing(name, fabric, 0).unwrap_err().to_string();
    assert!(
        refused("d-mod-k", &dragonfly).contains("take one of minimal, minimal-hashed, valiant")
    );
    assert!(
        refused("fastest", &tree)
            .starts_with("unknown routing \"fastest\"; there are default, d-mod-k")
    );
    for name in
        ["valiant(fraction=2)", "valiant(0.5)", "valiant(part=0.5)", "valiant(fraction=nan)"]
    {
        assert!(refused(name, &dragonfly).contains("with F from 0 to 1"), "{name}");
    }
    assert!(refused("minimal(fraction=1)", &dragonfly).contains("is not minimal"));
    let large = made("slingshot(nodes=131072, groups=1024, switches=32, cables=1)");
    assert!(refused("minimal", &large).contains("are too many"));
    assert!(routing("minimal-hashed", &large, 0).is_ok());
}
