//! A small machine and jobs on it.
#![allow(dead_code)]

use std::sync::Arc;

use proptest::prelude::*;
use topolane_fabric::{Channel, Fabric, Routing, WiringDescription, pgft, preset, routing};
use topolane_traffic::{Flows, Traffic, TrafficEntry};

/// What one node sends another: the sender, the receiver and the bytes.
pub type Sent = (u32, u32, f64);

/// A tapered machine of 27 nodes, with parallel switches and cables.
pub fn tree() -> Arc<Fabric> {
    let description = pgft("small", &[3, 3, 3], &[1, 2, 1], &[1, 1, 2]);
    Arc::new(Fabric::build(&description).unwrap())
}

/// A dragonfly of 27 nodes. In each group two of the four switches have no cable between them, and two have three.
pub fn dragonfly() -> Arc<Fabric> {
    let name = "slingshot(nodes=27, groups=3, switches=4, cables=2)";
    let mut description = preset(name).unwrap().unwrap();
    if let WiringDescription::Dragonfly(wiring) = &mut description.wiring {
        wiring
            .cables
            .retain(|cable| cable.between.0 % 4 != 0 || cable.between.1 != cable.between.0 + 1);
        for cable in &mut wiring.cables {
            cable.count = if cable.between.0 % 4 == 2 { 3 } else { 1 };
        }
    }
    Arc::new(Fabric::build(&description).unwrap())
}

/// `minimal` on a HyperX; by its own name it is that of the dragonfly.
pub const ALL_ORDERS: &str = "minimal on a HyperX";

/// The routing of this name on a machine that is not a tree, of its kind; `None` if it is for trees.
pub fn wired(name: &str) -> Option<Box<dyn Routing>> {
    let made = |name| Arc::new(Fabric::build(&preset(name).unwrap().unwrap()).unwrap());
    match name {
        // Half of a message goes each way around the ring of four.
        "dimension-order" => routing(name, &made("torus(size=4x2x2, nodes=2)"), 3).ok(),
        ALL_ORDERS => routing("minimal", &made("hyperx(size=3x3x3)"), 3).ok(),
        _ => routing(name, &dragonfly(), 3).ok(),
    }
}

/// The routing of this name, on the machine of its kind.
pub fn ways(name: &str) -> Arc<dyn Routing> {
    wired(name).unwrap_or_else(|| routing(name, &tree(), 3).unwrap()).into()
}

/// The channels of a flow, with the part of it on each.
pub fn parts(flows: &Flows, flow: usize) -> Vec<(Channel, f64)> {
    let mut parts = Vec::new();
    for &entry in flows.channels(flow) {
        flows.splits().each(entry, |channel, part| parts.push((channel, part)));
    }
    parts
}

/// The traffic of a job and the node of every rank. Rank i runs on node i.
pub fn traffic(sent: &[Sent], ways: &dyn Routing) -> (Traffic, Vec<u32>) {
    let nodes: Vec<u32> = (0..ways.fabric().nodes()).collect();
    let entry = |&(from, to, bytes): &Sent| TrafficEntry { from, to, bytes, messages: 1.0 };
    (Traffic::new(nodes.len() as u32, sent.iter().map(entry)).unwrap(), nodes)
}

/// The flows of a job whose rank i runs on node i.
pub fn job(sent: &[Sent], ways: &dyn Routing) -> Arc<Flows> {
    let (traffic, nodes) = traffic(sent, ways);
    Arc::new(Flows::new(&traffic, &nodes, ways).unwrap())
}

/// One to six jobs.
pub fn jobs() -> impl Strategy<Value = Vec<Vec<Sent>>> {
    let sent = (0u32..27, 0u32..27, prop_oneof![Just(1e6), 1.0..1e9f64]);
    prop::collection::vec(prop::collection::vec(sent, 0..12), 1..7)
}

/// The flows of the jobs over this routing, with the jobs numbered from 0.
pub fn laid(jobs: &[Vec<Sent>], ways: &dyn Routing) -> Vec<(u64, Arc<Flows>)> {
    (0..).zip(jobs.iter().map(|sent| job(sent, ways))).collect()
}

/// The names of the routings.
pub fn routing_names() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "d-mod-k",
        "s-mod-k",
        "random",
        "adaptive",
        "minimal",
        "minimal-hashed",
        "valiant",
        "valiant(fraction=0.3)",
        "dimension-order",
        ALL_ORDERS,
    ])
}
