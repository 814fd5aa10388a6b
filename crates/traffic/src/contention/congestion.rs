//! A contention model that treats each channel on its own, which is fast enough to run at every event of a month.

use std::collections::HashMap;
use std::sync::Arc;

use topolane_fabric::{Channel, Routing, Splits};

use super::room::SpareMemory;
use super::{Contention, is_news};
use crate::exchange::{Exchange, FlowClass};
use crate::flows::Flows;

/// A channel counts as sufficient if the demand exceeds its capacity by at most this share, which rounding may cause.
const ROUNDING: f64 = 1e-9;

/// Max-min fairness on each channel separately, based on what each job wants when it is alone. If the demand on a
/// channel exceeds its capacity, rates per weight are cut to the level at which the channel is just full. A flow gets
/// the smallest rate that its channels allow.
#[derive(Debug, Clone)]
pub struct Congestion {
    pub(super) capacity: Box<[f64]>,
    /// For every channel, the largest rate per weight that a flow may have; infinite if the channel is sufficient.
    pub(super) level: Box<[f64]>,
    /// For every channel, the jobs that use it, sorted by demand per weight, then by id. So sums do not depend on the
    /// order of events.
    pub(super) users: Box<[Vec<ChannelUser>]>,
    pub(super) jobs: HashMap<u64, CongestedJob>,
    /// Jobs for which a channel has changed since the last `settle`.
    touched: Vec<u64>,
    scratch: Scratch,
    /// The number of splits of the routing.
    pub(super) splits: u32,
    /// Memory that one outlook leaves for the next.
    pub(super) room: SpareMemory,
}

/// Memory to sum up what a job does on each channel. It need not be cleared between jobs.
#[derive(Debug, Clone)]
pub(super) struct Scratch {
    weight: Box<[f64]>,
    place: Box<[u32]>,
}

impl Scratch {
    pub(super) fn new(channels: usize) -> Self {
        Scratch { weight: vec![0.0; channels].into(), place: vec![0; channels].into() }
    }
}

/// A job on a channel: the sum of its flows' weights, the bytes per second that they want, and the most bytes per
/// weight of any flow.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChannelUser {
    pub(super) job: u64,
    pub(super) weight: f64,
    pub(super) wanted: f64,
    pub(super) slowest: f64,
}

impl ChannelUser {
    /// The sort key of a channel's users: the level at which each gets all it wants.
    pub(super) fn key(&self) -> (f64, u64) {
        (self.wanted / self.weight, self.job)
    }
}

/// What one job does on one channel.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChannelPart {
    pub(super) channel: Channel,
    pub(super) weight: f64,
    pub(super) wanted: f64,
    /// The most bytes per weight of its flows there. Divided by the level, this is the time in seconds that they need.
    pub(super) slowest: f64,
}

#[derive(Debug, Clone)]
pub(super) struct CongestedJob {
    pub(super) wants: Wants,
    /// The slowdown that `settle` last reported.
    pub(super) slowdown: f64,
    touched: bool,
}

/// What a job wants when it is alone. A channel gives each of its flows a share by weight, and a flow gets the smallest
/// share of its channels. Flows are not stored: an all-to-all job may have a million of them, on a few thousand
/// channels.
#[derive(Debug, Clone)]
pub(super) struct Wants {
    /// Seconds of communication per iteration.
    pub(super) time_alone: f64,
    /// What the job does on each channel, sorted by channel.
    pub(super) parts: Box<[ChannelPart]>,
}

impl Congestion {
    /// Returns a model without jobs, for a routing.
    pub fn new(routing: &dyn Routing) -> Self {
        let channels = routing.channels();
        let count = channels as usize;
        Congestion {
            capacity: (0..channels).map(|channel| routing.capacity(channel)).collect(),
            level: vec![f64::INFINITY; count].into(),
            users: vec![Vec::new(); count].into(),
            jobs: HashMap::new(),
            touched: Vec::new(),
            scratch: Scratch::new(count + routing.splits().count() as usize),
            splits: routing.splits().count(),
            room: SpareMemory::default(),
        }
    }

    /// The largest rate per weight that a channel allows its flows; infinite if the channel is sufficient.
    pub fn level(&self, channel: Channel) -> f64 {
        self.level[channel as usize]
    }

    /// The slowdown of a job that `settle` last reported; 1 for a job that is not present.
    pub fn slowdown_of(&self, job: u64) -> f64 {
        self.jobs.get(&job).map_or(1.0, |present| present.slowdown)
    }

    fn enter_wanting(&mut self, job: u64, wants: Wants) {
        let parts = wants.parts.clone();
        let mut present = CongestedJob { wants, slowdown: 1.0, touched: false };
        touch(job, &mut present, &mut self.touched);
        self.jobs.insert(job, present);
        for &ChannelPart { channel, weight, wanted, slowest } in &parts {
            let user = ChannelUser { job, weight, wanted, slowest };
            let users = &mut self.users[channel as usize];
            users.insert(users.partition_point(|other| other.key() < user.key()), user);
            self.share_out(channel);
        }
    }

    /// Computes the level of a channel again, and records its users as affected if it has changed.
    fn share_out(&mut self, channel: Channel) {
        let index = channel as usize;
        let level = level(self.users[index].iter(), self.capacity[index]);
        if level.to_bits() == self.level[index].to_bits() {
            return;
        }
        self.level[index] = level;
        for user in &self.users[index] {
            if let Some(present) = self.jobs.get_mut(&user.job) {
                touch(user.job, present, &mut self.touched);
            }
        }
    }

    fn slowdown(&self, present: &CongestedJob) -> f64 {
        let seconds = |of: &ChannelPart| of.slowest / self.level[of.channel as usize];
        let most = present.wants.parts.iter().map(seconds).fold(0.0, f64::max);
        times(most, present.wants.time_alone)
    }
}

impl ChannelPart {
    /// Adds what flows want of a split to what they want of its channels.
    fn divide(&self, splits: &Splits, place: impl Fn(Channel) -> u32, parts: &mut [ChannelPart]) {
        splits.each(self.channel, |channel, part| {
            let of_channel = &mut parts[place(channel) as usize];
            of_channel.wanted += part * self.wanted;
            of_channel.slowest = of_channel.slowest.max(self.slowest);
        });
    }
}

/// For each split, the least share that any of its channels gives: a flow is as fast as its slowest part.
pub(super) fn least_shares(
    used: impl Iterator<Item = Channel>,
    splits: &Splits,
    share: impl Fn(Channel) -> f64,
) -> Vec<f64> {
    let least = |split| {
        let shares = splits.parts(split).iter().map(|&(channel, _)| share(channel));
        shares.fold(f64::INFINITY, f64::min)
    };
    used.map(least).collect()
}

impl Wants {
    /// Returns what a job wants, on channels of these capacities.
    pub(super) fn of(flows: &Flows, capacity: &[f64], scratch: &mut Scratch) -> Wants {
        let Scratch { weight: summed, place } = scratch;
        let (channels, splits) = (flows.per_channel(), flows.used_splits());
        let used = || channels.iter().map(|&(channel, _)| channel).chain(splits.iter().copied());
        for (index, entry) in (0..).zip(used()) {
            place[entry as usize] = index;
            summed[entry as usize] = 0.0;
        }
        for flow in 0..flows.len() {
            for &entry in flows.channels(flow) {
                summed[entry as usize] += flows.weight(flow);
            }
        }
        for &split in splits {
            let weight = summed[split as usize];
            flows.splits().each(split, |channel, part| summed[channel as usize] += part * weight);
        }
        let of_entry = |channel: Channel| {
            let weight = summed[channel as usize];
            ChannelPart { channel, weight, wanted: 0.0, slowest: 0.0 }
        };
        let mut parts: Vec<ChannelPart> = used().map(of_entry).collect();
        let of_channel = |channel: Channel| capacity[channel as usize] / summed[channel as usize];
        let of_splits: Vec<f64> = least_shares(splits.iter().copied(), flows.splits(), of_channel);
        let share = |&entry: &Channel| {
            if flows.splits().has(entry) {
                of_splits[place[entry as usize] as usize - channels.len()]
            } else {
                of_channel(entry)
            }
        };
        let mut time_alone = 0.0f64;
        for flow in 0..flows.len() {
            let (weight, bytes) = (flows.weight(flow), flows.bytes(flow));
            let rate =
                weight * flows.channels(flow).iter().map(share).fold(f64::INFINITY, f64::min);
            time_alone = time_alone.max(bytes / rate);
            for &entry in flows.channels(flow) {
                let of_entry = &mut parts[place[entry as usize] as usize];
                of_entry.wanted += rate;
                of_entry.slowest = of_entry.slowest.max(bytes / weight);
            }
        }
        for of_split in parts.split_off(channels.len()) {
            of_split.divide(flows.splits(), |channel| place[channel as usize], &mut parts);
        }
        Wants { time_alone, parts: parts.into() }
    }

    /// Returns what an exchange wants, computed class by class. Flows of a class have equal rates, because their first
    /// channels have equal capacities and equal numbers of flows.
    fn of_exchange(exchange: &Exchange, capacity: &[f64]) -> Wants {
        let (bytes, weight) = (exchange.bytes(), exchange.weight());
        let (used, splits) = (exchange.used(), exchange.splits());
        let of_channel = |(channel, flows): (Channel, f64)| {
            let weight = flows * weight;
            ChannelPart { channel, weight, wanted: 0.0, slowest: bytes / exchange.weight() }
        };
        let of_splits = exchange.used_splits().map(|split| (split, 0.0));
        let mut parts: Vec<ChannelPart> =
            used.iter().copied().chain(of_splits).map(of_channel).collect();
        let share = |part: &ChannelPart| capacity[part.channel as usize] / part.weight;
        let mut shares: Vec<f64> = parts[..used.len()].iter().map(share).collect();
        let place = |channel: Channel| used.partition_point(|&(other, _)| other < channel) as u32;
        let of_splits =
            least_shares(exchange.used_splits(), splits, |channel| shares[place(channel) as usize]);
        shares.extend(of_splits);
        let mut time_alone = 0.0f64;
        let mut rates = vec![0.0; exchange.ranks()];
        for (senders, classes) in exchange.groups() {
            let own = senders.clone().next().map_or(0.0, |(_, place)| shares[place as usize]);
            let mut all = 0.0;
            rates.fill(0.0);
            for FlowClass { receiver, flows, channels } in classes {
                let least =
                    channels.iter().map(|&place| shares[place as usize]).fold(own, f64::min);
                let rate = weight * least;
                time_alone = time_alone.max(bytes / rate);
                for &place in channels {
                    parts[place as usize].wanted += f64::from(flows) * rate;
                }
                rates[receiver as usize] = rate;
                all += rate;
            }
            for (rank, place) in senders {
                parts[place as usize].wanted = all - rates[rank as usize];
            }
        }
        for of_split in parts.split_off(used.len()) {
            of_split.divide(splits, place, &mut parts);
        }
        Wants { time_alone, parts: parts.into() }
    }

    /// The rate per weight that a channel gives the job's flows when the job is alone.
    fn share(&self, channel: Channel, capacity: &[f64]) -> f64 {
        let place = self.parts.partition_point(|part| part.channel < channel);
        self.parts.get(place).map_or(f64::INFINITY, |part| capacity[channel as usize] / part.weight)
    }
}

/// The slowdown: the ratio of both times, at least 1.
pub(super) fn times(seconds: f64, alone: f64) -> f64 {
    if seconds > alone { seconds / alone } else { 1.0 }
}

fn touch(job: u64, present: &mut CongestedJob, touched: &mut Vec<u64>) {
    if !present.touched {
        present.touched = true;
        touched.push(job);
    }
}

/// The rate per weight at which a channel is just full; infinite if all users can have what they want. Users must be
/// sorted by key.
pub(super) fn level<'a>(
    users: impl Iterator<Item = &'a ChannelUser> + Clone,
    capacity: f64,
) -> f64 {
    let wanted: f64 = users.clone().map(|user| user.wanted).sum();
    if users.clone().nth(1).is_none() || wanted <= capacity * (1.0 + ROUNDING) {
        return f64::INFINITY;
    }
    let mut left = capacity;
    let mut weight: f64 = users.clone().map(|user| user.weight).sum();
    for user in users {
        let level = left / weight;
        if user.wanted >= level * user.weight {
            return level;
        }
        left -= user.wanted;
        weight -= user.weight;
    }
    f64::INFINITY
}

impl Contention for Congestion {
    fn name(&self) -> &'static str {
        "congestion"
    }

    fn enter(&mut self, job: u64, flows: Arc<Flows>) {
        let wants = Wants::of(&flows, &self.capacity, &mut self.scratch);
        self.enter_wanting(job, wants);
    }

    fn enter_exchange(&mut self, job: u64, exchange: &Exchange) -> bool {
        self.enter_wanting(job, Wants::of_exchange(exchange, &self.capacity));
        true
    }

    fn leave(&mut self, job: u64) {
        let Some(gone) = self.jobs.remove(&job) else { return };
        for of_channel in &gone.wants.parts {
            self.users[of_channel.channel as usize].retain(|user| user.job != job);
            self.share_out(of_channel.channel);
        }
    }

    fn settle(&mut self) -> Vec<(u64, f64)> {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        let mut changed = Vec::new();
        for job in touched {
            let Some(slowdown) = self.jobs.get(&job).map(|present| self.slowdown(present)) else {
                continue;
            };
            let Some(present) = self.jobs.get_mut(&job) else { continue };
            present.touched = false;
            if is_news(&mut present.slowdown, slowdown) {
                changed.push((job, slowdown));
            }
        }
        changed
    }

    fn time(&mut self, job: u64) -> f64 {
        let present = self.jobs.get(&job);
        present.map_or(0.0, |present| present.wants.time_alone * self.slowdown(present))
    }

    fn rates(&mut self, job: u64, flows: &Flows) -> Vec<f64> {
        let Some(present) = self.jobs.get(&job) else { return Vec::new() };
        let least = |channel| present.wants.share(channel, &self.capacity).min(self.level(channel));
        let splits = flows.splits();
        let of_splits = least_shares(flows.used_splits().iter().copied(), splits, least);
        let rate = |flow: usize| {
            let of_entry = |&entry: &Channel| {
                let place = flows.used_splits().binary_search(&entry).ok();
                place.map_or_else(|| least(entry), |place| of_splits[place])
            };
            flows.weight(flow)
                * flows.channels(flow).iter().map(of_entry).fold(f64::INFINITY, f64::min)
        };
        (0..flows.len()).map(rate).collect()
    }
}
