//! What a job that comes would cost those present, asked for many choices of its nodes without letting it in.

use std::collections::HashMap;

use topolane_fabric::{Channel, NodeIndex, Routing, Unreachable};

use super::congestion::{Congestion, User, level, times};
use crate::flows::LEAST_WEIGHT;
use crate::matrix::Traffic;

/// What a job that comes would cost, and what it would suffer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Foreseen {
    /// Seconds of its iteration's communication with no other job there.
    pub time_alone: f64,
    /// How many times longer it would take with the jobs present.
    pub slowdown: f64,
    /// The jobs that it would slow further, by identity: the slowdown before, and with it.
    pub others: Vec<(u64, f64, f64)>,
}

/// A job that comes. What [`Outlook::foresee`] says of nodes is what `enter` and `settle` of [`Congestion`] would say of its
/// flows there. It is several times as fast, because it keeps its memory and sorts nothing.
#[derive(Debug)]
pub struct Outlook<'a> {
    present: &'a Congestion,
    routing: &'a dyn Routing,
    traffic: &'a Traffic,
    /// The flows that use channels: bytes, weight, and the end of their channels in `channels`.
    flows: Vec<(f64, f64, u32)>,
    channels: Vec<Channel>,
    /// Bytes that each node sends to others.
    sent: Vec<f64>,
    /// What it does on each channel; as new except during `foresee`.
    uses: Vec<Use>,
    used: Vec<Channel>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Use {
    weight: f64,
    wanted: f64,
    slowest: f64,
}

impl<'a> Outlook<'a> {
    /// Of a job with that traffic between its ranks, on the routes that `present` is of.
    pub fn new(present: &'a Congestion, routing: &'a dyn Routing, traffic: &'a Traffic) -> Self {
        Outlook {
            present,
            routing,
            traffic,
            flows: Vec::new(),
            channels: Vec::new(),
            sent: vec![0.0; routing.fabric().nodes() as usize],
            uses: vec![Use::default(); present.capacity.len()],
            used: Vec::new(),
        }
    }

    /// With rank r on `node_of[r]`; flows of ranks without a node are left out.
    ///
    /// # Errors
    /// Two nodes that talk and that no route joins.
    pub fn foresee(&mut self, node_of: &[NodeIndex]) -> Result<Foreseen, Unreachable> {
        self.lay(node_of)?;
        let time_alone = self.want();
        let mut own = 0.0f64;
        let mut others: HashMap<u64, f64> = HashMap::new();
        for channel in self.used.drain(..) {
            let part = std::mem::take(&mut self.uses[channel as usize]);
            let level = level_with(self.present, channel, part);
            if level == f64::INFINITY {
                continue;
            }
            own = own.max(part.slowest / level);
            for user in &self.present.users[channel as usize] {
                let seconds = slowest_of(self.present, user.job, channel) / level;
                let most = others.entry(user.job).or_default();
                *most = most.max(seconds);
            }
        }
        let further = |(job, seconds)| further(self.present, job, seconds);
        let mut others: Vec<_> = others.into_iter().filter_map(further).collect();
        others.sort_unstable_by_key(|&(job, ..)| job);
        Ok(Foreseen { time_alone, slowdown: times(own, time_alone), others })
    }

    /// Finds the channels of all flows.
    fn lay(&mut self, node_of: &[NodeIndex]) -> Result<(), Unreachable> {
        self.flows.clear();
        self.channels.clear();
        for &node in node_of {
            self.sent[node as usize] = 0.0;
        }
        let node = |rank: u32| node_of.get(rank as usize).copied();
        let routing = self.routing;
        let fabric = routing.fabric();
        let ends = |entry: &crate::Entry| {
            let ends = node(entry.from).zip(node(entry.to));
            ends.filter(|&(from, to)| {
                from != to && entry.bytes > 0.0 && !fabric.share_domain(from, to)
            })
        };
        for entry in self.traffic.entries() {
            if let Some((from, _)) = ends(entry) {
                self.sent[from as usize] += entry.bytes;
            }
        }
        for entry in self.traffic.entries() {
            let Some((from, to)) = ends(entry) else { continue };
            self.routing.path(from, to, &mut self.channels)?;
            let weight = (entry.bytes / self.sent[from as usize]).max(LEAST_WEIGHT);
            self.flows.push((entry.bytes, weight, self.channels.len() as u32));
        }
        Ok(())
    }

    /// Adds up what the flows want of each channel; answers the seconds of an iteration alone.
    fn want(&mut self) -> f64 {
        let Outlook { present, flows, channels, uses, used, .. } = self;
        let mut first = 0;
        for &(_, weight, end) in &*flows {
            for &channel in &channels[first..end as usize] {
                let here = &mut uses[channel as usize];
                if here.weight == 0.0 {
                    used.push(channel);
                }
                here.weight += weight;
            }
            first = end as usize;
        }
        let mut time_alone = 0.0f64;
        first = 0;
        for &(bytes, weight, end) in &*flows {
            let own = &channels[first..end as usize];
            let share = |&channel: &Channel| {
                present.capacity[channel as usize] / uses[channel as usize].weight
            };
            let rate = weight * own.iter().map(share).fold(f64::INFINITY, f64::min);
            time_alone = time_alone.max(bytes / rate);
            for &channel in own {
                let here = &mut uses[channel as usize];
                here.wanted += rate;
                here.slowest = here.slowest.max(bytes / weight);
            }
            first = end as usize;
        }
        time_alone
    }
}

/// The level of a channel with one more user.
fn level_with(present: &Congestion, channel: Channel, part: Use) -> f64 {
    let users = &present.users[channel as usize];
    let capacity = present.capacity[channel as usize];
    let wanted: f64 = users.iter().map(|user| user.wanted).sum();
    if users.is_empty() || wanted + part.wanted <= capacity {
        return f64::INFINITY;
    }
    let newcomer = User { job: u64::MAX, weight: part.weight, wanted: part.wanted };
    let mut users = users.clone();
    users.insert(users.partition_point(|other| other.key() < newcomer.key()), newcomer);
    level(users.iter(), capacity)
}

/// Most bytes per weight of a present job's flows on a channel.
fn slowest_of(present: &Congestion, job: u64, channel: Channel) -> f64 {
    let Some(job) = present.jobs.get(&job) else { return 0.0 };
    let parts = &job.wants.parts;
    let found = parts.binary_search_by_key(&channel, |part| part.channel);
    found.map_or(0.0, |index| parts[index].slowest)
}

/// A job's slowdown before, and with flows of it that take so many seconds; `None` where that is no longer.
fn further(present: &Congestion, job: u64, seconds: f64) -> Option<(u64, f64, f64)> {
    let there = present.jobs.get(&job)?;
    let (before, after) = (there.slowdown, times(seconds, there.wants.time_alone));
    (after > before).then_some((job, before, after))
}
