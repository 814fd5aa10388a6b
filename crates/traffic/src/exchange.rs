//! All-to-all traffic over the channels of a machine, computed leaf by leaf and not pair by pair.

use std::collections::HashMap;

use topolane_fabric::{Channel, NodeIndex, Routing, Splits};

use crate::flows::LEAST_WEIGHT;
use crate::matrix::Traffic;

/// The flows of a job whose ranks all send each other the same amount, one rank per node. It has the same information
/// as [`Flows`](crate::Flows) without a list of flows.
#[derive(Debug, Clone)]
pub struct Exchange {
    bytes: f64,
    weight: f64,
    /// The channels used, and then the splits, both ascending, with the number of flows on each.
    used: Vec<(Channel, f64)>,
    /// The number of channels among them.
    channels: usize,
    splits: Splits,
    /// For each rank, the index in `used` of the channel on which it sends.
    first: Vec<u32>,
    senders: Vec<Senders>,
}

/// The ranks on one leaf whose links have the same bandwidth.
#[derive(Debug, Clone, Default)]
struct Senders {
    ranks: Vec<u32>,
    /// For each receiver, the end of its range in `channels`.
    end: Vec<u32>,
    /// Indices in `used` of the channels and splits after the senders' own.
    channels: Vec<u32>,
}

/// Flows to one rank that share all channels except the first.
pub(crate) struct FlowClass<'a> {
    pub(crate) receiver: u32,
    /// The number of flows; at least 1.
    pub(crate) flows: u32,
    /// Indices of their channels and splits after the first.
    pub(crate) channels: &'a [u32],
}

impl Exchange {
    /// Returns the flows of `traffic` over `routing` with rank r on `node_of[r]`. `None` if [`Flows`](crate::Flows) is
    /// needed: the traffic is not the same for all pairs, a node has several ranks, a rank has no node, routes are not
    /// [by leaf](Routing::by_leaf), or a route is missing.
    pub fn new(
        traffic: &Traffic,
        node_of: &[NodeIndex],
        routing: &dyn Routing,
    ) -> Option<Exchange> {
        let bytes = traffic.exchanged()?;
        let node_of = node_of.get(..traffic.ranks() as usize)?;
        if !routing.by_leaf() || has_double(node_of) {
            return None;
        }
        let mut first = first_channels(node_of, routing)?;
        let mut senders = by_leaf(node_of, &first, routing);
        let others = traffic.ranks() - 1;
        let splits = routing.splits();
        let mut flows = vec![0u32; (routing.channels() + splits.count()) as usize];
        for &channel in &first {
            flows[channel as usize] = others;
        }
        for group in &mut senders {
            group.lay(node_of, routing)?;
            for class in group.classes() {
                for &channel in class.channels {
                    flows[channel as usize] += class.flows;
                }
            }
        }
        let mut on: Vec<f64> = flows.iter().copied().map(f64::from).collect();
        for split in (splits.first()..).take(splits.count() as usize) {
            let flows = on[split as usize];
            if flows > 0.0 {
                splits.each(split, |channel, part| on[channel as usize] += part * flows);
            }
        }
        let used: Vec<(Channel, f64)> = (0..).zip(on).filter(|&(_, flows)| flows > 0.0).collect();
        let mut place = flows;
        for (index, &(channel, _)) in (0..).zip(&used) {
            place[channel as usize] = index;
        }
        let channels = used.partition_point(|&(entry, _)| !splits.has(entry));
        let lists = senders.iter_mut().map(|group| &mut group.channels).chain([&mut first]);
        for channel in lists.flatten() {
            *channel = place[*channel as usize];
        }
        let weight = (1.0 / f64::from(others)).max(LEAST_WEIGHT);
        Some(Exchange { bytes, weight, used, channels, splits, first, senders })
    }

    /// The number of ranks.
    pub(crate) fn ranks(&self) -> usize {
        self.first.len()
    }

    /// The bytes of every flow.
    pub fn bytes(&self) -> f64 {
        self.bytes
    }

    /// The weight of every flow, as in [`Flows::weight`](crate::Flows::weight).
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// The channels used, ascending, with the number of flows on each. A flow counts by the part of it that is there.
    pub fn used(&self) -> &[(Channel, f64)] {
        &self.used[..self.channels]
    }

    /// The splits used, ascending, as routes name them. Their indices follow those of the channels used.
    pub(crate) fn used_splits(&self) -> impl Iterator<Item = Channel> + '_ {
        self.used[self.channels..].iter().map(|&(split, _)| split)
    }

    /// The splits that routes may name.
    pub(crate) fn splits(&self) -> &Splits {
        &self.splits
    }

    /// The bytes over every channel used, sorted by channel.
    pub fn per_channel(&self) -> Box<[(Channel, f64)]> {
        let bytes = |&(channel, flows): &(Channel, f64)| (channel, flows * self.bytes);
        self.used().iter().map(bytes).collect()
    }

    /// For every group, its senders, each with the index of its own channel, and the classes of their flows.
    pub(crate) fn groups(
        &self,
    ) -> impl Iterator<
        Item = (impl Iterator<Item = (u32, u32)> + Clone + '_, impl Iterator<Item = FlowClass<'_>>),
    > {
        self.senders.iter().map(|group| {
            let ranks = group.ranks.iter();
            (ranks.map(|&rank| (rank, self.first[rank as usize])), group.classes())
        })
    }
}

impl Senders {
    /// Finds the channels to every receiver.
    fn lay(&mut self, node_of: &[NodeIndex], routing: &dyn Routing) -> Option<()> {
        let mut path = Vec::new();
        for (receiver, &node) in (0..).zip(node_of) {
            // Use any sender of the group except the receiver; there is none if the group is only the receiver.
            if let Some(&from) = self.ranks.iter().find(|&&rank| rank != receiver) {
                path.clear();
                routing.path(node_of[from as usize], node, &mut path).ok()?;
                self.channels.extend_from_slice(path.get(1..)?);
            }
            self.end.push(self.channels.len() as u32);
        }
        Some(())
    }

    fn classes(&self) -> impl Iterator<Item = FlowClass<'_>> {
        let mut ranks = self.ranks.iter().copied().peekable();
        let mut first = 0;
        let all = self.ranks.len() as u32;
        (0..).zip(&self.end).filter_map(move |(receiver, &end)| {
            let channels = &self.channels[first..end as usize];
            first = end as usize;
            let among = ranks.next_if_eq(&receiver).is_some();
            let flows = all - u32::from(among);
            (flows > 0).then_some(FlowClass { receiver, flows, channels })
        })
    }
}

fn has_double(nodes: &[NodeIndex]) -> bool {
    let mut sorted = nodes.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}

/// The channel on which each rank sends; there must be at least two ranks.
fn first_channels(node_of: &[NodeIndex], routing: &dyn Routing) -> Option<Vec<Channel>> {
    let mut path = Vec::new();
    let ends =
        node_of.iter().zip([node_of.get(1)?].into_iter().chain(std::iter::repeat(&node_of[0])));
    ends.map(|(&from, &to)| {
        path.clear();
        routing.path(from, to, &mut path).ok()?;
        path.first().copied()
    })
    .collect()
}

/// Groups the ranks by leaf and by the bandwidth of their links, ascending in each group.
fn by_leaf(node_of: &[NodeIndex], first: &[Channel], routing: &dyn Routing) -> Vec<Senders> {
    let fabric = routing.fabric();
    let mut place: HashMap<(u32, u64), usize> = HashMap::new();
    let mut groups: Vec<Senders> = Vec::new();
    for (rank, (&node, &channel)) in (0..).zip(node_of.iter().zip(first)) {
        let key = (fabric.group(1, node), routing.capacity(channel).to_bits());
        let index = *place.entry(key).or_insert(groups.len());
        if index == groups.len() {
            groups.push(Senders::default());
        }
        groups[index].ranks.push(rank);
    }
    groups
}
