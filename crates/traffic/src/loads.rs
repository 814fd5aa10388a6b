//! Who puts how much on every channel.

use std::collections::HashMap;

use topolane_fabric::{Channel, Routing};

use crate::flows::Flows;

/// Units of a channel's capacity in which shares are counted: sums of whole numbers do not depend
/// on the order of events, and what goes leaves nothing behind.
const UNIT: f64 = (1u64 << 40) as f64;

/// What one job wants of a channel when it is alone, in units.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Want {
    channel: Channel,
    units: u64,
}

#[derive(Debug, Clone)]
struct Job {
    wants: Box<[Want]>,
    /// Seconds of an iteration's communication alone.
    time: f64,
}

/// The share of every channel that the jobs present want, each as when it is alone: its bytes over
/// the channel per capacity and per its own time, 1 at its bottleneck.
#[derive(Debug, Clone)]
pub struct Loads {
    capacity: Box<[f64]>,
    /// Units wanted of every channel.
    load: Vec<u64>,
    /// Jobs on every channel, with what each wants.
    users: Vec<Vec<(u64, u64)>>,
    jobs: HashMap<u64, Job>,
}

impl Loads {
    /// No job on any channel of a routing.
    pub fn new(routing: &dyn Routing) -> Self {
        let channels = routing.channels();
        Loads {
            capacity: (0..channels).map(|channel| routing.capacity(channel)).collect(),
            load: vec![0; channels as usize],
            users: vec![Vec::new(); channels as usize],
            jobs: HashMap::new(),
        }
    }

    /// Adds a job; if one of that identity is there, it is replaced.
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
        self.jobs.insert(job, Job { wants, time });
    }

    /// Takes a job away; false if it is not there.
    pub fn remove(&mut self, job: u64) -> bool {
        let Some(gone) = self.jobs.remove(&job) else { return false };
        for want in &gone.wants {
            self.load[want.channel as usize] -= want.units;
            self.users[want.channel as usize].retain(|&(user, _)| user != job);
        }
        true
    }

    /// Number of channels.
    pub fn channels(&self) -> u32 {
        self.load.len() as u32
    }

    /// The share of a channel that is wanted: above 1 there is not enough for all.
    pub fn load(&self, channel: Channel) -> f64 {
        self.load[channel as usize] as f64 / UNIT
    }

    /// Who uses a channel, and the share of it that each wants.
    pub fn users(&self, channel: Channel) -> impl Iterator<Item = (u64, f64)> + '_ {
        self.users[channel as usize].iter().map(|&(job, units)| (job, units as f64 / UNIT))
    }

    /// Seconds of an iteration's communication of a job alone; 0 for one that is not there.
    pub fn time_alone(&self, job: u64) -> f64 {
        self.jobs.get(&job).map_or(0.0, |job| job.time)
    }
}
