//! What a queue discipline sees and may do in one pass.

use std::sync::Arc;

use topolane_placement::{Occupancy, Placement, Policy, Refusal, Request, Share};

use crate::running::{Running, RunningJob};

/// A request in the queue.
#[derive(Debug, Clone)]
pub struct Waiting {
    /// Slots wanted, kept beside the request for quick scans.
    pub nodes: u32,
    /// Whether it takes whole nodes.
    pub whole: bool,
    /// Longest time it will run, seconds.
    pub walltime: f64,
    /// Not to be started before this time, seconds.
    pub begin: f64,
    /// Higher first.
    pub priority: f64,
    /// The request.
    pub request: Box<Request>,
}

impl Waiting {
    pub(crate) fn new(request: Request, priority: f64) -> Self {
        Waiting {
            nodes: request.nodes,
            whole: request.share == Share::Whole,
            walltime: request.walltime,
            begin: request.begin,
            priority,
            request: Box::new(request),
        }
    }
}

/// One pass over the queue: what there is, and the one thing a discipline may do, start jobs.
pub struct View<'a> {
    /// The driver's clock, seconds.
    pub now: f64,
    /// The queue in order.
    pub waiting: &'a [Waiting],
    /// `waiting[fresh..]` came after the last pass.
    pub fresh: usize,
    /// Whether anything but arrivals and this queue's own starts happened since the last pass.
    /// If not, what was refused then would be refused again.
    pub changed: bool,
    /// The running jobs, those started in this pass included.
    pub running: &'a mut Running,
    /// Who holds what, the jobs started in this pass included.
    pub occupancy: &'a mut Occupancy,
    /// The rule that chooses nodes.
    pub policy: &'a dyn Policy,
    pub(crate) started: Vec<(usize, Arc<Placement>)>,
}

impl View<'_> {
    /// Starts `waiting[index]` on `placement`; false, and nothing done, if that is not free or the
    /// job comes before one that this pass has started: a pass goes through the queue in order.
    pub fn start(&mut self, index: usize, placement: Arc<Placement>) -> bool {
        let waiting = &self.waiting[index];
        let in_order = self.started.last().is_none_or(|&(last, _)| last < index);
        if !in_order || self.occupancy.claim(&placement).is_err() {
            return false;
        }
        self.running.insert(RunningJob {
            id: waiting.request.id,
            start: self.now,
            expected_end: self.now + waiting.walltime,
            placement: Arc::clone(&placement),
        });
        self.started.push((index, placement));
        true
    }

    /// Places `waiting[index]` now and starts it.
    ///
    /// # Errors
    /// The policy's refusal; also where the policy named nodes that are not free.
    pub fn place_and_start(&mut self, index: usize) -> Result<(), Refusal> {
        let request = &self.waiting[index].request;
        let placement = self.policy.place(request, self.occupancy)?;
        let refusal = Refusal::NotNow { wanted: request.nodes, free: self.occupancy.idle_nodes() };
        if self.start(index, Arc::new(placement)) { Ok(()) } else { Err(refusal) }
    }

    /// As [`View::place_and_start`], on as many nodes as the request can use: for a discipline
    /// that has promised nothing yet when it does so.
    ///
    /// # Errors
    /// The policy's refusal of the fewest nodes.
    pub fn start_widest(&mut self, index: usize) -> Result<(), Refusal> {
        let request = &self.waiting[index].request;
        let sizes = (request.nodes + 1..=request.most.min(self.occupancy.idle_nodes())).rev();
        for nodes in sizes {
            let wider = Request { nodes, ..(**request).clone() };
            if let Ok(placement) = self.policy.place(&wider, self.occupancy)
                && self.start(index, Arc::new(placement))
            {
                return Ok(());
            }
        }
        self.place_and_start(index)
    }

    /// Whether the request may start at all yet.
    pub fn is_visible(&self, index: usize) -> bool {
        self.waiting[index].begin <= self.now
    }
}
