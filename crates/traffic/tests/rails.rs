//! The flows on machines with rails.
#![allow(clippy::unwrap_used, clippy::float_cmp)]

use std::sync::Arc;

use topolane_fabric::{Description, Fabric, MissingCable, pgft, routing};
use topolane_traffic::{Flows, RailShares, pattern};

/// A machine of two leaves of two nodes on three rails that never meet.
fn machine() -> Description {
    pgft("r", &[2, 2], &[3, 2], &[1, 1])
}

fn on(shares: &[(u32, f64)]) -> RailShares {
    shares.into()
}

/// The bytes that a node sends up its link on each rail.
fn sent(fabric: &Fabric, flows: &Flows, node: u32) -> [f64; 3] {
    [0, 1, 2].map(|rail| {
        let link = fabric.cable(0, node, 0, rail, 0).unwrap();
        let here = flows.per_channel().iter().find(|pair| pair.0 == 2 * link);
        here.map_or(0.0, |pair| pair.1)
    })
}

fn laid(machine: &Description, rails: [RailShares; 2]) -> (Arc<Fabric>, Flows) {
    let fabric = Arc::new(Fabric::build(machine).unwrap());
    let ways = routing("d-mod-k", &fabric, 1).unwrap();
    let traffic = pattern("pairs").unwrap().traffic(2, 1).unwrap();
    let flows = Flows::on_rails(&traffic, &[0, 3], &rails, &*ways).unwrap();
    (fabric, flows)
}

/// A node sends on each of its rails the part that the shares give, and all bytes are sent.
#[test]
fn bytes_are_spread_by_the_shares() {
    let half = on(&[(0, 0.25), (2, 0.75)]);
    let (fabric, flows) = laid(&machine(), [half.clone(), half]);
    let all: f64 = pattern("pairs").unwrap().traffic(2, 1).unwrap().entries()[0].bytes;
    assert_eq!(sent(&fabric, &flows, 0), [0.25 * all, 0.0, 0.75 * all]);
    assert_eq!(flows.len(), 4, "two rails, two directions");
}

/// If the receiver lacks the rail, the data changes to a rail of the receiver over NVLink before it leaves.
#[test]
fn other_rails_are_reached_over_nvlink() {
    let (fabric, flows) = laid(&machine(), [on(&[(0, 1.0)]), on(&[(1, 1.0)])]);
    let here = sent(&fabric, &flows, 0);
    assert!(here[0] == 0.0 && here[1] > 0.0 && here[2] == 0.0, "{here:?}");
}

/// If a node lacks a cable to a rail, the other rails carry the part of this rail.
#[test]
fn whole_rails_carry_the_part_of_a_broken_one() {
    let mut machine = machine();
    machine.sites[0].missing.push(MissingCable {
        level: 0,
        group: 0,
        switch: 0,
        parent: 1,
        cable: 0,
    });
    let all = on(&[(0, 0.25), (1, 0.25), (2, 0.5)]);
    let (fabric, flows) = laid(&machine, [all.clone(), all]);
    let bytes: f64 = pattern("pairs").unwrap().traffic(2, 1).unwrap().entries()[0].bytes;
    let here = sent(&fabric, &flows, 0);
    assert_eq!(here[1], 0.0);
    assert!((here[0] - bytes / 3.0).abs() < 1e-9 * bytes, "{here:?}");
    assert!((here[2] - bytes * 2.0 / 3.0).abs() < 1e-9 * bytes, "{here:?}");
}
