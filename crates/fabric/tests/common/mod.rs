//! Machines for the tests.

#[allow(dead_code)] // not every test damages files
pub mod damage;

use proptest::prelude::*;
use topolane_fabric::{Description, Fabric, MissingCable, WanDescription, pgft};

/// A regular tree of one to three levels and a few dozen nodes. All names start with `name`, so that several sites of
/// one machine can each hold such a tree.
pub fn small_tree(name: &'static str) -> impl Strategy<Value = Description> {
    prop::collection::vec((1u32..5, 1u32..4, 1u32..4), 1..4).prop_map(move |levels| {
        let children: Vec<u32> = levels.iter().map(|level| level.0).collect();
        let parents: Vec<u32> = levels.iter().map(|level| level.1).collect();
        let cables: Vec<u32> = levels.iter().map(|level| level.2).collect();
        let mut machine = pgft(name, &children, &parents, &cables);
        machine.sites[0].root.name = format!("site-{name}");
        machine
    })
}

/// A machine of one to three such trees, any cables of which may be missing. Several sites are a chain with WAN links.
pub fn machine() -> impl Strategy<Value = Description> {
    let sites =
        (small_tree("a"), prop::option::of(small_tree("b")), prop::option::of(small_tree("c")));
    let missing = prop::collection::vec(any::<prop::sample::Index>(), 0..6);
    (sites, missing, any::<bool>()).prop_map(|((mut machine, b, c), missing, joined)| {
        for other in [b, c].into_iter().flatten() {
            machine.sites.extend(other.sites);
        }
        if joined {
            for pair in machine.sites.windows(2) {
                let between = (pair[0].root.name.clone(), pair[1].root.name.clone());
                machine.wans.push(WanDescription { between, latency: 0.005, bandwidth: 1e9 });
            }
        }
        for which in missing {
            mark_missing(&mut machine, which);
        }
        machine
    })
}

/// Marks one cable of the first site missing.
pub fn mark_missing(machine: &mut Description, which: prop::sample::Index) {
    let fabric = Fabric::build(machine).unwrap();
    let last = (0..fabric.links()).filter(|&id| fabric.cable_place(id).is_some()).count();
    let Some((level, group, switch, parent, cable)) = fabric.cable_place(which.index(last) as u32)
    else {
        return;
    };
    if fabric.site_of_group(level, group) == 0 && fabric.site_depth(0) == fabric.depth() {
        machine.sites[0].missing.push(MissingCable { level, group, switch, parent, cable });
    }
}
