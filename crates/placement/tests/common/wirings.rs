//! Small machines of wirings that are not trees, and jobs that come and go on them.
#![allow(dead_code)]

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;
use topolane_fabric::{Fabric, preset};
use topolane_placement::{Occupancy, Placement, Request, policy};

pub const DRAGONFLIES: [&str; 6] = [
    "slingshot(nodes=48, groups=3, switches=4, cables=1)",
    "slingshot(nodes=60, groups=5, switches=3, cables=2)",
    "slingshot(nodes=64, groups=4, switches=8, cables=3)",
    "dragonfly+(nodes=60, groups=5, leaves=3, spines=4, cables=2)",
    DETOURS[0],
    DETOURS[1],
];
/// Those on which messages take detours.
pub const DETOURS: [&str; 2] = [
    "slingshot(nodes=60, groups=5, switches=4, cables=3, detours=0.3, share=0.25)",
    "dragonfly+(nodes=64, groups=4, leaves=4, spines=4, cables=4, detours=1, share=0.1)",
];
pub const TORI: [&str; 9] = [
    "torus(size=3x2x2, nodes=2)",
    "torus(size=4x4x4)",
    "torus(size=4mx4mx4m)",
    "torus(size=5x3x2, nodes=2)",
    "torus(size=3x6x5m)",
    "torus(size=9x8)",
    "torus(size=2x3x2x3x2)",
    "torus(size=8x4x4, cube=2x2x2)",
    "torus(size=8x8x8, cube=4x4x4)",
];
pub const HYPERX: [&str; 6] = [
    "hyperx(size=6x6, nodes=2)",
    "hyperx(size=3x8, cables=2)",
    "hyperx(size=4x4x4)",
    "hyperx(size=2x5x3, nodes=3)",
    "hyperx(size=2x3x2x3, nodes=2)",
    "hyperx(size=12)",
];

pub fn machine(name: &str) -> Arc<Fabric> {
    Arc::new(Fabric::build(&preset(name).unwrap().unwrap()).unwrap())
}

pub fn machines(names: &'static [&str]) -> impl Strategy<Value = Arc<Fabric>> {
    prop::sample::select(names).prop_map(machine)
}

/// Jobs that come, by their nodes, and ends of jobs that run.
pub fn events(most: u32) -> impl Strategy<Value = Vec<Result<u32, Index>>> {
    let nodes = prop_oneof![2 => 1u32..=most, 1 => 1u32..4];
    let event = prop_oneof![3 => nodes.prop_map(Ok), 1 => any::<Index>().prop_map(Err)];
    prop::collection::vec(event, 1..40)
}

/// The jobs that a policy lets run, by number, with the state. `see` is called after each event.
pub fn run(
    name: &str,
    fabric: &Arc<Fabric>,
    events: &[Result<u32, Index>],
    mut see: impl FnMut(&[(u64, Placement)], &Occupancy),
) -> (Vec<(u64, Placement)>, Occupancy) {
    let rule = policy(name, 1).unwrap();
    let mut occupancy = Occupancy::new(Arc::clone(fabric));
    let mut jobs: Vec<(u64, Placement)> = Vec::new();
    for (id, event) in (1..).zip(events) {
        match event {
            Ok(nodes) => {
                let request = Request::whole_nodes(id, (*nodes).min(fabric.nodes()), 1.0);
                if let Ok(placement) = rule.place(&request, &occupancy) {
                    assert_eq!(placement.nodes().len() as u32, request.nodes);
                    assert!(occupancy.has_room_for(&placement), "{name}: {placement:?}");
                    occupancy.claim(&placement).unwrap();
                    jobs.push((id, placement));
                }
            }
            Err(index) if !jobs.is_empty() => {
                let (_, placement) = jobs.remove(index.index(jobs.len()));
                occupancy.release(&placement);
            }
            Err(_) => {}
        }
        see(&jobs, &occupancy);
    }
    (jobs, occupancy)
}
