//! What the running jobs send over the network at this moment, and what one more job would cost them.

use std::collections::HashMap;
use std::sync::Arc;

use topolane_fabric::{InputError, NodeIndex, Routing};
use topolane_traffic::{Congestion, Contention, Flows, Outlook, RailShares, Traffic, pattern};

use crate::occupancy::Occupancy;
use crate::placement::Placement;
use crate::rails::{rails_of, rails_on};
use crate::request::{Request, Share};

/// The most entries of a matrix that a decision looks at. A larger one is represented by so many, drawn evenly.
pub(crate) const MOST_ENTRIES: usize = 4096;

/// What a job sends, as far as it is known before the job has nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct JobTraffic {
    traffic: Arc<Traffic>,
    communication: f64,
    on_rails: bool,
}

impl JobTraffic {
    /// What a job whose traffic is not known is taken to send: each node to as many others, drawn at random.
    pub const ASSUMED: &'static str = "uniform(messages=4)";
    /// And the part of its time for which it is taken to do so.
    pub const ASSUMED_COMMUNICATION: f64 = 0.3;

    /// The traffic between the ranks of a job, and the part of its time for which it communicates, 0 to 1. The ranks lie on
    /// its slots evenly and in blocks.
    pub fn new(traffic: &Arc<Traffic>, communication: f64) -> Self {
        let traffic = if traffic.entries().len() > MOST_ENTRIES {
            Arc::new(traffic.thinned(MOST_ENTRIES))
        } else {
            Arc::clone(traffic)
        };
        JobTraffic { traffic, communication, on_rails: true }
    }

    /// The same, sent on the rails of the job's GPUs ([`rails_of`](crate::rails_of)), which is the rule, or as the routing
    /// prefers.
    #[must_use]
    pub fn on_rails(self, on_rails: bool) -> Self {
        JobTraffic { on_rails, ..self }
    }

    /// Of a job on so many slots of which nothing is known.
    ///
    /// # Errors
    /// More slots than a matrix may have ranks.
    pub fn assumed(slots: u32) -> Result<Self, InputError> {
        let traffic = pattern(JobTraffic::ASSUMED)?.traffic(slots, 0)?;
        Ok(JobTraffic::new(&Arc::new(traffic), JobTraffic::ASSUMED_COMMUNICATION))
    }

    /// The traffic between so many slots.
    fn between(&self, slots: u32) -> Arc<Traffic> {
        if self.traffic.ranks() <= slots {
            return Arc::clone(&self.traffic);
        }
        // No more ranks than before, so no matrix is refused.
        self.traffic.folded(slots).map_or_else(|_| Arc::clone(&self.traffic), Arc::new)
    }
}

/// The flows of a job on its nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct LaidTraffic {
    job: u64,
    flows: Arc<Flows>,
    weight: Weight,
}

impl LaidTraffic {
    /// The identity of the job.
    pub fn job(&self) -> u64 {
        self.job
    }

    /// The same of a job that must have ended at that time, seconds.
    #[must_use]
    pub fn until(mut self, end: f64) -> Self {
        self.weight.end = end;
        self
    }
}

/// What a second of a job counts for, and the time within which it runs, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Weight {
    slots: f64,
    communication: f64,
    /// When its nodes were chosen; later than now for a job that is promised its nodes for a later time.
    start: f64,
    /// By its time limit.
    end: f64,
}

/// The flows of the running jobs over the channels of a machine, changed by every claim and release. What a job loses is
/// predicted by the model `congestion`.
#[derive(Debug, Clone)]
pub struct NetworkLoad {
    routing: Arc<dyn Routing>,
    present: Congestion,
    weights: HashMap<u64, Weight>,
    /// The time, seconds.
    now: f64,
}

impl NetworkLoad {
    /// No job on any channel of a routing.
    pub fn new(routing: Arc<dyn Routing>) -> Self {
        NetworkLoad {
            present: Congestion::new(&*routing),
            routing,
            weights: HashMap::new(),
            now: 0.0,
        }
    }

    /// A request in the state that this belongs to; `None` if it names no traffic, or has one slot.
    fn newcomer<'a>(&'a self, request: &Request, state: &'a Occupancy) -> Option<Newcomer<'a>> {
        let job = request.traffic.as_ref().filter(|_| request.nodes > 1)?;
        let weight = Weight {
            slots: f64::from(request.nodes),
            communication: job.communication,
            start: self.now,
            end: self.now + request.walltime,
        };
        let share = (job.on_rails && self.routing.tells_rails()).then(|| request.share.clone());
        let traffic = job.between(request.nodes);
        Some(Newcomer { load: self, state, id: request.id, traffic, weight, share })
    }

    /// A job begins. One that is there already stays as it is.
    pub(crate) fn enter(&mut self, laid: &LaidTraffic) {
        if self.weights.contains_key(&laid.job) {
            return;
        }
        self.weights.insert(laid.job, laid.weight);
        self.present.enter(laid.job, Arc::clone(&laid.flows));
        self.present.settle();
    }

    /// A job ends.
    pub(crate) fn leave(&mut self, laid: &LaidTraffic) {
        self.weights.remove(&laid.job);
        self.present.leave(laid.job);
        self.present.settle();
    }

    /// Changes when a job must have ended.
    pub(crate) fn set_end(&mut self, job: u64, end: f64) {
        if let Some(weight) = self.weights.get_mut(&job) {
            weight.end = end;
        }
    }

    pub(crate) fn set_time(&mut self, now: f64) {
        self.now = now;
    }

    /// The part of the time until `end` for which a job present runs, by its time limit; all of it if there is no `end`.
    fn overlap(&self, job: Weight, end: f64) -> f64 {
        let whole = end - self.now;
        let both = job.end.min(end) - job.start.max(self.now);
        if both >= whole || whole <= 0.0 || whole == f64::INFINITY {
            1.0
        } else {
            both.max(0.0) / whole
        }
    }

    /// The slowdowns of the jobs present while all communicate, by identity.
    pub fn slowdowns(&self) -> Vec<(u64, f64)> {
        let mut jobs: Vec<u64> = self.weights.keys().copied().collect();
        jobs.sort_unstable();
        jobs.into_iter().map(|job| (job, self.present.slowdown_of(job))).collect()
    }
}

/// A request whose nodes are to be chosen.
pub struct Newcomer<'a> {
    load: &'a NetworkLoad,
    state: &'a Occupancy,
    id: u64,
    traffic: Arc<Traffic>,
    weight: Weight,
    /// What it takes of a node, if that tells the rails on which it sends.
    share: Option<Share>,
}

impl Occupancy {
    /// A request whose nodes are to be chosen in this state; `None` if what it sends is not known or not counted, or nothing.
    pub(crate) fn newcomer(&self, request: &Request) -> Option<Newcomer<'_>> {
        self.network()?.newcomer(request, self)
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
