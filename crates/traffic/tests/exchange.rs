//! All-to-all traffic, laid leaf by leaf and pair by pair.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{ALL_ORDERS, jobs, laid, parts, routing_names, wired};
use proptest::prelude::*;
use topolane_fabric::{Children, Fabric, Group, Routing, pgft, preset, routing};
use topolane_traffic::{Congestion, Contention, Exchange, Flows, Traffic, TrafficEntry, pattern};

/// The largest difference that rounding may make.
const ROUNDING: f64 = 1e-9;

/// The children, parents and cables of every level.
type Shape = (&'static [u32], &'static [u32], &'static [u32]);

/// Trees with one link for each node. Some are narrow at the top, some have parallel switches and cables, and some have
/// one level. In some of them every fifth node has an interface of a tenth of the bandwidth.
fn trees() -> impl Strategy<Value = Arc<Fabric>> {
    let shapes: Vec<Shape> = vec![
        (&[3, 3, 3], &[1, 2, 1], &[1, 1, 2]),
        (&[4, 3, 3], &[1, 3, 2], &[1, 2, 1]),
        (&[9, 3], &[1, 1], &[1, 1]),
        (&[27], &[1], &[1]),
    ];
    let tree = |((nodes, parents, cables), are_alike): (Shape, bool)| {
        let mut description = pgft("tree", nodes, parents, cables);
        if !are_alike {
            let slow = description.sites[0].cabling[0].bandwidth / 10.0;
            description.kinds.push(description.kinds[0].clone());
            description.kinds[1].nic_bandwidth = slow;
            let mut count = 0;
            slow_down(&mut description.sites[0].root, &mut count);
        }
        Arc::new(Fabric::build(&description).unwrap())
    };
    (prop::sample::select(shapes), any::<bool>()).prop_map(tree)
}

fn slow_down(group: &mut Group, count: &mut u32) {
    match &mut group.children {
        Children::Nodes(nodes) => {
            for node in nodes {
                node.kind = u32::from((*count).is_multiple_of(5));
                *count += 1;
            }
        }
        Children::Groups(groups) => groups.iter_mut().for_each(|group| slow_down(group, count)),
    }
}

/// Returns the routing of this name, on the tree or on a machine of its kind.
fn ways(name: &str, tree: &Arc<Fabric>) -> Box<dyn Routing> {
    wired(name).unwrap_or_else(|| routing(name, tree, 3).unwrap())
}

/// Routings whose routes are by leaf on any of these machines.
const BY_LEAF: [&str; 7] =
    ["d-mod-k", "adaptive", "minimal", "minimal-hashed", "valiant", "dimension-order", ALL_ORDERS];

/// The ranks' nodes, no node twice.
fn nodes() -> impl Strategy<Value = Vec<u32>> {
    let nodes = prop::sample::subsequence((0u32..27).collect::<Vec<_>>(), 2..=27);
    nodes.prop_shuffle()
}

fn all_to_all(ranks: u32, bytes: f64) -> Traffic {
    pattern(&format!("alltoall(bytes={bytes})")).unwrap().traffic(ranks, 0).unwrap()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= ROUNDING * a.abs().max(b.abs())
}

proptest! {
    /// The bytes, the number of flows and the weight on every channel are those of flows that are laid one by one.
    #[test]
    fn channels_carry_what_the_flows_send(tree in trees(), nodes in nodes(), bytes in 1u32..1_000_000) {
        for name in BY_LEAF {
            let ways = ways(name, &tree);
            let traffic = all_to_all(nodes.len() as u32, f64::from(bytes));
            let exchange = Exchange::new(&traffic, &nodes, &*ways).unwrap();
            let flows = Flows::new(&traffic, &nodes, &*ways).unwrap();
            let mut count = BTreeMap::new();
            for flow in 0..flows.len() {
                prop_assert!(near(flows.weight(flow), exchange.weight()));
                for (channel, part) in parts(&flows, flow) {
                    *count.entry(channel).or_insert(0.0) += part;
                }
            }
            let of_flows = |&(channel, flows): &(u32, f64)| near(count[&channel], flows);
            prop_assert_eq!(exchange.used().len(), count.len());
            prop_assert!(exchange.used().iter().all(of_flows));
            let (one, other) = (exchange.per_channel(), flows.per_channel());
            prop_assert_eq!(one.len(), other.len());
            prop_assert!(one.iter().zip(other).all(|(a, b)| a.0 == b.0 && near(a.1, b.1)));
        }
    }

    /// Slowdowns, times and the level of every channel are the same in the congestion model whichever way the job's
    /// traffic is laid.
    #[test]
    fn both_ways_cost_the_same(
        tree in trees(),
        nodes in nodes(),
        others in jobs(),
        bytes in 1u32..1_000_000,
        name in routing_names(),
    ) {
        let ways = ways(name, &tree);
        let traffic = all_to_all(nodes.len() as u32, f64::from(bytes));
        let Some(exchange) = Exchange::new(&traffic, &nodes, &*ways) else {
            prop_assert!(["s-mod-k", "random"].contains(&name));
            return Ok(());
        };
        let mut by_leaf = Congestion::new(&*ways);
        let mut by_pair = Congestion::new(&*ways);
        for (id, flows) in laid(&others, &*ways) {
            by_leaf.enter(id, Arc::clone(&flows));
            by_pair.enter(id, flows);
        }
        prop_assert!(by_leaf.enter_exchange(100, &exchange));
        by_pair.enter(100, Arc::new(Flows::new(&traffic, &nodes, &*ways).unwrap()));
        for job in (0..others.len() as u64).chain([100]) {
            prop_assert!(near(by_leaf.time(job), by_pair.time(job)), "job {job}");
        }
        for channel in 0..ways.channels() {
            let (one, other) = (by_leaf.level(channel), by_pair.level(channel));
            prop_assert!(one.to_bits() == other.to_bits() || near(one, other), "channel {channel}");
        }
    }

    /// If a routing claims that its routes are by leaf, they are. Routes from the nodes of one leaf to the same node
    /// differ only in the first channel, and all routes from a node have the same first channel.
    #[test]
    fn routes_by_leaf_differ_in_the_first_channel(tree in trees()) {
        for name in BY_LEAF {
            let ways = ways(name, &tree);
            let tree = ways.fabric();
            prop_assert!(ways.by_leaf());
            let path = |from, to| {
                let mut path = Vec::new();
                ways.path(from, to, &mut path).unwrap();
                path
            };
            let mut beyond = BTreeMap::new();
            for from in 0..tree.nodes() {
                let mut first = None;
                for to in (0..tree.nodes()).filter(|&to| to != from) {
                    let channels = path(from, to);
                    prop_assert_eq!(*first.get_or_insert(channels[0]), channels[0]);
                    let rest = channels[1..].to_vec();
                    prop_assert_eq!(beyond.entry((tree.group(1, from), to)).or_insert(rest.clone()), &rest);
                }
            }
        }
    }
}

/// There is no exchange if classes would not be exact: for a pair that sends more than others, a node with two ranks, a
/// rank without a node, or a single rank; for routes by sender or at random; and on machines with several links to a
/// node, missing cables or domains.
#[test]
fn what_is_not_by_leaf_has_no_exchange() {
    let tree = common::tree();
    let by_destination = routing("d-mod-k", &tree, 0).unwrap();
    let whole = all_to_all(3, 8.0);
    let lay = |traffic: &Traffic, nodes: &[u32], ways: &dyn Routing| {
        Exchange::new(traffic, nodes, ways).is_some()
    };
    assert!(lay(&whole, &[0, 1, 9], &*by_destination));
    let more = whole.entries().iter().copied();
    let more = more.chain([TrafficEntry { from: 0, to: 1, bytes: 1.0, messages: 1.0 }]);
    assert!(!lay(&Traffic::new(3, more).unwrap(), &[0, 1, 9], &*by_destination));
    assert!(!lay(&whole, &[0, 1, 1], &*by_destination));
    assert!(!lay(&whole, &[0, 1], &*by_destination));
    assert!(!lay(&all_to_all(1, 8.0), &[0], &*by_destination));
    for name in ["s-mod-k", "random"] {
        assert!(!lay(&whole, &[0, 1, 9], &*routing(name, &tree, 0).unwrap()), "{name}");
    }
    let two_links = Fabric::build(&pgft("two", &[3, 3], &[2, 2], &[1, 1])).unwrap();
    let ways = routing("d-mod-k", &Arc::new(two_links), 0).unwrap();
    assert!(!lay(&whole, &[0, 1, 4], &*ways));
    let domains = Fabric::build(&preset("nvl72-5000").unwrap().unwrap()).unwrap();
    for name in ["d-mod-k", "adaptive"] {
        assert!(!routing(name, &Arc::new(domains.clone()), 0).unwrap().by_leaf());
    }
}
