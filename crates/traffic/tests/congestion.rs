//! What the congestion model promises at every event.
// Equal values must be equal to the last bit.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use common::{job, jobs, laid, parts, routing_names, traffic, ways};
use proptest::prelude::*;
use topolane_fabric::{Fabric, Routing, pgft, routing};
use topolane_traffic::{Congestion, Contention, Flows, Outlook};

/// Adds what `settle` reports to the slowdowns, as a driver does.
fn reported(model: &mut Congestion, slowdowns: &mut BTreeMap<u64, f64>) {
    for (job, slowdown) in model.settle() {
        slowdowns.insert(job, slowdown);
    }
}

/// What one job wants: on each channel the sum of the weights of its flows and the sum of their rates when the job is
/// alone, the most bytes per weight, and the time that the job takes alone.
struct Wants {
    weight: Vec<f64>,
    rate: Vec<f64>,
    slowest: Vec<f64>,
    time: f64,
}

fn wants(flows: &Flows, ways: &dyn Routing) -> Wants {
    let none = || vec![0.0f64; ways.channels() as usize];
    let mut wants = Wants { weight: none(), rate: none(), slowest: none(), time: 0.0 };
    let all = || {
        let of_flow = |f| parts(flows, f).into_iter().map(move |(c, part)| (f, c as usize, part));
        (0..flows.len()).flat_map(of_flow)
    };
    for (flow, channel, part) in all() {
        wants.weight[channel] += part * flows.weight(flow);
    }
    for flow in 0..flows.len() {
        let share =
            |&(c, _): &(u32, f64)| flows.weight(flow) * ways.capacity(c) / wants.weight[c as usize];
        let rate = parts(flows, flow).iter().map(share).fold(f64::INFINITY, f64::min);
        wants.time = wants.time.max(flows.bytes(flow) / rate);
        for (channel, part) in parts(flows, flow) {
            wants.rate[channel as usize] += part * rate;
        }
    }
    for (flow, channel, _) in all() {
        let per_weight = flows.bytes(flow) / flows.weight(flow);
        wants.slowest[channel] = wants.slowest[channel].max(per_weight);
    }
    wants
}

/// The slowdowns by definition, computed from scratch. The level of a channel that is wanted too much solves `sum over
/// jobs of min(rate_j, level * weight_j) = capacity`, and is found by bisection. A job takes `max(time alone, max over
/// its channels of bytes / (weight * level))`.
fn slowdowns(jobs: &[(u64, Arc<Flows>)], ways: &dyn Routing) -> Vec<f64> {
    let wants: Vec<Wants> = jobs.iter().map(|(_, flows)| wants(flows, ways)).collect();
    let level = |channel: usize| {
        let given = |level: f64| {
            wants.iter().map(|w| w.rate[channel].min(level * w.weight[channel])).sum::<f64>()
        };
        let capacity = ways.capacity(channel as u32);
        let (mut low, mut high) = (0.0, capacity * 1e9);
        if given(high) <= capacity * (1.0 + 1e-9) {
            return f64::INFINITY;
        }
        for _ in 0..200 {
            let middle = f64::midpoint(low, high);
            if given(middle) < capacity { low = middle } else { high = middle }
        }
        low
    };
    let levels: Vec<f64> = (0..ways.channels() as usize).map(level).collect();
    let slowdown = |wants: &Wants| {
        let seconds = wants.slowest.iter().zip(&levels).map(|(slowest, level)| slowest / level);
        let time = seconds.fold(wants.time, f64::max);
        if wants.time > 0.0 { time / wants.time } else { 1.0 }
    };
    wants.iter().map(slowdown).collect()
}

/// Everything that the model answers, as bits.
fn state(model: &mut Congestion, channels: u32, jobs: &[(u64, Arc<Flows>)]) -> Vec<u64> {
    let mut bits: Vec<u64> = (0..channels).map(|c| model.level(c).to_bits()).collect();
    for (id, flows) in jobs {
        bits.push(model.time(*id).to_bits());
        bits.extend(model.rates(*id, flows).iter().map(|rate| rate.to_bits()));
    }
    bits
}

proptest! {
    /// After any events in any order, the reported slowdowns are those of the definition for the jobs present.
    #[test]
    fn what_is_reported_is_the_definition(
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
            reported(&mut model, &mut slowdown);
            let present: Vec<_> =
                laid.iter().filter(|(id, _)| slowdown.contains_key(id)).cloned().collect();
            for ((id, _), expected) in present.iter().zip(slowdowns(&present, &*ways)) {
                prop_assert!((slowdown[id] - expected).abs() < 1e-8 * expected, "{slowdown:?} {expected}");
            }
        }
    }

    /// Jobs that come and go, in whatever order, leave the model in its earlier state, to the last bit.
    #[test]
    fn what_goes_leaves_nothing_behind(
        name in routing_names(),
        jobs in jobs(),
        order in Just((0usize..6).collect::<Vec<_>>()).prop_shuffle(),
        staying in prop::collection::vec(any::<bool>(), 6),
    ) {
        let ways = ways(name);
        let laid = laid(&jobs, &*ways);
        let stay: Vec<_> = laid.iter().filter(|job| staying[job.0 as usize]).cloned().collect();
        let mut model = Congestion::new(&*ways);
        for (id, flows) in &stay {
            model.enter(*id, Arc::clone(flows));
        }
        model.settle();
        let before = state(&mut model, ways.channels(), &stay);
        let passing = || (0..laid.len() as u64).filter(|&id| !staying[id as usize]);
        for id in passing() {
            model.enter(id, Arc::clone(&laid[id as usize].1));
        }
        model.settle();
        for id in order.iter().map(|&place| place as u64).filter(|id| passing().any(|p| p == *id)) {
            model.leave(id);
            model.settle();
        }
        prop_assert_eq!(state(&mut model, ways.channels(), &stay), before);
    }

    /// Another job never helps: with it no job is slowed less, up to rounding.
    #[test]
    fn another_job_never_helps(name in routing_names(), jobs in jobs()) {
        let ways = ways(name);
        let mut model = Congestion::new(&*ways);
        let mut slowdown: BTreeMap<u64, f64> = BTreeMap::new();
        for (id, flows) in laid(&jobs, &*ways) {
            model.enter(id, flows);
            let before = slowdown.clone();
            slowdown.insert(id, 1.0);
            reported(&mut model, &mut slowdown);
            prop_assert!(before.iter().all(|(id, value)| slowdown[id] >= *value * (1.0 - 1e-12)));
        }
    }

    /// A job is only slowed by others. A job that shares no channel is slowed by exactly 1, even if its own flows share
    /// channels.
    #[test]
    fn what_shares_nothing_is_not_slowed(name in routing_names(), jobs in jobs()) {
        let ways = ways(name);
        let laid = laid(&jobs, &*ways);
        let mut model = Congestion::new(&*ways);
        let mut slowdown: BTreeMap<u64, f64> = laid.iter().map(|(id, _)| (*id, 1.0)).collect();
        for (id, flows) in &laid {
            model.enter(*id, Arc::clone(flows));
        }
        reported(&mut model, &mut slowdown);
        for (id, flows) in &laid {
            let theirs = |other: &u64| laid[*other as usize].1.per_channel();
            let others = laid.iter().map(|(other, _)| other).filter(|other| *other != id);
            let taken: BTreeSet<u32> = others.flat_map(theirs).map(|use_of| use_of.0).collect();
            if flows.per_channel().iter().all(|use_of| !taken.contains(&use_of.0)) {
                prop_assert_eq!(slowdown[id].to_bits(), 1.0f64.to_bits());
                let mut alone = Congestion::new(&*ways);
                alone.enter(*id, Arc::clone(flows));
                prop_assert_eq!(model.time(*id), alone.time(*id));
            }
        }
    }

    /// Summed over all jobs, the rates on a channel are no more than its capacity.
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
            for (flow, rate) in model.rates(*id, flows).into_iter().enumerate() {
                for (channel, part) in parts(flows, flow) {
                    load[channel as usize] += part * rate;
                }
            }
        }
        for (channel, load) in load.iter().enumerate() {
            prop_assert!(*load <= ways.capacity(channel as u32) * (1.0 + 1e-9));
        }
    }
}

/// Alone, each of two jobs wants all of the link up from node 0. Together each has half of it, and takes twice as long.
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

/// Job 1 sends 3 bytes from node 0 and 1 byte from node 1, both to node 2. The link of node 2 is the bottleneck, so
/// each flow has half of it. Job 2 also sends from node 1 and wants all of that link, of which job 1 wants half, so
/// each has half. Job 1 is not slowed at all, and job 2 is slowed twofold.
#[test]
fn a_job_that_wants_no_more_than_its_share_is_not_slowed() {
    let ways = ways("d-mod-k");
    let mut model = Congestion::new(&*ways);
    model.enter(1, job(&[(0, 2, 3.0), (1, 2, 1.0)], &*ways));
    model.enter(2, job(&[(1, 4, 5.0)], &*ways));
    assert_eq!(model.settle(), [(2, 2.0)]);
}

/// A node with many receivers gets no more of an uplink than one with a single receiver. Node 0 sends a byte to each of
/// six nodes of the other leaf, and node 1 six bytes to one node, over one uplink. Each gets half, and both take twice
/// as long.
#[test]
fn many_receivers_get_no_more_than_one() {
    let two_leaves = Fabric::build(&pgft("two", &[8, 2], &[1, 1], &[1, 1])).unwrap();
    let fabric = Arc::new(two_leaves);
    let ways: Arc<dyn Routing> = routing("d-mod-k", &fabric, 0).unwrap().into();
    let many: Vec<(u32, u32, f64)> = (8..14).map(|to| (0, to, 1.0)).collect();
    let mut model = Congestion::new(&*ways);
    model.enter(1, job(&many, &*ways));
    model.enter(2, job(&[(1, 14, 6.0)], &*ways));
    let changed = model.settle();
    assert!(
        changed.iter().all(|job| (job.1 - 2.0).abs() < 1e-12) && changed.len() == 2,
        "{changed:?}"
    );
}

proptest! {
    /// What an outlook predicts for a job, and for the jobs that it slows further, is what the model reports once the
    /// job is there. The outlook may add up in another order, so a level may differ in its last bits. Earlier outlooks
    /// leave nothing behind.
    #[test]
    fn an_outlook_says_what_entering_changes(jobs in jobs(), name in routing_names()) {
        let ways = ways(name);
        let laid = laid(&jobs, &*ways);
        let ((id, flows), present) = laid.split_last().unwrap();
        let mut model = Congestion::new(&*ways);
        for ((job, flows), drawn) in present.iter().zip(&jobs) {
            model.enter(*job, Arc::clone(flows));
            let (traffic, nodes) = traffic(drawn, &*ways);
            Outlook::new(&model, &*ways, &traffic).foresee(&nodes, None).unwrap();
        }
        let mut before = BTreeMap::new();
        reported(&mut model, &mut before);
        let (traffic, nodes) = traffic(jobs.last().unwrap(), &*ways);
        let mut outlook = Outlook::new(&model, &*ways, &traffic);
        let foreseen = outlook.foresee(&nodes, None).unwrap();
        prop_assert_eq!(&outlook.foresee(&nodes, None).unwrap(), &foreseen, "asked again");
        drop(outlook);
        let again = Outlook::new(&model.clone(), &*ways, &traffic).foresee(&nodes, None).unwrap();
        prop_assert_eq!(&again, &foreseen, "a copy of the model begins without memory");
        model.enter(*id, Arc::clone(flows));
        let mut after = before.clone();
        reported(&mut model, &mut after);
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b;
        prop_assert!(near(foreseen.slowdown, after.get(id).copied().unwrap_or(1.0)));
        for (job, _) in present {
            let said = foreseen.others.iter().find(|(other, ..)| other == job);
            let was = before.get(job).copied().unwrap_or(1.0);
            let is = after.get(job).copied().unwrap_or(1.0);
            prop_assert!(near(said.map_or(was, |&(_, _, with)| with), is));
        }
    }
}
