//! A small machine and jobs on it.
#![allow(dead_code)]

use std::sync::Arc;

use proptest::prelude::*;
use topolane_fabric::{Fabric, Routing, pgft};
use topolane_traffic::{Flows, Traffic, TrafficEntry};

/// What one node sends another: the sender, the receiver and the bytes.
pub type Sent = (u32, u32, f64);

/// A tapered machine of 27 nodes, with parallel switches and cables.
pub fn tree() -> Arc<Fabric> {
    let description = pgft("small", &[3, 3, 3], &[1, 2, 1], &[1, 1, 2]);
    Arc::new(Fabric::build(&description).unwrap())
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
    prop::sample::select(vec!["d-mod-k", "s-mod-k", "random", "adaptive"])
}
