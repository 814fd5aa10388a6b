//! The models of the inside of nodes: their formulas by hand, and what holds for any flows.
// Equal values must be equal to the last bit.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

mod common;

use std::sync::Arc;

use common::{job, jobs, laid, tree};
use proptest::prelude::*;
use topolane_fabric::{Fabric, Routing, Splits, pgft, routing};
use topolane_traffic::{Flows, MODELS, contention};

const MODELS_OF_NODES: [&str; 4] = ["shared-memory", "infiniband", "ethernet", "full"];
/// The rate of a flow that is alone on the machine of these tests, and of a copy that is alone inside a node, in bytes
/// per second.
const ALONE: f64 = 4e9;

fn ways() -> Arc<dyn Routing> {
    routing("d-mod-k", &tree(), 0).unwrap().into()
}

/// The factor by which each flow of a job is slower than alone. Each pair is the sending and the receiving node of a
/// flow.
fn penalties(model: &str, sent: &[(u32, u32)]) -> Vec<f64> {
    let ways = ways();
    // Every entry is a flow of its own, whereas a matrix would add up entries of the same pair.
    let mut paths = Vec::new();
    for &(from, to) in sent {
        let mut path = Vec::new();
        ways.path(from, to, &mut path).unwrap();
        paths.push(path);
    }
    let flows = sent.iter().zip(&paths).map(|(&ends, path)| (ends, 1e6, path.as_slice()));
    let mut model = contention(model, &*ways).unwrap();
    let flows = Arc::new(Flows::of_paths(flows, Splits::default()));
    model.enter(1, Arc::clone(&flows));
    model.rates(1, &flows).iter().map(|rate| ALONE / rate).collect()
}

fn assert_penalties(model: &str, sent: &[(u32, u32)], expected: &[f64]) {
    let penalties = penalties(model, sent);
    assert_eq!(penalties.len(), expected.len());
    for (flow, (penalty, expected)) in penalties.iter().zip(expected).enumerate() {
        assert!((penalty - expected).abs() < 1e-12, "{model}, {flow}: {penalty}, not {expected}");
    }
}

/// Each of n copies on a node gets min(4e9, 6.4e10 / 4 n): its own speed up to n = 4, then a share of the memory
/// bandwidth, because each byte passes the memory four times. Flows to other nodes are not slowed.
#[test]
fn copies_share_memory() {
    for (copies, expected) in [(1, 1.0), (4, 1.0), (5, 1.25), (8, 2.0)] {
        assert_penalties("shared-memory", &vec![(3, 3); copies], &vec![expected; copies]);
    }
    assert_penalties("shared-memory", &[(0, 0), (1, 1), (0, 1)], &[1.0, 1.0, 0.0]);
}

/// The penalties: for n flows out of a node 0.925 n; for n flows from n nodes into one 0.965 n; for f of the flows into
/// a node, from one of s senders, 0.965 f s; for n flows out of a node, of which one goes to a receiver of more than
/// two flows, 0.925 * 1.35 n.
#[test]
fn infiniband_by_hand() {
    assert_penalties("infiniband", &[(0, 1), (0, 2)], &[1.85; 2]);
    assert_penalties("infiniband", &[(0, 1), (0, 2), (0, 3)], &[2.775; 3]);
    assert_penalties("infiniband", &[(0, 3), (1, 3)], &[1.93; 2]);
    assert_penalties("infiniband", &[(0, 3), (1, 3), (2, 3)], &[2.895; 3]);
    // Two flows between one pair: out 1.85, in 2 * 1 * 0.965.
    assert_penalties("infiniband", &[(0, 1), (0, 1)], &[1.93; 2]);
    // Three flows between one pair crowd the receiver: out 3 * 0.925 * 1.35, in 3 * 0.965.
    assert_penalties("infiniband", &[(0, 1); 3], &[3.746_25; 3]);
    // Node 0 sends to the crowded node 3 and to node 4. Both flows bear 2 * 0.925 * 1.35 = 2.4975.
    let sent = [(0, 3), (0, 4), (1, 3), (2, 3)];
    assert_penalties("infiniband", &sent, &[2.895, 2.4975, 2.895, 2.895]);
}

/// The penalties for n flows out of or into a node are 0.75 n. If one of two flows out goes to a receiver at which
/// another arrives, it bears 1.5 (1 + 0.115), and the other flow out bears 1.5 (1 - 0.115). At that receiver, the flow
/// from the node that sends two bears 1.5 (1 + 0.036), and the flow from the other node 1.5 (1 - 0.036).
#[test]
fn ethernet_by_hand() {
    assert_penalties("ethernet", &[(0, 1), (0, 2)], &[1.5; 2]);
    assert_penalties("ethernet", &[(0, 1), (0, 2), (0, 3)], &[2.25; 3]);
    assert_penalties("ethernet", &[(0, 3), (1, 3), (2, 3)], &[2.25; 3]);
    assert_penalties("ethernet", &[(0, 3), (0, 4), (1, 3)], &[1.6725, 1.3275, 1.446]);
}

/// A flow gets the least rate of all models together. Two flows out of node 0 and two copies on it do not slow each
/// other. By links alone, each of the flows would have half.
#[test]
fn all_together_take_the_least() {
    let sent = [(0, 1), (0, 2), (0, 0), (0, 0)];
    assert_penalties("full", &sent, &[2.0, 2.0, 1.0, 1.0]);
}

/// The kinds of the nodes name the model and the rate of a flow alone: 1e9 / 1.85 for each flow.
#[test]
fn kinds_say_model_and_speed() {
    let mut machine = pgft("small", &[3], &[1], &[1]);
    machine.kinds[0].penalty = topolane_fabric::Penalty::infiniband();
    machine.kinds[0].flow_bandwidth = Some(1e9);
    let fabric = Arc::new(Fabric::build(&machine).unwrap());
    let ways = routing("d-mod-k", &fabric, 0).unwrap();
    let mut model = contention("full", &*ways).unwrap();
    let flows = job(&[(0, 1, 1.0), (0, 2, 1.0)], &*ways);
    model.enter(1, Arc::clone(&flows));
    assert_eq!(model.rates(1, &flows), [1e9 / 1.85; 2]);
}

/// Two jobs use one interface. Each of the two flows has a penalty of 1.85 (InfiniBand) next to the other, and of 1
/// alone.
#[test]
fn a_neighbour_on_the_interface_slows() {
    let ways = ways();
    let mut model = contention("infiniband", &*ways).unwrap();
    let flows = job(&[(0, 1, 1e6)], &*ways);
    model.enter(1, Arc::clone(&flows));
    assert_eq!(model.settle(), []);
    model.enter(2, job(&[(0, 2, 1e6)], &*ways));
    for (changed, job) in model.settle().into_iter().zip([1, 2]) {
        assert!(changed.0 == job && (changed.1 - 1.85).abs() < 1e-12, "{changed:?}");
    }
    model.leave(2);
    assert_eq!(model.settle(), [(1, 1.0)]);
    assert_eq!(model.rates(1, &flows), [ALONE]);
}

proptest! {
    /// A flow that is alone on the machine has no penalty, whatever the model.
    #[test]
    fn alone_there_is_no_penalty(from in 0u32..27, to in 0u32..27) {
        prop_assume!(from != to);
        for model in MODELS_OF_NODES {
            for penalty in penalties(model, &[(from, to)]) {
                prop_assert!(penalty == 1.0 || model == "shared-memory" && penalty == 0.0);
            }
        }
    }

    /// Penalties grow with the number of flows that share a pair, a sender or a receiver.
    #[test]
    fn penalties_grow_with_sharers(sharers in 1u32..8, model in 1usize..3) {
        let model = MODELS_OF_NODES[model];
        let pair = |_: u32| (0, 1);
        let out = |i: u32| (0, i + 1);
        let into = |i: u32| (i + 1, 0);
        let shapes: [&dyn Fn(u32) -> (u32, u32); 3] = [&pair, &out, &into];
        for shape in shapes {
            let few: Vec<_> = (0..sharers).map(shape).collect();
            let more: Vec<_> = (0..=sharers).map(shape).collect();
            prop_assert!(penalties(model, &few)[0] < penalties(model, &more)[0]);
        }
    }

    /// InfiniBand: one more flow anywhere never lowers the penalty of another flow.
    #[test]
    fn another_flow_helps_no_flow(sent in prop::collection::vec((0u32..9, 0u32..9), 1..12)) {
        let before = penalties("infiniband", &sent[..sent.len() - 1]);
        let after = penalties("infiniband", &sent);
        for (before, after) in before.iter().zip(after) {
            prop_assert!(after >= *before);
        }
    }

    /// A job that goes leaves nothing behind: the others have the rates as if it had never come.
    #[test]
    fn what_goes_leaves_nothing(sent in jobs()) {
        let ways = ways();
        let laid = laid(&sent, &*ways);
        for info in MODELS {
            let mut model = (info.build)(&*ways);
            for (job, flows) in &laid {
                model.enter(*job, Arc::clone(flows));
            }
            model.settle();
            model.leave(0);
            model.settle();
            let mut fresh = (info.build)(&*ways);
            for (job, flows) in &laid[1..] {
                fresh.enter(*job, Arc::clone(flows));
            }
            fresh.settle();
            for (job, flows) in &laid[1..] {
                let (now, alone) = (model.rates(*job, flows), fresh.rates(*job, flows));
                prop_assert_eq!(now, alone, "{}", info.name);
            }
        }
    }
}
