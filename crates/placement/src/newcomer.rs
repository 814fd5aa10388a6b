//! What one more job would cost the running ones on the network, and itself.

use std::sync::Arc;

use topolane_fabric::NodeIndex;
use topolane_traffic::{Flows, Outlook, RailShares, Traffic};

use crate::job_traffic::{LaidTraffic, Weight};
use crate::network_load::NetworkLoad;
use crate::occupancy::Occupancy;
use crate::placement::Placement;
use crate::rails::{rails_of, rails_on};
use crate::request::{Request, Share};

/// A request whose nodes are to be chosen.
pub struct Newcomer<'a> {
    load: &'a NetworkLoad,
    state: &'a Occupancy,
    id: u64,
    traffic: Arc<Traffic>,
    weight: Weight,
    /// What it takes of a node, if that determines the rails on which it sends.
    share: Option<Share>,
}

impl Occupancy {
    /// A request whose nodes are to be chosen in this state; `None` if what it sends is not known or not counted, or nothing.
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
        Some(Newcomer { load, state: self, id: request.id, traffic, weight, share })
    }
}

impl Newcomer<'_> {
    /// Flows between its slots on these nodes. Each rail that a slot sends on has its own.
    pub fn flows(&self, nodes: &[NodeIndex]) -> usize {
        let rails = self.rails(nodes).and_then(|rails| rails.iter().map(|rails| rails.len()).max());
        self.traffic.entries().len() * rails.unwrap_or(1)
    }

    /// The rails of each slot on these nodes, with the GPUs that it would get there; `None` if the routing chooses.
    fn rails(&self, nodes: &[NodeIndex]) -> Option<Vec<RailShares>> {
        let (share, fabric) = (self.share.as_ref()?, self.state.fabric());
        if fabric.rails(fabric.site_of_group(0, *nodes.first()?)) == 1 {
            return None;
        }
        rails_on(fabric, nodes, share, &self.state.gpus_for(share, nodes).unwrap_or_default())
    }

    /// Its flows in a placement; none where no route joins two nodes that talk.
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

    /// To try nodes with.
    pub fn outlook(&self) -> Outlook<'_> {
        Outlook::new(&self.load.present, &*self.load.routing, &self.traffic)
    }

    /// Node-seconds lost each second on these nodes, its own and those of the jobs present.
    pub fn loss(&self, outlook: &mut Outlook<'_>, nodes: &[NodeIndex]) -> f64 {
        let (own, others) = self.losses(outlook, nodes);
        own + others
    }

    /// The same in two: its own, and those of the jobs present. The first is infinite where no route joins two of the nodes. A job loses
    /// time while it and another one communicate, as in a coupled run.
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
        (communication * own, communication * others.sum::<f64>())
    }
}
