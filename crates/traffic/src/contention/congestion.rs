//! Each channel shared out by itself: fast enough for every event of a month.

use std::collections::HashMap;
use std::sync::Arc;

use topolane_fabric::{Channel, Routing};

use super::{Contention, is_news};
use crate::flows::Flows;

/// A channel is taken to be enough when no more than this part of it is wanted too much: what is
/// left of rounding.
const ROUNDING: f64 = 1e-9;

/// Max-min fairness channel by channel, with what each job wants when it is alone. On a channel
/// where more is wanted than there is, rates per weight are cut to the level at which it is just
/// full; a flow has the least that its channels leave it.
#[derive(Debug)]
pub struct Congestion {
    capacity: Box<[f64]>,
    /// Of every channel the rate per weight that it leaves a flow; infinite where there is enough.
    level: Box<[f64]>,
    /// Of every channel the jobs that use it, by what they want per weight, then by identity: what
    /// is added up does not depend on the order of events.
    users: Box<[Vec<User>]>,
    jobs: HashMap<u64, Present>,
    /// Jobs on whose channels something has changed since the last `settle`.
    touched: Vec<u64>,
    /// Scratch, by channel.
    weight: Box<[f64]>,
    place: Box<[u32]>,
}

/// A job on a channel: the summed weight of its flows, and the bytes per second that they want.
#[derive(Debug, Clone, Copy)]
struct User {
    job: u64,
    weight: f64,
    wanted: f64,
}

impl User {
    /// Orders users of a channel by when they have all they want as the level rises.
    fn key(&self) -> (f64, u64) {
        (self.wanted / self.weight, self.job)
    }
}

/// What one job does on one channel.
#[derive(Debug, Clone, Copy)]
struct Part {
    channel: Channel,
    weight: f64,
    wanted: f64,
    /// Most bytes per weight of its flows there: divided by the level, the seconds they need.
    slowest: f64,
}

#[derive(Debug)]
struct Present {
    flows: Arc<Flows>,
    /// Bytes per second of every flow when the job is alone.
    alone: Box<[f64]>,
    /// Seconds of an iteration's communication alone.
    time_alone: f64,
    parts: Box<[Part]>,
    slowdown: f64,
    touched: bool,
}

impl Congestion {
    /// Nobody on any channel of a routing.
    pub fn new(routing: &dyn Routing) -> Self {
        let channels = routing.channels();
        let count = channels as usize;
        Congestion {
            capacity: (0..channels).map(|channel| routing.capacity(channel)).collect(),
            level: vec![f64::INFINITY; count].into(),
            users: vec![Vec::new(); count].into(),
            jobs: HashMap::new(),
            touched: Vec::new(),
            weight: vec![0.0; count].into(),
            place: vec![0; count].into(),
        }
    }

    /// The rate per weight that a channel leaves its flows; infinite where there is enough for all.
    pub fn level(&self, channel: Channel) -> f64 {
        self.level[channel as usize]
    }

    /// What a job wants: alone, a channel gives each of its flows a share by weight, and a flow has
    /// the least of its channels.
    fn wants(&mut self, flows: Arc<Flows>) -> Present {
        let channels = flows.per_channel();
        for (place, &(channel, _)) in channels.iter().enumerate() {
            self.place[channel as usize] = place as u32;
            self.weight[channel as usize] = 0.0;
        }
        for flow in 0..flows.len() {
            for &channel in flows.channels(flow) {
                self.weight[channel as usize] += flows.weight(flow);
            }
        }
        let of_channel = |&(channel, _): &(Channel, f64)| {
            let weight = self.weight[channel as usize];
            Part { channel, weight, wanted: 0.0, slowest: 0.0 }
        };
        let mut parts: Box<[Part]> = channels.iter().map(of_channel).collect();
        let share =
            |channel: &Channel| self.capacity[*channel as usize] / self.weight[*channel as usize];
        let mut time_alone = 0.0f64;
        let mut alone = Vec::with_capacity(flows.len());
        for flow in 0..flows.len() {
            let (weight, bytes) = (flows.weight(flow), flows.bytes(flow));
            let rate =
                weight * flows.channels(flow).iter().map(share).fold(f64::INFINITY, f64::min);
            time_alone = time_alone.max(bytes / rate);
            alone.push(rate);
            for &channel in flows.channels(flow) {
                let of_channel = &mut parts[self.place[channel as usize] as usize];
                of_channel.wanted += rate;
                of_channel.slowest = of_channel.slowest.max(bytes / weight);
            }
        }
        let alone = alone.into();
        Present { flows, alone, time_alone, parts, slowdown: 1.0, touched: false }
    }

    /// Finds the level of a channel again, and notes its users if it has changed.
    fn share_out(&mut self, channel: Channel) {
        let index = channel as usize;
        let level = level(&self.users[index], self.capacity[index]);
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

    fn slowdown(&self, present: &Present) -> f64 {
        let seconds = |of: &Part| of.slowest / self.level[of.channel as usize];
        let most = present.parts.iter().map(seconds).fold(0.0, f64::max);
        if most > present.time_alone { most / present.time_alone } else { 1.0 }
    }
}

fn touch(job: u64, present: &mut Present, touched: &mut Vec<u64>) {
    if !present.touched {
        present.touched = true;
        touched.push(job);
    }
}

/// The rate per weight at which a channel is just full; infinite where all have what they want.
fn level(users: &[User], capacity: f64) -> f64 {
    let wanted: f64 = users.iter().map(|user| user.wanted).sum();
    if users.len() < 2 || wanted <= capacity * (1.0 + ROUNDING) {
        return f64::INFINITY;
    }
    let mut left = capacity;
    let mut weight: f64 = users.iter().map(|user| user.weight).sum();
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
        let mut present = self.wants(flows);
        touch(job, &mut present, &mut self.touched);
        let parts = present.parts.clone();
        self.jobs.insert(job, present);
        for &Part { channel, weight, wanted, .. } in &parts {
            let user = User { job, weight, wanted };
            let users = &mut self.users[channel as usize];
            users.insert(users.partition_point(|other| other.key() < user.key()), user);
            self.share_out(channel);
        }
    }

    fn leave(&mut self, job: u64) {
        let Some(gone) = self.jobs.remove(&job) else { return };
        for of_channel in &gone.parts {
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
        present.map_or(0.0, |present| present.time_alone * self.slowdown(present))
    }

    fn rates(&mut self, job: u64) -> Vec<f64> {
        let Some(present) = self.jobs.get(&job) else { return Vec::new() };
        let flows = &present.flows;
        let rate = |flow: usize| {
            let levels = flows.channels(flow).iter().map(|&channel| self.level(channel));
            present.alone[flow].min(flows.weight(flow) * levels.fold(f64::INFINITY, f64::min))
        };
        (0..flows.len()).map(rate).collect()
    }
}
