//! Traffic laid over the channels of a machine.

use std::collections::HashMap;
use std::ops::Range;

use topolane_fabric::{Channel, NodeIndex, Routing, Unreachable};

use crate::matrix::Traffic;

/// Weights differ by no more than this, so that sums of them stay exact enough; what sends a smaller
/// part of its node's bytes is never what a job waits for.
pub(crate) const LEAST_WEIGHT: f64 = 1e-6;

/// Channels are sorted if the ways take fewer than a so-manieth part of those of the machine.
const SPARSE: usize = 16;

/// The rails that a node's traffic takes, ascending, and the part of its bytes on each; above 0, 1 in all.
pub type RailShares = Box<[(u32, f64)]>;

/// The rails on which data leaves a node and arrives at another one, and the part of the bytes on each.
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

/// The flows of one job: for every entry of its traffic that carries bytes the two nodes, the
/// bytes, and the channels on the way.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Flows {
    ends: Vec<(NodeIndex, NodeIndex)>,
    /// Bytes in one iteration.
    bytes: Vec<f64>,
    /// What each asks for compared with others, by their ratios.
    weight: Vec<f64>,
    /// First channel of every flow, and their number at the end.
    first: Vec<u32>,
    channels: Vec<Channel>,
    per_channel: Vec<(Channel, f64)>,
}

impl Flows {
    /// Lays `traffic` over `routing`; `node_of[rank]` is the node that the rank runs on. Ranks
    /// without a node (a matrix larger than the job) are the caller's to refuse; their flows are
    /// skipped.
    ///
    /// # Errors
    /// Two nodes that talk and that no way joins.
    pub fn new(
        traffic: &Traffic,
        node_of: &[NodeIndex],
        routing: &dyn Routing,
    ) -> Result<Flows, Unreachable> {
        let mut flows = Flows { first: vec![0], ..Flows::default() };
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

    /// The same on a machine with rails: what a rank sends is spread over the rails of its node, `rails[rank]`, and arrives on
    /// the same rail if the receiver has it, else on the receiver's rail at the same place in its list. Rails on which no
    /// route joins the two nodes are skipped, and the others carry their part.
    ///
    /// # Errors
    /// Two nodes that talk and that no rail joins.
    pub fn on_rails(
        traffic: &Traffic,
        node_of: &[NodeIndex],
        rails: &[RailShares],
        routing: &dyn Routing,
    ) -> Result<Flows, Unreachable> {
        let mut flows = Flows { first: vec![0], ..Flows::default() };
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

    /// Flows with the ways given, all of one weight: (from, to), bytes and channels of each.
    pub fn of_paths<'a>(
        paths: impl IntoIterator<Item = ((NodeIndex, NodeIndex), f64, &'a [Channel])>,
    ) -> Flows {
        let mut flows = Flows { first: vec![0], ..Flows::default() };
        for (ends, bytes, channels) in paths {
            flows.channels.extend_from_slice(channels);
            flows.close(ends, bytes);
        }
        flows.add_up();
        flows
    }

    fn close(&mut self, ends: (NodeIndex, NodeIndex), bytes: f64) {
        self.ends.push(ends);
        self.bytes.push(bytes);
        self.weight.push(1.0);
        self.first.push(self.channels.len() as u32);
    }

    /// Number of flows.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// A flow weighs what it has of the bytes that its node sends: a node's packets to all its
    /// receivers are interleaved, and many receivers give it no more of a link than few would.
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

    /// The flows that follow each other and begin on one node.
    fn by_sender(&self) -> impl Iterator<Item = (NodeIndex, Range<usize>)> + '_ {
        let runs = self.ends.chunk_by(|one, next| one.0 == next.0);
        runs.scan(0, |first, run| {
            let flows = *first..*first + run.len();
            *first = flows.end;
            Some((run[0].0, flows))
        })
    }

    /// What a flow asks for compared with others, by the ratio of their weights; above 0.
    pub fn weight(&self, flow: usize) -> f64 {
        self.weight[flow]
    }

    /// The nodes of a flow's two ends.
    pub fn ends(&self, flow: usize) -> (NodeIndex, NodeIndex) {
        self.ends[flow]
    }

    /// Bytes of a flow in one iteration.
    pub fn bytes(&self, flow: usize) -> f64 {
        self.bytes[flow]
    }

    /// The channels of a flow in order; none for a flow inside a node.
    pub fn channels(&self, flow: usize) -> &[Channel] {
        &self.channels[self.first[flow] as usize..self.first[flow + 1] as usize]
    }

    /// Bytes over every channel the flows use, by channel.
    pub fn per_channel(&self) -> &[(Channel, f64)] {
        &self.per_channel
    }

    fn add_up(&mut self) {
        let end = self.channels.iter().max().map_or(0, |&last| last as usize + 1);
        // Few ways on a large machine are sorted. Both add up in the order of the flows, to the same last bit.
        self.per_channel =
            if self.channels.len() < end / SPARSE { self.sorted() } else { self.summed(end) };
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

    /// With room for every channel below `end`.
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
