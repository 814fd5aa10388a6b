//! The bytes and weights of flows on channels.
#![allow(clippy::unwrap_used, clippy::float_cmp)]

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use topolane_fabric::{Fabric, Routing, pgft, routing};
use topolane_traffic::{Flows, Traffic, TrafficEntry};

/// A routing over 1,000 nodes, so that a few flows use few of the channels.
fn ways() -> Box<dyn Routing> {
    let fabric = Fabric::build(&pgft("large", &[10, 10, 10], &[1, 10, 10], &[1, 1, 1])).unwrap();
    routing("d-mod-k", &Arc::new(fabric), 0).unwrap()
}

fn sent() -> impl Strategy<Value = Vec<(u32, u32, f64)>> {
    let one = || (0u32..1000, 0u32..1000, 1.0..1e9f64);
    prop_oneof![prop::collection::vec(one(), 0..8), prop::collection::vec(one(), 300..400),]
}

proptest! {
    /// The bytes over a channel are those of its flows, added up in the order of the flows, to the last bit, whether a
    /// job has few flows or many. The weight of a flow is its part of the bytes that its node sends over channels.
    #[test]
    fn flows_add_up_in_their_order(sent in sent()) {
        let ways = ways();
        let nodes: Vec<u32> = (0..1000).collect();
        let entry = |&(from, to, bytes): &(u32, u32, f64)| TrafficEntry { from, to, bytes, messages: 1.0 };
        let traffic = Traffic::new(1000, sent.iter().map(entry)).unwrap();
        let flows = Flows::new(&traffic, &nodes, &*ways).unwrap();
        let mut over = BTreeMap::new();
        let mut from = BTreeMap::new();
        for flow in 0..flows.len() {
            *from.entry(flows.ends(flow).0).or_insert(0.0) += flows.bytes(flow);
            for &channel in flows.channels(flow) {
                *over.entry(channel).or_insert(0.0) += flows.bytes(flow);
            }
        }
        prop_assert_eq!(flows.per_channel().to_vec(), over.into_iter().collect::<Vec<_>>());
        for flow in 0..flows.len() {
            let part = flows.bytes(flow) / from[&flows.ends(flow).0];
            prop_assert_eq!(flows.weight(flow), part.max(1e-6));
        }
    }
}
