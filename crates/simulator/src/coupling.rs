//! The coupling of a run with the network: who communicates how, and what it costs the others.

use std::collections::HashMap;
use std::sync::Arc;

use topolane_fabric::{
    Channel, Dedicated, Fabric, InputError, JobLinks, Remembered, Routing, Service,
};
use topolane_placement::{JobTraffic, Placement, rails_of};
use topolane_traffic::{Contention, Exchange, Flows, Traffic};

use crate::network::Network;
use crate::widths::Width;
use crate::workload::Job;

/// The number of ranks from which on all-to-all traffic is laid leaf by leaf. With fewer, pair by pair is as fast.
const MANY: usize = 64;

/// A job's pace, seconds needed for one second alone.
pub(crate) type Pace = f64;

/// The running jobs on the network.
pub(crate) struct Coupling<'a> {
    network: &'a Network,
    seed: u64,
    contention: Box<dyn Contention>,
    /// Traffic by (pattern, ranks).
    known: HashMap<(usize, u32), Arc<Traffic>>,
    /// The same as policies see it.
    for_policies: HashMap<(usize, u32), JobTraffic>,
    /// Bytes over every channel of the jobs present.
    present: HashMap<u64, Box<[(Channel, f64)]>>,
    /// Of jobs on links of their own how many times longer they communicate there than alone, at the share of full
    /// bandwidth that they were placed with.
    own: HashMap<u64, f64>,
    /// Of every channel the seconds at full rate that the jobs ended so far needed it for.
    busy: Vec<f64>,
}

impl<'a> Coupling<'a> {
    pub fn new(network: &'a Network, seed: u64) -> Self {
        let routing = &network.routing;
        Coupling {
            network,
            seed,
            contention: (network.model.build)(&**routing),
            known: HashMap::new(),
            for_policies: HashMap::new(),
            present: HashMap::new(),
            own: HashMap::new(),
            busy: vec![0.0; routing.channels() as usize],
        }
    }

    /// The jobs present.
    pub fn contention(&mut self) -> &mut dyn Contention {
        &mut *self.contention
    }

    /// A job begins; answers its pattern. Without a width it has a rank on every node.
    pub fn enter(
        &mut self,
        id: u64,
        job: &Job,
        placement: &Placement,
        width: Option<&Width>,
    ) -> Result<usize, InputError> {
        let pattern = self.network.pattern_of(job, self.seed);
        if !placement.spans_nodes() {
            return Ok(pattern);
        }
        let of_job = |error: String| InputError::whole(format!("job {}: {error}", job.id));
        let by_width = width.map(|width| width.node_of(placement));
        let nodes = by_width.as_deref().unwrap_or(placement.nodes());
        let traffic = self.traffic(pattern, nodes.len() as u32).map_err(of_job)?;
        let routing = &*self.network.routing;
        let rails = if width.is_none() { rails_of(routing.fabric(), placement) } else { None };
        if nodes.len() >= MANY
            && rails.is_none()
            && placement.links().is_empty()
            && let Some(exchange) = Exchange::new(&traffic, nodes, routing)
            && self.contention.enter_exchange(id, &exchange)
        {
            self.present.insert(id, exchange.per_channel());
            return Ok(pattern);
        }
        let lay = |routing: &dyn Routing| {
            let flows = match &rails {
                Some(rails) if routing.distinguishes_rails() => {
                    Flows::on_rails(&traffic, nodes, rails, routing)
                }
                _ => Flows::new(&traffic, nodes, routing),
            };
            flows.map_err(|error| of_job(error.on(routing.fabric())))
        };
        let flows = lay(routing)?;
        if !placement.links().is_empty() {
            // No other job uses these links, so the job meets only itself.
            let ways = own_ways(routing.fabric(), placement)?;
            let (own, alone) =
                (slowest(lay(&ways)?.per_channel(), &ways), slowest(flows.per_channel(), routing));
            self.own.insert(id, if alone > 0.0 { (own / alone).max(1.0) } else { 1.0 });
            return Ok(pattern);
        }
        self.present.insert(id, flows.per_channel().into());
        self.contention.enter(id, Arc::new(flows));
        Ok(pattern)
    }

    /// What a job of `ranks` ranks sends, for a policy that looks at it.
    pub fn traffic_of(&mut self, job: &Job, ranks: u32) -> Result<JobTraffic, InputError> {
        let pattern = self.network.pattern_of(job, self.seed);
        if let Some(known) = self.for_policies.get(&(pattern, ranks)) {
            return Ok(known.clone());
        }
        let traffic = self.traffic(pattern, ranks);
        let traffic =
            traffic.map_err(|error| InputError::whole(format!("job {}: {error}", job.id)))?;
        let traffic = JobTraffic::new(&traffic, self.network.communication);
        self.for_policies.insert((pattern, ranks), traffic.clone());
        Ok(traffic)
    }

    fn traffic(&mut self, pattern: usize, ranks: u32) -> Result<Arc<Traffic>, String> {
        if let Some(traffic) = self.known.get(&(pattern, ranks)) {
            return Ok(Arc::clone(traffic));
        }
        let made = self.network.patterns[pattern].traffic(ranks, self.seed);
        let made = Arc::new(made.map_err(|error| error.message)?);
        self.known.insert((pattern, ranks), Arc::clone(&made));
        Ok(made)
    }

    /// A job ends that has done `done` seconds of what it needs alone.
    pub fn leave(&mut self, id: u64, done: f64) {
        if self.own.remove(&id).is_some() {
            return;
        }
        self.contention.leave(id);
        let Some(load) = self.present.remove(&id) else { return };
        let routing = &self.network.routing;
        let slowest = slowest(&load, &**routing);
        for &(channel, bytes) in &load {
            let seconds = bytes / routing.capacity(channel);
            self.busy[channel as usize] += seconds / slowest * done * self.network.communication;
        }
    }

    /// The pace of a job on links of its own that has `more` times the bandwidth it was placed with: all of what it
    /// communicates is slowed, and nothing else.
    pub fn own_pace(&self, id: u64, more: f64) -> Option<Pace> {
        let slower = (self.own.get(&id)? / more).max(1.0);
        Some(1.0 + self.network.communication * (slower - 1.0))
    }

    /// The jobs whose pace has changed. A job communicates a share f of its time, and in that time
    /// its neighbours do so for a share f of theirs: 1 + f f (slowdown - 1). For one neighbour that
    /// is the mean over independent phases, for several an approximation of it.
    pub fn settle(&mut self) -> Vec<(u64, Pace)> {
        let meeting = self.network.communication.powi(2);
        let pace = |(id, slowdown)| (id, 1.0 + meeting * (slowdown - 1.0));
        self.contention.settle().into_iter().map(pace).collect()
    }

    /// Of every channel the seconds at full rate that all jobs needed it for.
    pub fn into_busy(self) -> Vec<f64> {
        self.busy
    }
}

/// The ways of a job over its own links, by the tables that `topolane routes` writes.
fn own_ways(fabric: &Arc<Fabric>, placement: &Placement) -> Result<Remembered, InputError> {
    let job = JobLinks {
        name: "a job".to_owned(),
        nodes: placement.nodes().to_vec(),
        links: placement.links().to_vec(),
    };
    Dedicated::new(fabric, &[job], &Service::default()).map(Remembered::new)
}

/// Seconds of an iteration on the channel that takes longest, without other jobs.
fn slowest(load: &[(Channel, f64)], routing: &dyn Routing) -> f64 {
    let seconds = |&(channel, bytes): &(Channel, f64)| bytes / routing.capacity(channel);
    load.iter().map(seconds).fold(0.0, f64::max)
}
