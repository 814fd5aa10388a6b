//! Tracks how much of every channel each job wants.

use std::collections::HashMap;

use topolane_fabric::{Channel, Routing};

use crate::flows::Flows;

/// The number of units of a channel's capacity. Shares are whole numbers of units, so sums do not depend on the order
/// of events and removals leave no rounding errors.
const UNIT: f64 = (1u64 << 40) as f64;

/// What one job wants of a channel when it is alone, in units.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Want {
    channel: Channel,
    units: u64,
}

#[derive(Debug, Clone)]
struct LoadedJob {
    wants: Box<[Want]>,
    /// Seconds of communication per iteration alone.
    time: f64,
}

/// The total share of every channel that the present jobs want, each as if alone: its bytes over the channel, divided
/// by the capacity and by its own time. The share is 1 at the job's bottleneck.
#[derive(Debug, Clone)]
pub struct Loads {
    capacity: Box<[f64]>,
    /// The units wanted of every channel.
    load: Vec<u64>,
    /// The jobs on every channel, with the units that each wants.
    users: Vec<Vec<(u64, u64)>>,
    jobs: HashMap<u64, LoadedJob>,
}

impl Loads {
    /// Returns loads without jobs, for a routing.
    pub fn new(routing: &dyn Routing) -> Self {
        let channels = routing.channels();
        Loads {
            capacity: (0..channels).map(|channel| routing.capacity(channel)).collect(),
            load: vec![0; channels as usize],
            users: vec![Vec::new(); channels as usize],
            jobs: HashMap::new(),
        }
    }

    /// Adds a job; replaces a job with the same id.
    pub fn add(&mut self, job: u64, flows: &Flows) {
        self.remove(job);
        let per_channel = flows.per_channel();
        let seconds = |&(channel, bytes): &(Channel, f64)| bytes / self.capacity[channel as usize];
        let time = per_channel.iter().map(seconds).fold(0.0, f64::max);
        let want = |pair: &(Channel, f64)| Want {
            channel: pair.0,
            units: (seconds(pair) / time * UNIT).round() as u64,
        };
        let wants: Box<[Want]> = per_channel.iter().map(want).collect();
        for want in &wants {
            self.load[want.channel as usize] += want.units;
            self.users[want.channel as usize].push((job, want.units));
        }
        self.jobs.insert(job, LoadedJob { wants, time });
    }

    /// Removes a job. Returns false if it is not present.
    pub fn remove(&mut self, job: u64) -> bool {
        let Some(gone) = self.jobs.remove(&job) else { return false };
        for want in &gone.wants {
            self.load[want.channel as usize] -= want.units;
            self.users[want.channel as usize].retain(|&(user, _)| user != job);
        }
        true
    }

    /// The number of channels.
    pub fn channels(&self) -> u32 {
        self.load.len() as u32
    }

    /// The total share of a channel that jobs want; above 1, it is not sufficient for all.
    pub fn load(&self, channel: Channel) -> f64 {
        self.load[channel as usize] as f64 / UNIT
    }

    /// The jobs on a channel, with the share that each wants.
    pub fn users(&self, channel: Channel) -> impl Iterator<Item = (u64, f64)> + '_ {
        self.users[channel as usize].iter().map(|&(job, units)| (job, units as f64 / UNIT))
    }

    /// Seconds of a job's communication per iteration alone; 0 for a job that is not present.
    pub fn time_alone(&self, job: u64) -> f64 {
        self.jobs.get(&job).map_or(0.0, |job| job.time)
    }
}
