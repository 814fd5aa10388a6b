//! What a job that comes would cost those present, asked for many choices of its nodes without letting it in.

use topolane_fabric::{Channel, NodeIndex, Routing, Unreachable, scramble};

use super::congestion::{Congestion, User, level, times};
use crate::flows::{LEAST_WEIGHT, RailShares, rails_between};
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
/// flows there. It is several times as fast, because it keeps its memory, which the next outlook takes over, and sorts nothing.
#[derive(Debug)]
pub struct Outlook<'a> {
    present: &'a Congestion,
    routing: &'a dyn Routing,
    traffic: &'a Traffic,
    room: Box<Room>,
}

/// What an outlook works in.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// The nodes of what uses channels, by its place in the traffic.
    pairs: Vec<(u32, (NodeIndex, NodeIndex))>,
    /// The flows that use channels: bytes, weight, and the end of their channels in `channels`.
    flows: Vec<(f64, f64, u32)>,
    channels: Vec<Channel>,
    /// Bytes that each node sends to others; of the nodes last asked for.
    sent: Box<[f64]>,
    /// What the job does on each channel; as new except during `foresee`.
    uses: Box<[Use]>,
    used: Vec<Channel>,
    /// Seconds that flows of jobs present would take on the channels used, by the identity of the job.
    slower: Vec<(u64, f64)>,
    routes: Routes,
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
        let new = || Box::new(Room::new(routing.fabric().nodes(), present.capacity.len()));
        Outlook { present, routing, traffic, room: present.room.take().unwrap_or_else(new) }
    }

    /// With rank r on `node_of[r]`, and on `rails[r]` as in [`Flows::on_rails`](crate::Flows::on_rails) or on the routes that
    /// the routing prefers; flows of ranks without a node are left out.
    ///
    /// # Errors
    /// Two nodes that talk and that no route joins.
    pub fn foresee(
        &mut self,
        node_of: &[NodeIndex],
        rails: Option<&[RailShares]>,
    ) -> Result<Foreseen, Unreachable> {
        let Outlook { present, routing, traffic, room } = self;
        room.lay(traffic, (node_of, rails), *routing)?;
        let time_alone = room.want(&present.capacity);
        let mut own = 0.0f64;
        for channel in room.used.drain(..) {
            let part = std::mem::take(&mut room.uses[channel as usize]);
            let level = level_with(present, channel, part);
            if level == f64::INFINITY {
                continue;
            }
            own = own.max(part.slowest / level);
            let users = &present.users[channel as usize];
            room.slower.extend(users.iter().map(|user| (user.job, user.slowest / level)));
        }
        room.slower.sort_unstable_by_key(|&(job, _)| job);
        let of_jobs = room.slower.chunk_by(|a, b| a.0 == b.0);
        let further = |of_job: &[(u64, f64)]| {
            let seconds = of_job.iter().map(|&(_, seconds)| seconds).fold(0.0, f64::max);
            further(present, of_job[0].0, seconds)
        };
        let others = of_jobs.filter_map(further).collect();
        room.slower.clear();
        Ok(Foreseen { time_alone, slowdown: times(own, time_alone), others })
    }
}

impl Drop for Outlook<'_> {
    fn drop(&mut self) {
        self.present.room.put(std::mem::take(&mut self.room));
    }
}

impl Room {
    fn new(nodes: u32, channels: usize) -> Self {
        Room {
            sent: vec![0.0; nodes as usize].into(),
            uses: vec![Use::default(); channels].into(),
            ..Room::default()
        }
    }

    /// Finds the channels of all flows.
    fn lay(
        &mut self,
        traffic: &Traffic,
        (node_of, rails): (&[NodeIndex], Option<&[RailShares]>),
        routing: &dyn Routing,
    ) -> Result<(), Unreachable> {
        let Room { pairs, flows, channels, sent, routes, .. } = self;
        pairs.clear();
        flows.clear();
        channels.clear();
        for &node in node_of {
            sent[node as usize] = 0.0;
        }
        let node = |rank: u32| node_of.get(rank as usize).copied();
        let fabric = routing.fabric();
        let entries = traffic.entries();
        for (entry, place) in entries.iter().zip(0..) {
            let Some((from, to)) = node(entry.from).zip(node(entry.to)) else { continue };
            if from != to && entry.bytes > 0.0 && !fabric.share_domain(from, to) {
                sent[from as usize] += entry.bytes;
                pairs.push((place, (from, to)));
            }
        }
        let rails_of = |rank: u32| rails.and_then(|rails| rails.get(rank as usize));
        for &(place, ends) in &*pairs {
            let entry = &entries[place as usize];
            let first = flows.len();
            let mut joined = 0.0;
            if let Some((sends, receives)) = rails_of(entry.from).zip(rails_of(entry.to)) {
                for (rails, share) in rails_between(sends, receives) {
                    if routes.path(routing, ends, Some(rails), channels).is_ok() {
                        flows.push((share, 0.0, channels.len() as u32));
                        joined += share;
                    }
                }
            } else {
                routes.path(routing, ends, None, channels)?;
                flows.push((1.0, 0.0, channels.len() as u32));
                joined = 1.0;
            }
            if joined <= 0.0 {
                return Err(Unreachable { from: ends.0, to: ends.1 });
            }
            for (bytes, weight, _) in &mut flows[first..] {
                *bytes *= entry.bytes / joined;
                *weight = (*bytes / sent[ends.0 as usize]).max(LEAST_WEIGHT);
            }
        }
        Ok(())
    }

    /// Adds up what the flows want of each channel; answers the seconds of an iteration alone.
    fn want(&mut self, capacity: &[f64]) -> f64 {
        let Room { flows, channels, uses, used, .. } = self;
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
            let share =
                |&channel: &Channel| capacity[channel as usize] / uses[channel as usize].weight;
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

/// Routes asked for lately: sets of nodes that are tried for a job differ in few nodes. Two pairs of nodes may have the same
/// place; the later one takes it.
#[derive(Debug, Default)]
struct Routes {
    places: Vec<Route>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Route {
    /// The same node twice where there is no route.
    ends: (NodeIndex, NodeIndex),
    rails: Option<(u32, u32)>,
    length: u32,
    channels: [Channel; LONGEST],
}

/// The most channels of a route that is kept. It is enough for a tree of four levels.
const LONGEST: usize = 8;
/// Places for routes, as a power of 2.
const PLACES: u32 = 14;

impl Routes {
    /// Appends the channels between two different nodes, as [`Routing::path`] or [`Routing::rail_path`].
    fn path(
        &mut self,
        routing: &dyn Routing,
        ends: (NodeIndex, NodeIndex),
        rails: Option<(u32, u32)>,
        path: &mut Vec<Channel>,
    ) -> Result<(), Unreachable> {
        if self.places.is_empty() {
            self.places.resize(1 << PLACES, Route::default());
        }
        let pair = u64::from(ends.0) << 32 | u64::from(ends.1);
        let on = rails.map_or(0, |(from, to)| u64::from(from) << 32 | u64::from(to) | 1 << 63);
        let place = scramble(pair ^ on.rotate_right(8)) >> (u64::BITS - PLACES);
        let kept = &mut self.places[place as usize];
        if (kept.ends, kept.rails) == (ends, rails) {
            path.extend_from_slice(&kept.channels[..kept.length as usize]);
            return Ok(());
        }
        let first = path.len();
        match rails {
            Some(rails) => routing.rail_path(ends, rails, path)?,
            None => routing.path(ends.0, ends.1, path)?,
        }
        let found = &path[first..];
        if let Some(channels) = kept.channels.get_mut(..found.len()) {
            channels.copy_from_slice(found);
            (kept.ends, kept.rails, kept.length) = (ends, rails, found.len() as u32);
        }
        Ok(())
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
    let Use { weight, wanted, slowest } = part;
    let newcomer = User { job: u64::MAX, weight, wanted, slowest };
    let (before, after) =
        users.split_at(users.partition_point(|other| other.key() < newcomer.key()));
    level(before.iter().chain([&newcomer]).chain(after), capacity)
}

/// A job's slowdown before, and with flows of it that take so many seconds; `None` where that is no longer.
fn further(present: &Congestion, job: u64, seconds: f64) -> Option<(u64, f64, f64)> {
    let there = present.jobs.get(&job)?;
    let (before, after) = (there.slowdown, times(seconds, there.wants.time_alone));
    (after > before).then_some((job, before, after))
}
