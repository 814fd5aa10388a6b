//! The flows of a job over the channels of a machine.

use std::collections::HashMap;
use std::ops::Range;

use topolane_fabric::{Channel, NodeIndex, Routing, Splits, Unreachable};

use crate::matrix::Traffic;

/// The smallest relative weight, so that sums of weights stay accurate. A job never waits for a flow with a smaller
/// share of its node's bytes.
pub(crate) const LEAST_WEIGHT: f64 = 1e-6;

/// Channels are sorted if the routes use fewer than 1 / `SPARSE` of the machine's channels.
const SPARSE: usize = 16;

/// The rails that a node's traffic takes, ascending, with the share of its bytes on each. Shares are above 0 and add up
/// to 1.
pub type RailShares = Box<[(u32, f64)]>;

/// The rails on which data leaves one node and arrives at another, with the share of the bytes on each pair.
pub(crate) fn rails_between(
    sends: &RailShares,
    receives: &RailShares,
) -> impl Iterator<Item = ((u32, u32), f64)> {
    sends.iter().enumerate().map(|(place, &(rail, share))| {
        let same = receives.iter().any(|&(other, _)| other == rail);
        let other = receives.get(place % receives.len().max(1)).map_or(rail, |other| other.0);
        ((rail, if same { rail } else { other }), share)
    })
}

/// The flows of one job. Each entry of its traffic with bytes becomes a flow: two nodes, bytes, and the channels of the
/// route.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Flows {
    ends: Vec<(NodeIndex, NodeIndex)>,
    /// Bytes per iteration.
    bytes: Vec<f64>,
    /// The weight of each flow; only ratios matter.
    weight: Vec<f64>,
    /// The first channel of every flow; then the number of channels.
    first: Vec<u32>,
    channels: Vec<Channel>,
    per_channel: Vec<(Channel, f64)>,
    /// The splits that flows use, ascending, as routes name them.
    used_splits: Vec<Channel>,
    splits: Splits,
}

impl Flows {
    /// Returns the flows of `traffic` over `routing`; `node_of[rank]` is the node of each rank. Flows of ranks without
    /// a node are skipped; callers should refuse a matrix that is larger than the job.
    ///
    /// # Errors
    /// No route connects two nodes that communicate.
    pub fn new(
        traffic: &Traffic,
        node_of: &[NodeIndex],
        routing: &dyn Routing,
    ) -> Result<Flows, Unreachable> {
        let mut flows = Flows::over(routing.splits());
        for entry in traffic.entries() {
            let node = |rank: u32| node_of.get(rank as usize).copied();
            let (Some(from), Some(to)) = (node(entry.from), node(entry.to)) else { continue };
            if entry.bytes > 0.0 {
                routing.path(from, to, &mut flows.channels)?;
                flows.close((from, to), entry.bytes);
            }
        }
        flows.weigh();
        flows.add_up();
        Ok(flows)
    }

    /// Returns the flows on a machine with rails. What a rank sends is spread over the rails of its node,
    /// `rails[rank]`. It arrives on the same rail if the receiver has it, otherwise on the receiver's rail at the same
    /// position in its list. Rails without a route between the two nodes are skipped; the others carry their share.
    ///
    /// # Errors
    /// No rail connects two nodes that communicate.
    pub fn on_rails(
        traffic: &Traffic,
        node_of: &[NodeIndex],
        rails: &[RailShares],
        routing: &dyn Routing,
    ) -> Result<Flows, Unreachable> {
        let mut flows = Flows::over(routing.splits());
        for entry in traffic.entries() {
            let end = |rank: u32| Some((*node_of.get(rank as usize)?, rails.get(rank as usize)?));
            let (Some((from, sends)), Some((to, receives))) = (end(entry.from), end(entry.to))
            else {
                continue;
            };
            if entry.bytes > 0.0 {
                flows.lay_on_rails((from, to), (sends, receives), entry.bytes, routing)?;
            }
        }
        flows.weigh();
        flows.add_up();
        Ok(flows)
    }

    fn lay_on_rails(
        &mut self,
        (from, to): (NodeIndex, NodeIndex),
        (sends, receives): (&RailShares, &RailShares),
        bytes: f64,
        routing: &dyn Routing,
    ) -> Result<(), Unreachable> {
        let first = self.bytes.len();
        let mut joined = 0.0;
        for (rails, share) in rails_between(sends, receives) {
            if routing.rail_path((from, to), rails, &mut self.channels).is_ok() {
                self.close((from, to), share);
                joined += share;
            }
        }
        for part in &mut self.bytes[first..] {
            *part *= bytes / joined;
        }
        if joined > 0.0 { Ok(()) } else { Err(Unreachable { from, to }) }
    }

    /// Returns flows over the given routes, all of the same weight: (from, to), bytes and channels of each. Routes may
    /// name the splits.
    pub fn of_paths<'a>(
        paths: impl IntoIterator<Item = ((NodeIndex, NodeIndex), f64, &'a [Channel])>,
        splits: Splits,
    ) -> Flows {
        let mut flows = Flows::over(splits);
        for (ends, bytes, channels) in paths {
            flows.channels.extend_from_slice(channels);
            flows.close(ends, bytes);
        }
        flows.add_up();
        flows
    }

    /// Returns no flows yet, over routes that may name these splits.
    fn over(splits: Splits) -> Flows {
        Flows { first: vec![0], splits, ..Flows::default() }
    }

    fn close(&mut self, ends: (NodeIndex, NodeIndex), bytes: f64) {
        self.ends.push(ends);
        self.bytes.push(bytes);
        self.weight.push(1.0);
        self.first.push(self.channels.len() as u32);
    }

    /// The number of flows.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are no flows.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Sets the weight of each flow to its share of the bytes that its node sends. A node's packets to all receivers
    /// are interleaved, so more receivers do not give it a larger share of a link.
    #[must_use]
    pub fn weighted(mut self) -> Flows {
        self.weigh();
        self
    }

    fn weigh(&mut self) {
        let mut sent: HashMap<NodeIndex, f64> = HashMap::new();
        for (node, flows) in self.by_sender() {
            let all = sent.entry(node).or_default();
            for flow in flows.filter(|&flow| !self.channels(flow).is_empty()) {
                *all += self.bytes[flow];
            }
        }
        let mut weight = std::mem::take(&mut self.weight);
        for (node, flows) in self.by_sender() {
            let all = sent[&node];
            for flow in flows.filter(|&flow| !self.channels(flow).is_empty()) {
                weight[flow] = (self.bytes[flow] / all).max(LEAST_WEIGHT);
            }
        }
        self.weight = weight;
    }

    /// Ranges of consecutive flows with the same sending node.
    fn by_sender(&self) -> impl Iterator<Item = (NodeIndex, Range<usize>)> + '_ {
        let runs = self.ends.chunk_by(|one, next| one.0 == next.0);
        runs.scan(0, |first, run| {
            let flows = *first..*first + run.len();
            *first = flows.end;
            Some((run[0].0, flows))
        })
    }

    /// The weight of a flow, above 0. Flows on a channel share it in the ratio of their weights.
    pub fn weight(&self, flow: usize) -> f64 {
        self.weight[flow]
    }

    /// The sending and the receiving node of a flow.
    pub fn ends(&self, flow: usize) -> (NodeIndex, NodeIndex) {
        self.ends[flow]
    }

    /// The bytes of a flow per iteration.
    pub fn bytes(&self, flow: usize) -> f64 {
        self.bytes[flow]
    }

    /// The splits that the routes of flows may name.
    pub fn splits(&self) -> &Splits {
        &self.splits
    }

    /// The splits that flows use, ascending, as routes name them.
    pub fn used_splits(&self) -> &[Channel] {
        &self.used_splits
    }

    /// The channels and splits of a flow, the sender's link first; empty for a flow inside a node.
    pub fn channels(&self, flow: usize) -> &[Channel] {
        &self.channels[self.first[flow] as usize..self.first[flow + 1] as usize]
    }

    /// The bytes over every channel used, sorted by channel.
    pub fn per_channel(&self) -> &[(Channel, f64)] {
        &self.per_channel
    }

    fn add_up(&mut self) {
        let end = self.channels.iter().max().map_or(0, |&last| last as usize + 1);
        // Few routes on a large machine are sorted. Both methods add up in the order of the flows, so their results are
        // exactly equal.
        self.per_channel =
            if self.channels.len() < end / SPARSE { self.sorted() } else { self.summed(end) };
        let first_split = self.per_channel.partition_point(|&(entry, _)| !self.splits.has(entry));
        if first_split < self.per_channel.len() {
            let of_splits = self.per_channel.split_off(first_split);
            self.used_splits = of_splits.iter().map(|&(split, _)| split).collect();
            self.divide(&of_splits);
        }
    }

    /// Adds the bytes of splits to those of their channels.
    fn divide(&mut self, of_splits: &[(Channel, f64)]) {
        let mut load: HashMap<Channel, f64> = self.per_channel.drain(..).collect();
        for &(split, bytes) in of_splits {
            for &(channel, part) in self.splits.parts(split) {
                *load.entry(channel).or_default() += part * bytes;
            }
        }
        self.per_channel = load.into_iter().collect();
        self.per_channel.sort_unstable_by_key(|&(channel, _)| channel);
    }

    fn sorted(&self) -> Vec<(Channel, f64)> {
        let mut load: Vec<(Channel, f64)> = Vec::with_capacity(self.channels.len());
        for flow in 0..self.len() {
            load.extend(self.channels(flow).iter().map(|&channel| (channel, self.bytes[flow])));
        }
        load.sort_by_key(|&(channel, _)| channel);
        load.dedup_by(|next, sum| {
            let same = next.0 == sum.0;
            if same {
                sum.1 += next.1;
            }
            same
        });
        load.shrink_to_fit();
        load
    }

    /// Sums bytes per channel with an array over all channels below `end`.
    fn summed(&self, end: usize) -> Vec<(Channel, f64)> {
        let mut load = vec![None; end];
        for flow in 0..self.len() {
            for &channel in self.channels(flow) {
                let sum = &mut load[channel as usize];
                *sum = Some(sum.unwrap_or(0.0) + self.bytes[flow]);
            }
        }
        let used = (0..).zip(load).filter_map(|(channel, bytes)| Some((channel, bytes?)));
        let mut used: Vec<(Channel, f64)> = used.collect();
        used.shrink_to_fit();
        used
    }
}
