//! Computes max-min fair rates of flows over channels.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use topolane_fabric::{Channel, Splits};

use crate::flows::{Flows, LEAST_WEIGHT};

/// Progressive filling (Bertsekas & Gallager, Data Networks, 1992, section 6.5.2). All rates grow together, in
/// proportion to their weights, until a channel is full. Its flows stop growing, the others continue.
#[derive(Debug, Clone)]
pub struct Filling {
    /// Bandwidth of every channel in bytes per second.
    capacity: Box<[f64]>,
    /// Working memory, by channel: the bandwidth left for flows that still grow, their number and their weight.
    left: Vec<f64>,
    growing: Vec<u32>,
    weight: Vec<f64>,
    /// The least part of a flow on any channel.
    least_part: f64,
    /// Whether all flows are treated as having the same weight.
    alike: bool,
}

impl Filling {
    /// Returns a solver for channels of these capacities, in bytes per second.
    pub fn new(capacity: Box<[f64]>) -> Self {
        let channels = capacity.len();
        let none = vec![0.0; channels];
        Filling {
            capacity,
            left: none.clone(),
            growing: vec![0; channels],
            weight: none,
            least_part: 1.0,
            alike: false,
        }
    }

    /// Returns a solver that gives all flows the same weight.
    #[must_use]
    pub fn alike(self) -> Self {
        Filling { alike: true, ..self }
    }

    /// The max-min fair rate of every flow, one job's flows after another's; infinite for a flow without channels. O(L
    /// log L) for L channels on all routes together.
    pub fn rates(&mut self, jobs: &[&Flows]) -> Vec<f64> {
        let flows =
            || jobs.iter().flat_map(|flows| (0..flows.len()).map(move |flow| (flows, flow)));
        let alike = self.alike;
        let weight = |flows: &Flows, flow| if alike { 1.0 } else { flows.weight(flow) };
        let all: Vec<GrowingFlow> = flows()
            .map(|(flows, flow)| GrowingFlow {
                entries: flows.channels(flow),
                splits: flows.splits(),
                weight: weight(flows, flow),
            })
            .collect();
        let used = self.begin(&all);
        let flows_on = FlowsOn::new(&all, &used, self.capacity.len());
        let mut rates = vec![f64::INFINITY; all.len()];
        let mut next: BinaryHeap<Reverse<(SortedRate, Channel)>> =
            used.iter().map(|&channel| Reverse((self.share(channel), channel))).collect();
        // Shares only grow as flows stop, so an outdated entry comes up too early, never too late.
        while let Some(Reverse((share, channel))) = next.pop() {
            if self.growing[channel as usize] == 0 {
                continue;
            }
            let now = self.share(channel);
            if now > share {
                next.push(Reverse((now, channel)));
                continue;
            }
            for &flow in flows_on.of(channel) {
                let rate = &mut rates[flow as usize];
                if rate.is_finite() {
                    continue;
                }
                let GrowingFlow { weight, .. } = all[flow as usize];
                *rate = share.0 * weight;
                all[flow as usize]
                    .each(|other, part| self.stop(other, part * *rate, part * weight));
            }
        }
        rates
    }

    /// Counts all flows and returns the channels that they use.
    fn begin(&mut self, all: &[GrowingFlow<'_>]) -> Vec<Channel> {
        let mut used: Vec<Channel> = Vec::new();
        self.least_part = 1.0;
        for flow in all {
            flow.each(|channel, part| {
                let index = channel as usize;
                if self.growing[index] == 0 {
                    used.push(channel);
                    self.left[index] = self.capacity[index];
                    self.weight[index] = 0.0;
                }
                self.growing[index] += 1;
                self.weight[index] += part * flow.weight;
                self.least_part = self.least_part.min(part);
            });
        }
        used
    }

    /// Stops the growth of a flow over the channel.
    fn stop(&mut self, channel: Channel, rate: f64, weight: f64) {
        let index = channel as usize;
        self.left[index] = (self.left[index] - rate).max(0.0);
        self.weight[index] -= weight;
        self.growing[index] -= 1;
    }

    /// The bandwidth left on a channel, per weight.
    fn share(&self, channel: Channel) -> SortedRate {
        let index = channel as usize;
        // Rounding must not make the remaining weight smaller than its lower bound.
        let least = f64::from(self.growing[index]) * LEAST_WEIGHT * self.least_part;
        SortedRate(self.left[index] / self.weight[index].max(least))
    }
}

/// A flow whose rate is to be found.
#[derive(Clone, Copy)]
struct GrowingFlow<'a> {
    /// Channels and splits.
    entries: &'a [Channel],
    splits: &'a Splits,
    weight: f64,
}

impl GrowingFlow<'_> {
    /// Calls `each` with the channels, and the part of the flow on each.
    #[inline]
    fn each(&self, mut each: impl FnMut(Channel, f64)) {
        self.entries.iter().for_each(|&entry| self.splits.each(entry, &mut each));
    }
}

/// A rate that can be sorted.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SortedRate(f64);

impl Eq for SortedRate {}

impl Ord for SortedRate {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for SortedRate {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The flows on every channel in use.
struct FlowsOn {
    /// For each channel, the first index in `flows`; `u32::MAX` if the channel is not in use.
    first: Vec<u32>,
    count: Vec<u32>,
    flows: Vec<u32>,
}

impl FlowsOn {
    fn new(all: &[GrowingFlow<'_>], used: &[Channel], channels: usize) -> Self {
        let mut count = vec![0u32; channels];
        for flow in all {
            flow.each(|channel, _| count[channel as usize] += 1);
        }
        let mut first = vec![0u32; channels];
        let mut end = 0;
        for &channel in used {
            first[channel as usize] = end;
            end += count[channel as usize];
            count[channel as usize] = 0;
        }
        let mut flows = vec![0u32; end as usize];
        for (index, flow) in all.iter().enumerate() {
            flow.each(|channel, _| {
                let place = first[channel as usize] + count[channel as usize];
                flows[place as usize] = index as u32;
                count[channel as usize] += 1;
            });
        }
        FlowsOn { first, count, flows }
    }

    fn of(&self, channel: Channel) -> &[u32] {
        let first = self.first[channel as usize] as usize;
        &self.flows[first..first + self.count[channel as usize] as usize]
    }
}
