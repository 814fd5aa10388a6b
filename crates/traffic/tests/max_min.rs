//! Max-min fair rates, tested on systems solved by hand and against the definition.
// Equal values must be equal to the last bit.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

mod common;

use std::sync::Arc;

use common::{job, jobs, tree};
use proptest::prelude::*;
use topolane_fabric::{Fabric, Routing, Splits, pgft, routing};
use topolane_traffic::{Contention, Filling, Flows, MaxMin};

/// The rates of flows over channels of these capacities.
fn rates(capacity: &[f64], paths: &[&[u32]]) -> Vec<f64> {
    let flows = Flows::of_paths(paths.iter().map(|path| ((0, 1), 1.0, *path)), Splits::default());
    Filling::new(capacity.into()).rates(&[&flows])
}

fn assert_rates(capacity: &[f64], paths: &[&[u32]], expected: &[f64]) {
    let rates = rates(capacity, paths);
    assert_eq!(rates.len(), expected.len());
    for (flow, (rate, expected)) in rates.iter().zip(expected).enumerate() {
        assert!((rate - expected).abs() <= 1e-12 * expected, "flow {flow}: {rate}, not {expected}");
    }
}

/// x + y = 1, x = y: half each.
#[test]
fn two_flows_over_one_channel_get_half_each() {
    assert_rates(&[1.0], &[&[0], &[0]], &[0.5, 0.5]);
}

/// Five times x = 3.
#[test]
fn n_flows_over_one_channel_get_an_nth_each() {
    assert_rates(&[3.0], &[&[0][..]; 5], &[0.6; 5]);
}

/// x = 2 on A, y = 5 on B, no channel in common.
#[test]
fn flows_that_meet_nowhere_get_all() {
    assert_rates(&[2.0, 5.0], &[&[0], &[1]], &[2.0, 5.0]);
}

/// A flow gets what the narrowest channel of its way carries: min(4, 1, 3).
#[test]
fn a_flow_alone_gets_the_least_of_its_channels() {
    assert_rates(&[4.0, 1.0, 3.0], &[&[0, 1, 2]], &[1.0]);
}

/// x + y = 1 on A and y + z = 2 on B. A is full first, so x = y = 1/2, and z takes what is left of B, 3/2.
#[test]
fn what_one_cannot_use_the_other_takes() {
    assert_rates(&[1.0, 2.0], &[&[0], &[0, 1], &[1]], &[0.5, 0.5, 1.5]);
}

/// The parking lot: one long flow over four channels of capacity 1, and another flow on each channel: `x + y_i = 1` for
/// all i. All rates are 1/2: a long way costs no more than a short one.
#[test]
fn a_long_way_gets_as_much_as_the_short_ones_it_meets() {
    let paths: [&[u32]; 5] = [&[0, 1, 2, 3], &[0], &[1], &[2], &[3]];
    assert_rates(&[1.0; 4], &paths, &[0.5; 5]);
}

/// One long flow over channels of capacity 1, 2, 3 and 4, and another flow on each. The first channel holds the long
/// flow at 1/2, and `y_i` is capacity - 1/2.
#[test]
fn the_narrowest_channel_of_a_line_holds_the_long_flow() {
    let paths: [&[u32]; 5] = [&[0, 1, 2, 3], &[0], &[1], &[2], &[3]];
    assert_rates(&[1.0, 2.0, 3.0, 4.0], &paths, &[0.5, 0.5, 1.5, 2.5, 3.5]);
}

/// Three levels of filling: a1 + a2 + a3 = 3 on A, a3 + b = 4 on B, b + c = 12 on C.
/// A: a = 1 each. B: b = 4 - 1 = 3. C: c = 12 - 3 = 9.
#[test]
fn bottlenecks_fill_one_after_the_other() {
    let paths: [&[u32]; 5] = [&[0], &[0], &[0, 1], &[1, 2], &[2]];
    assert_rates(&[3.0, 4.0, 12.0], &paths, &[1.0, 1.0, 1.0, 3.0, 9.0]);
}

/// Two channels become full at the same moment: x + y = 2 on A, y + z = 2 on B, so all rates are 1.
#[test]
fn two_bottlenecks_at_once() {
    assert_rates(&[2.0, 2.0], &[&[0], &[0, 1], &[1]], &[1.0, 1.0, 1.0]);
}

/// Two leaves have two nodes and one uplink each, of the bandwidth of a node. Both nodes of leaf 0 send to leaf 1: the
/// uplink is the bottleneck, and each flow gets half. A flow inside leaf 1, from the node that receives, shares no
/// channel and gets all.
#[test]
fn a_tapered_uplink_is_shared() {
    // The channels: 0 and 1 up from the nodes of leaf 0, 2 and 3 down to those of leaf 1, 4 up from leaf 0 and 5 down
    // to leaf 1, 6 up from node 2.
    let paths: [&[u32]; 3] = [&[0, 4, 5, 2], &[1, 4, 5, 3], &[6, 3]];
    // The channel down to node 3 is shared with a flow that is held at 1/2 elsewhere, so the other flow takes the rest.
    assert_rates(&[1.0; 7], &paths, &[0.5, 0.5, 0.5]);
    assert_rates(&[1.0, 1.0, 1.0, 4.0, 1.0, 1.0, 9.0], &paths, &[0.5, 0.5, 3.5]);
}

/// A flow inside a node uses no channel, so nothing limits it here.
#[test]
fn a_flow_inside_a_node_takes_no_channel() {
    assert_eq!(rates(&[1.0], &[&[], &[0]]), [f64::INFINITY, 1.0]);
}

/// A `Filling` gives the same rates again after other flows were asked for.
#[test]
fn nothing_is_left_of_the_last_question() {
    let mut filling = Filling::new([1.0, 2.0].into());
    let one = Flows::of_paths(
        [((0, 1), 1.0, &[0u32, 1][..]), ((0, 1), 1.0, &[1][..])],
        Splits::default(),
    );
    let two = Flows::of_paths([((0, 1), 1.0, &[1u32][..])], Splits::default());
    let first = filling.rates(&[&one]);
    assert_eq!(filling.rates(&[&two]), [2.0]);
    assert_eq!(filling.rates(&[&one]), first);
    assert_eq!(first, [1.0, 1.0]);
}

/// The capacities of the channels, and the channels of every flow.
fn systems() -> impl Strategy<Value = (Vec<f64>, Vec<Vec<u32>>)> {
    let capacity = prop::collection::vec(prop_oneof![Just(1.0), 1e-3..1e3f64], 1..12);
    capacity.prop_flat_map(|capacity| {
        let channels: Vec<u32> = (0..capacity.len() as u32).collect();
        let most = channels.len().min(6);
        let path = prop::sample::subsequence(channels, 0..=most).prop_shuffle();
        (Just(capacity), prop::collection::vec(path, 0..40))
    })
}

fn borrowed(paths: &[Vec<u32>]) -> Vec<&[u32]> {
    paths.iter().map(Vec::as_slice).collect()
}

proptest! {
    /// The definition (Bertsekas & Gallager 1992, section 6.5.2): no channel carries more than it
    /// can, and every flow has a bottleneck, a channel that is full and on which no other flow has
    /// a higher rate.
    #[test]
    fn every_flow_has_a_bottleneck((capacity, paths) in systems()) {
        let rates = rates(&capacity, &borrowed(&paths));
        let mut load = vec![0.0; capacity.len()];
        let mut highest = vec![0.0f64; capacity.len()];
        for (rate, path) in rates.iter().zip(&paths) {
            for &channel in path {
                load[channel as usize] += rate;
                highest[channel as usize] = highest[channel as usize].max(*rate);
            }
        }
        for (load, capacity) in load.iter().zip(&capacity) {
            prop_assert!(*load <= capacity * (1.0 + 1e-9));
        }
        for (rate, path) in rates.iter().zip(&paths).filter(|(_, path)| !path.is_empty()) {
            let bottleneck = path.iter().map(|&channel| channel as usize).any(|channel| {
                load[channel] >= capacity[channel] * (1.0 - 1e-9)
                    && *rate >= highest[channel] * (1.0 - 1e-9)
            });
            prop_assert!(bottleneck, "{} has no bottleneck among {:?}", rate, path);
        }
    }

    /// Every flow with a weight, as jobs have them, has a bottleneck too: a full channel on which no other flow has a
    /// higher rate per weight.
    #[test]
    fn every_weighted_flow_has_a_bottleneck(name in common::routing_names(), jobs in jobs()) {
        let ways = common::ways(name);
        let laid: Vec<Arc<Flows>> =
            common::laid(&jobs, &*ways).into_iter().map(|(_, flows)| flows).collect();
        let capacity: Vec<f64> = (0..ways.channels()).map(|c| ways.capacity(c)).collect();
        let refs: Vec<&Flows> = laid.iter().map(|flows| &**flows).collect();
        let rates = Filling::new(capacity.clone().into()).rates(&refs);
        let each = || laid.iter().flat_map(|flows| (0..flows.len()).map(move |flow| (flows, flow)));
        let mut load = vec![0.0; capacity.len()];
        let mut highest = vec![0.0f64; capacity.len()];
        for ((flows, flow), rate) in each().zip(&rates) {
            for (channel, part) in common::parts(flows, flow) {
                load[channel as usize] += part * rate;
                highest[channel as usize] = highest[channel as usize].max(rate / flows.weight(flow));
            }
        }
        for ((flows, flow), rate) in each().zip(&rates) {
            let per_weight = rate / flows.weight(flow);
            let bottleneck = common::parts(flows, flow).iter().map(|part| part.0 as usize).any(|channel| {
                load[channel] >= capacity[channel] * (1.0 - 1e-9)
                    && per_weight >= highest[channel] * (1.0 - 1e-6)
            });
            prop_assert!(bottleneck, "flow {} with {} per weight", flow, per_weight);
        }
        for (load, capacity) in load.iter().zip(&capacity) {
            prop_assert!(*load <= capacity * (1.0 + 1e-9));
        }
    }

    /// Rates belong to flows, not to the order in which they are given.
    #[test]
    fn the_order_of_flows_does_not_matter((capacity, mut paths) in systems()) {
        let there = rates(&capacity, &borrowed(&paths));
        paths.reverse();
        let back = rates(&capacity, &borrowed(&paths));
        for (one, other) in there.iter().zip(back.iter().rev()) {
            prop_assert!(one == other || (one - other).abs() <= 1e-9 * one, "{one} {other}");
        }
    }

    /// With twice the bandwidth everywhere, the rates are exactly twice as high, because 2 is a power of two.
    #[test]
    fn rates_scale_with_the_bandwidth((capacity, paths) in systems()) {
        let twice: Vec<f64> = capacity.iter().map(|capacity| 2.0 * capacity).collect();
        let doubled: Vec<f64> =
            rates(&capacity, &borrowed(&paths)).iter().map(|rate| 2.0 * rate).collect();
        prop_assert_eq!(rates(&twice, &borrowed(&paths)), doubled);
    }

    /// After jobs came and went, rates, times and slowdowns are those of the jobs that are left, as if they had come
    /// alone, to the last bit.
    #[test]
    fn events_leave_nothing_behind(
        name in common::routing_names(),
        jobs in jobs(),
        leaving in prop::collection::vec(any::<bool>(), 6),
    ) {
        let ways = common::ways(name);
        let mut model = MaxMin::new(&*ways);
        let mut fresh = MaxMin::new(&*ways);
        for (id, flows) in common::laid(&jobs, &*ways).into_iter().rev() {
            model.enter(id, flows);
            model.settle();
        }
        for (id, _) in (0..).zip(&jobs).filter(|(id, _)| leaving[*id as usize]) {
            model.leave(id);
        }
        for (id, flows) in common::laid(&jobs, &*ways) {
            if !leaving[id as usize] {
                fresh.enter(id, flows);
            }
        }
        fresh.settle();
        let laid = common::laid(&jobs, &*ways);
        for (id, flows) in laid.into_iter().filter(|(id, _)| !leaving[*id as usize]) {
            prop_assert_eq!(model.rates(id, &flows), fresh.rates(id, &flows));
            prop_assert_eq!(model.time(id).to_bits(), fresh.time(id).to_bits());
        }
    }
}

/// Jobs on nodes 0, 1 and on nodes 2, 3 of one leaf share nothing: their slowdown is exactly 1, and nothing is
/// reported. A third job from node 0 shares the link up of the first: each flow gets half and takes twice as long. When
/// the third job leaves, a slowdown of 1 is reported for the first.
#[test]
fn slowdown_is_time_per_time_alone() {
    let ways: Arc<dyn Routing> = routing("d-mod-k", &tree(), 0).unwrap().into();
    let mut model = MaxMin::new(&*ways);
    model.enter(1, job(&[(0, 1, 8.0)], &*ways));
    model.enter(2, job(&[(2, 3, 8.0)], &*ways));
    assert_eq!(model.settle(), []);
    let alone = model.time(1);
    model.enter(3, job(&[(0, 2, 8.0)], &*ways));
    assert_eq!(model.settle(), [(1, 2.0), (3, 2.0)]);
    assert_eq!(model.time(1), 2.0 * alone);
    model.leave(3);
    assert_eq!(model.settle(), [(1, 1.0)]);
    assert_eq!(model.time(1), alone);
}

/// Node 0 sends to 4 and 5, and node 1 sends to 6. The three flows share the one link up from their leaf. If flows
/// weigh by what their node sends, the two of node 0 have a quarter each and that of node 1 a half. If all flows weigh
/// the same, each has a third.
#[test]
fn flows_weigh_what_their_node_sends_or_all_the_same() {
    let fabric = Fabric::build(&pgft("thin", &[4, 2], &[1, 1], &[1, 1])).unwrap();
    let ways: Arc<dyn Routing> = routing("d-mod-k", &Arc::new(fabric), 0).unwrap().into();
    let link = ways.capacity(0);
    for (mut model, shares) in
        [(MaxMin::new(&*ways), [0.25, 0.25, 0.5]), (MaxMin::of_flows(&*ways), [1.0 / 3.0; 3])]
    {
        let flows = [job(&[(0, 4, 1.0), (0, 5, 1.0)], &*ways), job(&[(1, 6, 1.0)], &*ways)];
        model.enter(1, Arc::clone(&flows[0]));
        model.enter(2, Arc::clone(&flows[1]));
        let rates = [model.rates(1, &flows[0]), model.rates(2, &flows[1])].concat();
        for (rate, share) in rates.iter().zip(shares) {
            assert!((rate - share * link).abs() < 1e-9 * link, "{rates:?}");
        }
    }
}
