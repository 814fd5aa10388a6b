//! Predicts what one more job would cost on the network: its own slowdown and that of running jobs.

use std::sync::Arc;

use topolane_fabric::NodeIndex;
use topolane_traffic::{Flows, Outlook, RailShares, Traffic};

use crate::job_traffic::{LaidTraffic, Weight};
use crate::network_load::NetworkLoad;
use crate::occupancy::Occupancy;
use crate::placement::Placement;
use crate::rails::{rails_of, rails_on};
use crate::request::{Request, Share};

/// A request that still needs nodes, with the traffic it will send.
pub struct Newcomer<'a> {
    load: &'a NetworkLoad,
    state: &'a Occupancy,
    id: u64,
    traffic: Arc<Traffic>,
    weight: Weight,
    /// What a slot takes of a node, if that decides the rails on which the job sends.
    share: Option<Share>,
    /// Seconds of an iteration if only the links of nodes limited it; `None` on a tree.
    least_time: Option<f64>,
}

impl Occupancy {
    /// Returns the request with its traffic; `None` if its traffic is unknown, empty or not tracked by this occupancy.
    pub(crate) fn newcomer(&self, request: &Request) -> Option<Newcomer<'_>> {
        let load = self.network()?;
        let job = request.traffic.as_ref().filter(|_| request.nodes > 1)?;
        let weight = Weight {
            slots: f64::from(request.nodes),
            communication: job.communication,
            start: load.now,
            end: load.now + request.walltime,
        };
        let share =
            (job.on_rails && load.routing.distinguishes_rails()).then(|| request.share.clone());
        let traffic = job.between(request.nodes);
        let least_time = (!self.fabric().wiring().is_tree()).then(|| self.least_time(&traffic));
        Some(Newcomer { load, state: self, id: request.id, traffic, weight, share, least_time })
    }
}

impl Occupancy {
    /// Seconds of an iteration if the links of nodes alone limited it, with each rank on a node as the first.
    fn least_time(&self, traffic: &Traffic) -> f64 {
        let fabric = self.fabric();
        let bandwidth: f64 = fabric.uplinks(0, 0).map(|link| fabric.bandwidth(link)).sum();
        let mut bytes = vec![(0.0, 0.0); traffic.ranks() as usize];
        for entry in traffic.entries() {
            bytes[entry.from as usize].0 += entry.bytes;
            bytes[entry.to as usize].1 += entry.bytes;
        }
        let most = |&(sent, received): &(f64, f64)| sent.max(received);
        bytes.iter().map(most).fold(0.0, f64::max) / bandwidth
    }
}

impl Newcomer<'_> {
    /// The number of flows between its slots on these nodes. A slot that sends on several rails has a flow on each.
    pub fn flows(&self, nodes: &[NodeIndex]) -> usize {
        let rails = self.rails(nodes).and_then(|rails| rails.iter().map(|rails| rails.len()).max());
        self.traffic.entries().len() * rails.unwrap_or(1)
    }

    /// The rails of each slot on these nodes, from the GPUs that it would get; `None` if the routing chooses the rails.
    fn rails(&self, nodes: &[NodeIndex]) -> Option<Vec<RailShares>> {
        let (share, fabric) = (self.share.as_ref()?, self.state.fabric());
        if fabric.rails(fabric.site_of_group(0, *nodes.first()?)) == 1 {
            return None;
        }
        rails_on(fabric, nodes, share, &self.state.gpus_for(share, nodes).unwrap_or_default())
    }

    /// Returns the flows of the request in a placement; none if no route connects two nodes that communicate.
    pub fn lay(&self, placement: &Placement) -> LaidTraffic {
        let (nodes, routing) = (placement.nodes(), &*self.load.routing);
        let rails = self.share.as_ref().and_then(|_| rails_of(self.state.fabric(), placement));
        let flows = match rails {
            Some(rails) => Flows::on_rails(&self.traffic, nodes, &rails, routing),
            None => Flows::new(&self.traffic, nodes, routing),
        };
        let flows = flows.unwrap_or_default();
        LaidTraffic { job: self.id, flows: Arc::new(flows), weight: self.weight }
    }

    /// Returns a predictor with which to try nodes.
    pub fn outlook(&self) -> Outlook<'_> {
        Outlook::new(&self.load.present, &*self.load.routing, &self.traffic)
    }

    /// Node-seconds lost per second if the job gets these nodes, by the job itself and by running jobs.
    pub fn loss(&self, outlook: &mut Outlook<'_>, nodes: &[NodeIndex]) -> f64 {
        let (own, others) = self.losses(outlook, nodes);
        own + others
    }

    /// Node-seconds lost per second, as a pair: by the job itself, and by running jobs. The first is infinite if no
    /// route connects two of the nodes. A job loses time while it and another job communicate, as in a coupled
    /// simulation. On other wirings than trees, where few routes join two switches, the job also loses what its own
    /// flows lose to each other there, with the same weight as what other jobs cost it.
    pub fn losses(&self, outlook: &mut Outlook<'_>, nodes: &[NodeIndex]) -> (f64, f64) {
        let rails = self.rails(nodes);
        let Ok(foreseen) = outlook.foresee(nodes, rails.as_deref()) else {
            return (f64::INFINITY, 0.0);
        };
        let Weight { slots, communication, end, .. } = self.weight;
        let own = slots * communication * (foreseen.slowdown - 1.0);
        let others = foreseen.others.iter().map(|&(job, before, after)| {
            let lost = |weight: &Weight| {
                let both = self.load.overlap(*weight, end);
                both * weight.slots * weight.communication * (after - before)
            };
            self.load.weights.get(&job).map_or(0.0, lost)
        });
        let among_itself = self.least_time.filter(|&least| least > 0.0).map_or(0.0, |least| {
            slots * communication * (foreseen.time_alone / least - 1.0).max(0.0)
        });
        (communication * (own + among_itself), communication * others.sum::<f64>())
    }
}
