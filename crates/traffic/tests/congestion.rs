//! What the congestion model promises at every event.
// What is the same is the same to the last bit.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{job, jobs, laid, routing_names, tree};
use proptest::prelude::*;
use topolane_fabric::{Routing, routing};
use topolane_traffic::{Congestion, Contention, Flows};

fn ways(name: &str) -> Arc<dyn Routing> {
    routing(name, &tree(), 3).unwrap().into()
}

/// The slowdowns by what `settle` tells, as a driver keeps them.
fn told(model: &mut Congestion, slowdowns: &mut BTreeMap<u64, f64>) {
    for (job, slowdown) in model.settle() {
        slowdowns.insert(job, slowdown);
    }
}

/// Bytes over each channel per its capacity, for one job.
fn seconds(flows: &Flows, ways: &dyn Routing) -> Vec<f64> {
    let mut seconds = vec![0.0; ways.channels() as usize];
    for flow in 0..flows.len() {
        for &channel in flows.channels(flow) {
            seconds[channel as usize] += flows.bytes(flow) / ways.capacity(channel);
        }
    }
    seconds
}

/// The definition, from scratch: `u_j(c) = seconds_j(c) / max of seconds_j`, and the slowdown of j
/// `max(1, max over its c of the sum over all jobs of u_i(c))`.
fn slowdowns(jobs: &[(u64, Arc<Flows>)], ways: &dyn Routing) -> Vec<f64> {
    let shares: Vec<Vec<f64>> = jobs
        .iter()
        .map(|(_, flows)| {
            let seconds = seconds(flows, ways);
            let most = seconds.iter().copied().fold(0.0, f64::max);
            seconds.iter().map(|s| if most > 0.0 { s / most } else { 0.0 }).collect()
        })
        .collect();
    let load = |channel: usize| shares.iter().map(|job| job[channel]).sum::<f64>();
    (0..jobs.len())
        .map(|job| {
            let used = (0..shares[job].len()).filter(|&channel| shares[job][channel] > 0.0);
            used.map(load).fold(1.0, f64::max)
        })
        .collect()
}

/// Everything that can be asked of the model, bit by bit.
fn state(model: &mut Congestion, ids: &[u64]) -> Vec<u64> {
    let channels = model.loads().channels();
    let mut bits: Vec<u64> = (0..channels).map(|c| model.loads().load(c).to_bits()).collect();
    for channel in 0..channels {
        let mut users: Vec<(u64, u64)> =
            model.loads().users(channel).map(|(job, share)| (job, share.to_bits())).collect();
        users.sort_unstable();
        bits.extend(users.into_iter().flat_map(|(job, share)| [job, share]));
    }
    for &id in ids {
        bits.push(model.time(id).to_bits());
        bits.extend(model.rates(id).iter().map(|rate| rate.to_bits()));
    }
    bits
}

proptest! {
    /// After any events in any order, what was told is what the definition says of the jobs
    /// present, to the rounding of the fixed point: 2^-40 for every user of a channel.
    #[test]
    fn what_is_told_is_the_definition(
        name in routing_names(),
        jobs in jobs(),
        events in prop::collection::vec(0usize..6, 0..30),
    ) {
        let ways = ways(name);
        let laid = laid(&jobs, &*ways);
        let mut model = Congestion::new(&*ways);
        let mut slowdown = BTreeMap::new();
        for event in events.into_iter().filter(|event| *event < laid.len()) {
            let (id, flows) = &laid[event];
            if slowdown.remove(id).is_some() {
                model.leave(*id);
            } else {
                slowdown.insert(*id, 1.0);
                model.enter(*id, Arc::clone(flows));
            }
            told(&mut model, &mut slowdown);
            let present: Vec<_> =
                laid.iter().filter(|(id, _)| slowdown.contains_key(id)).cloned().collect();
            for ((id, _), expected) in present.iter().zip(slowdowns(&present, &*ways)) {
                prop_assert!((slowdown[id] - expected).abs() < 1e-10, "{slowdown:?} {expected}");
            }
        }
    }

    /// Jobs that come and go, in whatever order, leave the state as it was, to the last bit.
    #[test]
    fn what_goes_leaves_nothing_behind(
        name in routing_names(),
        jobs in jobs(),
        order in Just((0usize..6).collect::<Vec<_>>()).prop_shuffle(),
        staying in prop::collection::vec(any::<bool>(), 6),
    ) {
        let ways = ways(name);
        let laid = laid(&jobs, &*ways);
        let stay: Vec<u64> = laid.iter().map(|job| job.0).filter(|&id| staying[id as usize]).collect();
        let mut model = Congestion::new(&*ways);
        for &id in &stay {
            model.enter(id, Arc::clone(&laid[id as usize].1));
        }
        model.settle();
        let before = state(&mut model, &stay);
        let passing = || (0..laid.len() as u64).filter(|&id| !staying[id as usize]);
        for id in passing() {
            model.enter(id, Arc::clone(&laid[id as usize].1));
        }
        model.settle();
        for id in order.iter().map(|&place| place as u64).filter(|id| passing().any(|p| p == *id)) {
            model.leave(id);
            model.settle();
        }
        prop_assert_eq!(state(&mut model, &stay), before);
    }

    /// Another job never helps: nobody is slowed less for it.
    #[test]
    fn another_job_never_helps(name in routing_names(), jobs in jobs()) {
        let ways = ways(name);
        let mut model = Congestion::new(&*ways);
        let mut slowdown: BTreeMap<u64, f64> = BTreeMap::new();
        for (id, flows) in laid(&jobs, &*ways) {
            model.enter(id, flows);
            let before = slowdown.clone();
            slowdown.insert(id, 1.0);
            told(&mut model, &mut slowdown);
            prop_assert!(before.iter().all(|(id, value)| slowdown[id] >= *value));
        }
    }

    /// A job is slowed by others or not at all: one that shares no channel by exactly 1, whatever
    /// it does to itself.
    #[test]
    fn what_shares_nothing_is_not_slowed(name in routing_names(), jobs in jobs()) {
        let ways = ways(name);
        let laid = laid(&jobs, &*ways);
        let mut model = Congestion::new(&*ways);
        let mut slowdown: BTreeMap<u64, f64> = laid.iter().map(|(id, _)| (*id, 1.0)).collect();
        for (id, flows) in &laid {
            model.enter(*id, Arc::clone(flows));
        }
        told(&mut model, &mut slowdown);
        for (id, flows) in &laid {
            let mut channels = (0..flows.len()).flat_map(|flow| flows.channels(flow));
            if channels.all(|&channel| model.loads().users(channel).count() == 1) {
                prop_assert_eq!(slowdown[id].to_bits(), 1.0f64.to_bits());
                prop_assert_eq!(model.time(*id), model.loads().time_alone(*id));
            }
        }
    }

    /// The rates of a job's flows never ask more of a channel than it has, taken over all jobs:
    /// what a model gives, the machine can carry.
    #[test]
    fn rates_fit_the_channels(name in routing_names(), jobs in jobs()) {
        let ways = ways(name);
        let laid = laid(&jobs, &*ways);
        let mut model = Congestion::new(&*ways);
        for (id, flows) in &laid {
            model.enter(*id, Arc::clone(flows));
        }
        let mut load = vec![0.0; ways.channels() as usize];
        for (id, flows) in &laid {
            for (flow, rate) in model.rates(*id).into_iter().enumerate() {
                for &channel in flows.channels(flow) {
                    load[channel as usize] += rate;
                }
            }
        }
        for (channel, load) in load.iter().enumerate() {
            prop_assert!(*load <= ways.capacity(channel as u32) * (1.0 + 1e-9));
        }
    }
}

/// Alone, each of two jobs wants all of the link up from node 0: with both, each has half, and its
/// time doubles.
#[test]
fn two_jobs_that_want_one_link_take_twice_as_long() {
    let ways = ways("d-mod-k");
    let mut model = Congestion::new(&*ways);
    model.enter(1, job(&[(0, 1, 8.0)], &*ways));
    let alone = model.time(1);
    model.enter(2, job(&[(0, 2, 4.0)], &*ways));
    assert_eq!(model.settle(), [(1, 2.0), (2, 2.0)]);
    assert_eq!(model.time(1), 2.0 * alone);
    model.leave(2);
    assert_eq!(model.settle(), [(1, 1.0)]);
}

/// Job 1 sends 3 bytes over the link up from node 0 for every byte from node 1, its bottleneck is
/// node 0; job 2 uses node 1 alone. There job 1 wants 1/3 and job 2 all: 1/3 + 1 = 4/3 for both.
#[test]
fn a_channel_that_is_no_bottleneck_slows_by_what_is_wanted_of_it() {
    let ways = ways("d-mod-k");
    let mut model = Congestion::new(&*ways);
    model.enter(1, job(&[(0, 2, 3.0), (1, 3, 1.0)], &*ways));
    model.enter(2, job(&[(1, 4, 5.0)], &*ways));
    let told = model.settle();
    assert_eq!(told.iter().map(|job| job.0).collect::<Vec<_>>(), [1, 2]);
    assert!(told.iter().all(|job| (job.1 - 4.0 / 3.0).abs() < 1e-11), "{told:?}");
}
