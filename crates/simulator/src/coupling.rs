//! Couples a run with the network: how jobs communicate, and how they slow each other down.

use std::collections::HashMap;
use std::sync::Arc;

use topolane_fabric::{
    Channel, DedicatedRouting, Fabric, InputError, JobLinks, RememberedRoutes, Routing, Service,
    SpreadRouting,
};
use topolane_placement::{JobTraffic, Placement, rails_of};
use topolane_traffic::{Contention, Exchange, Flows, Traffic};

use crate::network::Network;
use crate::widths::Width;
use crate::workload::Job;

/// From this number of ranks on, all-to-all traffic is computed leaf by leaf. With fewer ranks, pair by pair is as
/// fast.
const MANY: usize = 64;

/// The pace of a job: the seconds it needs for one second of work done alone.
pub(crate) type Pace = f64;

/// The running jobs on the network.
pub(crate) struct Coupling<'a> {
    network: &'a Network,
    seed: u64,
    contention: Box<dyn Contention>,
    /// Traffic by (pattern, ranks), for the contention model.
    known: HashMap<(usize, u32), Arc<Traffic>>,
    /// Traffic by (pattern, ranks), for policies.
    for_policies: HashMap<(usize, u32), JobTraffic>,
    /// For each present job, its bytes over every channel.
    present: HashMap<u64, Box<[(Channel, f64)]>>,
    /// For jobs on links of their own: how many times longer they communicate there than alone, at the bandwidth share
    /// of their placement.
    own: HashMap<u64, f64>,
    /// For every channel, the seconds at full rate that ended jobs needed it for.
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

    /// The contention model with the present jobs.
    pub fn contention(&mut self) -> &mut dyn Contention {
        &mut *self.contention
    }

    /// Adds a job that starts; returns its pattern. Without a width it has one rank on every node.
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
            // No other job uses these links, so only the job's own messages compete.
            let ways = own_ways(routing.fabric(), placement)?;
            let (own, alone) = (
                slowest(lay(&*ways)?.per_channel(), &*ways),
                slowest(flows.per_channel(), routing),
            );
            self.own.insert(id, if alone > 0.0 { (own / alone).max(1.0) } else { 1.0 });
            return Ok(pattern);
        }
        self.present.insert(id, flows.per_channel().into());
        self.contention.enter(id, Arc::new(flows));
        Ok(pattern)
    }

    /// What a job of `ranks` ranks sends, for policies that read traffic.
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

    /// Removes a job that ends after `done` seconds of its work alone.
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

    /// The pace of a job on links of its own, with `more` times the bandwidth of its placement. Only its communication
    /// slows down.
    pub fn own_pace(&self, id: u64, more: f64) -> Option<Pace> {
        let slower = (self.own.get(&id)? / more).max(1.0);
        Some(1.0 + self.network.communication * (slower - 1.0))
    }

    /// The new pace of every job whose pace has changed. A job communicates for a share f of its time, and then each
    /// neighbour communicates with probability f: the pace is 1 + f f (slowdown - 1). With one neighbour this is the
    /// mean over independent phases, with several an approximation.
    pub fn settle(&mut self) -> Vec<(u64, Pace)> {
        let meeting = self.network.communication.powi(2);
        let pace = |(id, slowdown)| (id, 1.0 + meeting * (slowdown - 1.0));
        self.contention.settle().into_iter().map(pace).collect()
    }

    /// For every channel, the seconds at full rate that all jobs needed it for.
    pub fn into_busy(self) -> Vec<f64> {
        self.busy
    }
}

/// The routes of a job over its own links: on a tree by the tables that `topolane routes` writes.
fn own_ways(fabric: &Arc<Fabric>, placement: &Placement) -> Result<Box<dyn Routing>, InputError> {
    if !fabric.wiring().is_tree() {
        return Ok(Box::new(SpreadRouting::over(Arc::clone(fabric), placement.links())?));
    }
    let job = JobLinks {
        name: "a job".to_owned(),
        nodes: placement.nodes().to_vec(),
        links: placement.links().to_vec(),
    };
    let routing = DedicatedRouting::new(fabric, &[job], &Service::default())?;
    Ok(Box::new(RememberedRoutes::new(routing)))
}

/// Seconds of an iteration on the channel that takes longest, without other jobs.
fn slowest(load: &[(Channel, f64)], routing: &dyn Routing) -> f64 {
    let seconds = |&(channel, bytes): &(Channel, f64)| bytes / routing.capacity(channel);
    load.iter().map(seconds).fold(0.0, f64::max)
}
