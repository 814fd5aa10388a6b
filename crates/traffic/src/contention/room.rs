//! The working memory of an outlook: the flows of a job, and what they do on each channel.

use std::sync::{Mutex, PoisonError};

use topolane_fabric::{Channel, NodeIndex, Routing, Splits, Unreachable, scramble};

use crate::flows::{LEAST_WEIGHT, RailShares, rails_between};
use crate::matrix::Traffic;

/// The working memory of an outlook.
#[derive(Debug, Default)]
pub(super) struct OutlookMemory {
    /// The end nodes of flows that use channels, with the index of each flow in the traffic.
    pairs: Vec<(u32, (NodeIndex, NodeIndex))>,
    /// The flows that use channels: bytes, weight, and the end of their range in `channels`.
    flows: Vec<(f64, f64, u32)>,
    /// Channels and splits.
    channels: Vec<Channel>,
    /// Bytes that each node sends to others; valid for the nodes of the current call.
    sent: Box<[f64]>,
    /// What the job does on each channel and split; zero except during `foresee`.
    pub(super) uses: Box<[ChannelUse]>,
    /// The channels used; no splits.
    pub(super) used: Vec<Channel>,
    used_splits: Vec<Channel>,
    /// For each split in use, the least share that a channel of it gives.
    shares: Box<[f64]>,
    /// Seconds that flows of present jobs would take on the channels used, with the id of the job.
    pub(super) slower: Vec<(u64, f64)>,
    routes: RouteCache,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ChannelUse {
    pub(super) weight: f64,
    pub(super) wanted: f64,
    pub(super) slowest: f64,
}

/// Working memory that is not in use. A clone starts without any.
#[derive(Debug, Default)]
pub(super) struct SpareMemory(Mutex<Option<Box<OutlookMemory>>>);

impl SpareMemory {
    pub(super) fn take(&self) -> Option<Box<OutlookMemory>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn put(&self, room: Box<OutlookMemory>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(room);
    }
}

impl Clone for SpareMemory {
    fn clone(&self) -> Self {
        SpareMemory::default()
    }
}

impl OutlookMemory {
    pub(super) fn new(nodes: u32, channels: usize, splits: u32) -> Self {
        let splits = splits as usize;
        OutlookMemory {
            sent: vec![0.0; nodes as usize].into(),
            uses: vec![ChannelUse::default(); channels + splits].into(),
            shares: vec![0.0; splits].into(),
            ..OutlookMemory::default()
        }
    }

    /// Finds the channels of all flows.
    pub(super) fn lay(
        &mut self,
        traffic: &Traffic,
        (node_of, rails): (&[NodeIndex], Option<&[RailShares]>),
        routing: &dyn Routing,
    ) -> Result<(), Unreachable> {
        let OutlookMemory { pairs, flows, channels, sent, routes, .. } = self;
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

    /// Sums up what the flows want of each channel. Returns the seconds of an iteration alone.
    pub(super) fn want(&mut self, capacity: &[f64], splits: &Splits) -> f64 {
        let OutlookMemory { flows, channels, uses, used, used_splits, shares, .. } = self;
        let mut first = 0;
        for &(_, weight, end) in &*flows {
            for &entry in &channels[first..end as usize] {
                let here = &mut uses[entry as usize];
                if here.weight == 0.0 {
                    let list = if splits.has(entry) { &mut *used_splits } else { &mut *used };
                    list.push(entry);
                }
                here.weight += weight;
            }
            first = end as usize;
        }
        for &split in &*used_splits {
            let weight = uses[split as usize].weight;
            for &(channel, part) in splits.parts(split) {
                let here = &mut uses[channel as usize];
                if here.weight == 0.0 {
                    used.push(channel);
                }
                here.weight += part * weight;
            }
        }
        let share = |channel: Channel| capacity[channel as usize] / uses[channel as usize].weight;
        for &split in &*used_splits {
            let parts = splits.parts(split).iter();
            let least = parts.map(|&(channel, _)| share(channel)).fold(f64::INFINITY, f64::min);
            shares[(split - splits.first()) as usize] = least;
        }
        let mut time_alone = 0.0f64;
        first = 0;
        for &(bytes, weight, end) in &*flows {
            let own = &channels[first..end as usize];
            let share = |&entry: &Channel| match entry.checked_sub(splits.first()) {
                Some(split) => shares[split as usize],
                None => capacity[entry as usize] / uses[entry as usize].weight,
            };
            let rate = weight * own.iter().map(share).fold(f64::INFINITY, f64::min);
            time_alone = time_alone.max(bytes / rate);
            for &entry in own {
                let here = &mut uses[entry as usize];
                here.wanted += rate;
                here.slowest = here.slowest.max(bytes / weight);
            }
            first = end as usize;
        }
        for split in used_splits.drain(..) {
            let of_split = std::mem::take(&mut uses[split as usize]);
            for &(channel, part) in splits.parts(split) {
                let here = &mut uses[channel as usize];
                here.wanted += part * of_split.wanted;
                here.slowest = here.slowest.max(of_split.slowest);
            }
        }
        time_alone
    }
}

/// A cache of recent routes, because the node sets tried for a job differ in few nodes. Two pairs of nodes may share an
/// entry; the later one replaces the earlier.
#[derive(Debug, Default)]
struct RouteCache {
    places: Vec<CachedRoute>,
}

#[derive(Debug, Clone, Copy, Default)]
struct CachedRoute {
    /// The ends of the route; both the same node if the entry is unused.
    ends: (NodeIndex, NodeIndex),
    rails: Option<(u32, u32)>,
    length: u32,
    channels: [Channel; LONGEST],
}

/// The most channels of a cached route: enough for a tree of four levels.
const LONGEST: usize = 8;
/// The number of entries, as a power of 2.
const PLACES: u32 = 14;

impl RouteCache {
    /// Appends the channels between two different nodes, as [`Routing::path`] or [`Routing::rail_path`].
    fn path(
        &mut self,
        routing: &dyn Routing,
        ends: (NodeIndex, NodeIndex),
        rails: Option<(u32, u32)>,
        path: &mut Vec<Channel>,
    ) -> Result<(), Unreachable> {
        if self.places.is_empty() {
            self.places.resize(1 << PLACES, CachedRoute::default());
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
