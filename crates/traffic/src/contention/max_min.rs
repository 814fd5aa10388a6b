//! Max-min fair rates: the finest model, at the cost of solving for all flows that meet.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use topolane_fabric::{Channel, Routing};

use super::Contention;
use crate::flows::Flows;

/// Every flow gets its max-min fair rate: no rate can grow but by taking from one that has no more.
/// Jobs that share channels, directly or through others, are solved together.
#[derive(Debug)]
pub struct MaxMin {
    filling: Filling,
    /// By identity: the order of solving does not depend on that of events.
    jobs: BTreeMap<u64, Present>,
    /// Jobs on every channel, ascending.
    users: Vec<Vec<u64>>,
    /// Jobs that came, and neighbours of jobs that left, since the last solution.
    unsolved: Vec<u64>,
}

#[derive(Debug)]
struct Present {
    flows: Arc<Flows>,
    /// The channels it uses, ascending.
    channels: Box<[Channel]>,
    alone: Arc<[f64]>,
    time_alone: f64,
    rates: Arc<[f64]>,
    slowdown: f64,
    /// What `settle` last told.
    told: f64,
}

impl MaxMin {
    /// Nobody on any channel of a routing.
    pub fn new(routing: &dyn Routing) -> Self {
        let channels = routing.channels();
        MaxMin {
            filling: Filling::new((0..channels).map(|channel| routing.capacity(channel)).collect()),
            jobs: BTreeMap::new(),
            users: vec![Vec::new(); channels as usize],
            unsolved: Vec::new(),
        }
    }

    fn solve(&mut self) {
        let mut unsolved = std::mem::take(&mut self.unsolved);
        unsolved.sort_unstable();
        let mut solved: Vec<u64> = Vec::new();
        for job in unsolved {
            if !solved.contains(&job) && self.jobs.contains_key(&job) {
                let together = self.connected(job);
                self.solve_together(&together);
                solved.extend(together);
            }
        }
    }

    /// The jobs that share channels with `job`, directly or through others, and itself; ascending.
    fn connected(&self, job: u64) -> Vec<u64> {
        let mut found = std::collections::BTreeSet::from([job]);
        let mut next = vec![job];
        while let Some(job) = next.pop() {
            for &channel in self.jobs.get(&job).into_iter().flat_map(|job| &job.channels) {
                for &user in &self.users[channel as usize] {
                    if found.insert(user) {
                        next.push(user);
                    }
                }
            }
        }
        found.into_iter().collect()
    }

    fn solve_together(&mut self, together: &[u64]) {
        if let [job] = together {
            // What meets nobody runs as alone, to the last bit.
            if let Some(present) = self.jobs.get_mut(job) {
                present.rates = Arc::clone(&present.alone);
                present.slowdown = 1.0;
            }
            return;
        }
        let flows: Vec<Arc<Flows>> = together
            .iter()
            .filter_map(|job| Some(Arc::clone(&self.jobs.get(job)?.flows)))
            .collect();
        let refs: Vec<&Flows> = flows.iter().map(|flows| &**flows).collect();
        let rates = self.filling.rates(&refs);
        let mut rates = rates.as_slice();
        for job in together {
            let Some(present) = self.jobs.get_mut(job) else { continue };
            let (own, others) = rates.split_at(present.flows.len());
            rates = others;
            present.rates = own.into();
            let time = slowest(&present.flows, own);
            let stretch = if present.time_alone > 0.0 { time / present.time_alone } else { 1.0 };
            present.slowdown = stretch.max(1.0);
        }
    }
}

/// Seconds until the last flow has sent its bytes.
pub(super) fn slowest(flows: &Flows, rates: &[f64]) -> f64 {
    rates.iter().enumerate().map(|(flow, rate)| flows.bytes(flow) / rate).fold(0.0, f64::max)
}

impl Contention for MaxMin {
    fn name(&self) -> &'static str {
        "max-min"
    }

    fn enter(&mut self, job: u64, flows: Arc<Flows>) {
        let channels: Box<[Channel]> =
            flows.per_channel().iter().map(|&(channel, _)| channel).collect();
        for &channel in &channels {
            let users = &mut self.users[channel as usize];
            users.insert(users.partition_point(|&user| user < job), job);
        }
        let alone: Arc<[f64]> = self.filling.rates(&[&*flows]).into();
        let present = Present {
            time_alone: slowest(&flows, &alone),
            rates: Arc::clone(&alone),
            flows,
            channels,
            alone,
            slowdown: 1.0,
            told: 1.0,
        };
        self.jobs.insert(job, present);
        self.unsolved.push(job);
    }

    fn leave(&mut self, job: u64) {
        let Some(gone) = self.jobs.remove(&job) else { return };
        for &channel in &gone.channels {
            let users = &mut self.users[channel as usize];
            users.retain(|&user| user != job);
            self.unsolved.extend_from_slice(users);
        }
        self.unsolved.sort_unstable();
        self.unsolved.dedup();
    }

    fn settle(&mut self) -> Vec<(u64, f64)> {
        self.solve();
        let mut changed = Vec::new();
        for (&job, present) in &mut self.jobs {
            if present.told.to_bits() != present.slowdown.to_bits() {
                present.told = present.slowdown;
                changed.push((job, present.slowdown));
            }
        }
        changed
    }

    fn time(&mut self, job: u64) -> f64 {
        self.solve();
        self.jobs.get(&job).map_or(0.0, |present| slowest(&present.flows, &present.rates))
    }

    fn rates(&mut self, job: u64) -> Vec<f64> {
        self.solve();
        self.jobs.get(&job).map_or_else(Vec::new, |present| present.rates.to_vec())
    }
}

/// Progressive filling (Bertsekas & Gallager, Data Networks, 1992, section 6.5.2): all rates grow
/// together until a channel is full; its flows stop there, the others go on.
#[derive(Debug, Clone)]
pub struct Filling {
    /// Bytes per second of every channel.
    capacity: Box<[f64]>,
    /// Scratch, by channel: what is left for the flows that still grow, and how many they are.
    left: Vec<f64>,
    growing: Vec<u32>,
}

impl Filling {
    /// For channels of these capacities, bytes per second.
    pub fn new(capacity: Box<[f64]>) -> Self {
        let channels = capacity.len();
        Filling { capacity, left: vec![0.0; channels], growing: vec![0; channels] }
    }

    /// The max-min fair rate of every flow, one job's flows after the other's; infinite for a flow
    /// without channels. O(L log L) for ways of L channels in all.
    pub fn rates(&mut self, jobs: &[&Flows]) -> Vec<f64> {
        let all: Vec<&[Channel]> = jobs
            .iter()
            .flat_map(|flows| (0..flows.len()).map(|flow| flows.channels(flow)))
            .collect();
        let mut used: Vec<Channel> = Vec::new();
        for channels in &all {
            for &channel in *channels {
                if self.growing[channel as usize] == 0 {
                    used.push(channel);
                    self.left[channel as usize] = self.capacity[channel as usize];
                }
                self.growing[channel as usize] += 1;
            }
        }
        let flows_on = FlowsOn::new(&all, &used, self.capacity.len());
        let mut rates = vec![f64::INFINITY; all.len()];
        let mut next: BinaryHeap<Reverse<(Share, Channel)>> =
            used.iter().map(|&channel| Reverse((self.share(channel), channel))).collect();
        // Shares only grow while flows stop, so an old entry comes up too early, never too late.
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
                *rate = share.0;
                for &other in all[flow as usize] {
                    let left = &mut self.left[other as usize];
                    *left = (*left - share.0).max(0.0);
                    self.growing[other as usize] -= 1;
                }
            }
        }
        rates
    }

    fn share(&self, channel: Channel) -> Share {
        Share(self.left[channel as usize] / f64::from(self.growing[channel as usize]))
    }
}

/// A rate that orders as a number.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Share(f64);

impl Eq for Share {}

impl Ord for Share {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Share {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The flows on every channel in use.
struct FlowsOn {
    /// By channel: first place in `flows`; `u32::MAX` where it is not in use.
    first: Vec<u32>,
    count: Vec<u32>,
    flows: Vec<u32>,
}

impl FlowsOn {
    fn new(all: &[&[Channel]], used: &[Channel], channels: usize) -> Self {
        let mut count = vec![0u32; channels];
        for &channel in all.iter().copied().flatten() {
            count[channel as usize] += 1;
        }
        let mut first = vec![0u32; channels];
        let mut end = 0;
        for &channel in used {
            first[channel as usize] = end;
            end += count[channel as usize];
            count[channel as usize] = 0;
        }
        let mut flows = vec![0u32; end as usize];
        for (flow, channels) in all.iter().enumerate() {
            for &channel in *channels {
                let place = first[channel as usize] + count[channel as usize];
                flows[place as usize] = flow as u32;
                count[channel as usize] += 1;
            }
        }
        FlowsOn { first, count, flows }
    }

    fn of(&self, channel: Channel) -> &[u32] {
        let first = self.first[channel as usize] as usize;
        &self.flows[first..first + self.count[channel as usize] as usize]
    }
}
