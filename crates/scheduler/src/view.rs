//! What a queue discipline can see and do in one pass.

use std::collections::HashMap;
use std::sync::Arc;

use topolane_placement::{
    Disruption, Occupancy, Placement, Policy, PresentJob, Refusal, Request, RoomEffort, Share,
    make_room,
};

use crate::defrag::{Defrag, MovedJob};
#[cfg(doc)]
use crate::kinds::NO_CLASS;
use crate::running::{Running, RunningJob};

/// Why a queue ends a running job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// Another job preempts the job.
    Preemption,
    /// A node of the job fails.
    NodeFailure,
}

/// A running job that a pass ended.
#[derive(Debug, Clone)]
pub struct EndedEarly {
    /// The request, to be submitted again with [`Request::begin`] set to `again`.
    pub request: Arc<Request>,
    /// When the job may start again, in seconds; `None` if it is cancelled.
    pub again: Option<f64>,
    /// Why it was ended.
    pub by: EndedBy,
}

/// A request in the queue.
#[derive(Debug, Clone)]
pub struct Waiting {
    /// The id of the request. Copied here, like the fields below, to make scans of the queue fast.
    pub id: u64,
    /// Slots that it wants.
    pub nodes: u32,
    /// Whether the job takes whole nodes.
    pub whole: bool,
    /// The longest time that it will run, in seconds.
    pub walltime: f64,
    /// The earliest time at which it may start, in seconds.
    pub begin: f64,
    /// The priority; the highest goes first.
    pub priority: f64,
    /// The full request.
    pub request: Box<Request>,
}

impl Waiting {
    pub(crate) fn new(request: Request, priority: f64) -> Self {
        Waiting {
            id: request.id,
            nodes: request.nodes,
            whole: request.share.is_whole(),
            walltime: request.walltime,
            begin: request.begin,
            priority,
            request: Box::new(request),
        }
    }
}

/// The most questions to the policy about jobs that move for one that starts. Half of them are for plans with few jobs.
const QUESTIONS: u32 = 200;

/// The cost of a move, in addition to the node-seconds for which its job stops. It is high because the budget limits
/// the number of moves, so plans with the fewest moves come first.
const A_MOVE: f64 = 1e9;

/// Whether the request is complete in itself: no other members, and free slots counted by the occupancy.
fn stands_alone(request: &Request) -> bool {
    request.members.is_empty() && request.slots.is_none()
}

/// The size of a number of slots: in whole nodes, or in cores of shared nodes.
fn size(share: &Share, slots: u32) -> u64 {
    match share {
        Share::Whole => u64::from(slots),
        Share::Part(amounts) => u64::from(slots).saturating_mul(amounts.cores()),
    }
}

/// One pass over the queue: the state, and the actions that a discipline may take.
pub struct View<'a> {
    /// The driver's clock, seconds.
    pub now: f64,
    /// The queue in order.
    pub waiting: &'a [Waiting],
    /// The class of each waiting request: requests of one class differ only in id and times. [`NO_CLASS`] if it has
    /// none.
    pub(crate) classes: &'a [u32],
    /// `waiting[fresh..]` arrived after the last pass.
    pub fresh: usize,
    /// Whether anything other than arrivals and this queue's own starts happened since the last pass. If not, jobs
    /// refused then would be refused again.
    pub changed: bool,
    /// The running jobs, including those started in this pass.
    pub running: &'a mut Running,
    /// Which job holds what, including jobs started in this pass.
    pub occupancy: &'a mut Occupancy,
    /// The policy that chooses nodes at the current queue length.
    pub policy: &'a dyn Policy,
    /// Limits for moving running jobs; `None` if none may be moved.
    pub defrag: Option<&'a mut Defrag>,
    pub(crate) started: Vec<(usize, Arc<Placement>)>,
    pub(crate) moved: Vec<MovedJob>,
    pub(crate) ended_early: Vec<EndedEarly>,
}

impl<'a> View<'a> {
    /// Runs `ask` with another policy.
    pub(crate) fn under<T>(
        &mut self,
        policy: &'a dyn Policy,
        ask: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let before = std::mem::replace(&mut self.policy, policy);
        let answer = ask(self);
        self.policy = before;
        answer
    }

    /// Starts `waiting[index]` on `placement`. Returns false, with nothing changed, if the placement is not free or the
    /// job was already started.
    pub fn start(&mut self, index: usize, placement: Arc<Placement>) -> bool {
        let waiting = &self.waiting[index];
        if self.has_started(index) || self.occupancy.claim(&placement).is_err() {
            return false;
        }
        self.running.insert(RunningJob {
            id: waiting.request.id,
            request: Arc::new((*waiting.request).clone()),
            start: self.now,
            expected_end: self.now + waiting.walltime,
            placement: Arc::clone(&placement),
        });
        self.started.push((index, placement));
        true
    }

    /// Ends a running job; does nothing if it does not run. It may start again at the time `again`, or is cancelled.
    pub fn end_early(&mut self, id: u64, again: Option<f64>, by: EndedBy) {
        let Some(job) = self.running.remove(id) else { return };
        self.occupancy.release(&job.placement);
        self.ended_early.push(EndedEarly { request: job.request, again, by });
    }

    /// Changes the expected end of a running job; does nothing if it does not run.
    pub(crate) fn set_expected_end(&mut self, id: u64, end: f64) {
        let Some(mut job) = self.running.remove(id) else { return };
        job.expected_end = end;
        job.placement = self.occupancy.set_end(job.placement, end);
        self.running.insert(job);
    }

    /// If the queue order has changed, moves the kept entries of waiting jobs into a map by id; otherwise returns an
    /// empty map.
    pub(crate) fn out_of_order<E>(
        &self,
        entries: &mut Vec<E>,
        number: impl Fn(&E) -> u64,
    ) -> HashMap<u64, E> {
        let is_same = |(entry, waiting): (&E, &Waiting)| number(entry) == waiting.id;
        let in_order = entries.len() <= self.waiting.len()
            && (!self.changed || entries.iter().zip(self.waiting).all(is_same));
        if in_order {
            return HashMap::new();
        }
        entries.drain(..).map(|entry| (number(&entry), entry)).collect()
    }

    /// Whether this pass has started `waiting[index]`.
    pub fn has_started(&self, index: usize) -> bool {
        self.started.iter().any(|&(started, _)| started == index)
    }

    /// Starts `waiting[index]` by moving running jobs out of its way, if that is allowed. It moves the fewest jobs, and
    /// among equal numbers those with the fewest node-seconds of stopping. Returns false, with nothing changed, if that
    /// is not possible or if `keeps` does not hold afterwards.
    ///
    /// It does not move jobs that are as large as the request, that share nodes if the request does not (or the other
    /// way round), that belong to a growing group, or that this pass has started or moved.
    pub fn start_moving(
        &mut self,
        index: usize,
        keeps: impl Fn(&Self, &Placement) -> bool,
    ) -> bool {
        let Some(defrag) = self.defrag.as_deref().filter(|defrag| defrag.allowed() > 0) else {
            return false;
        };
        let request = &self.waiting[index].request;
        if !stands_alone(request) {
            return false;
        }
        let jobs: Vec<RunningJob> = self.running.jobs().to_vec();
        let fabric = self.occupancy.fabric();
        let wanted = size(&request.share, request.nodes);
        let may_move = |job: &&RunningJob| {
            job.start < self.now
                && job.request.share.is_whole() == request.share.is_whole()
                && stands_alone(&job.request)
                && size(&job.request.share, job.placement.nodes().len() as u32) < wanted
                && !self.moved.iter().any(|moved| moved.id == job.id)
        };
        let present: Vec<PresentJob<'_>> = jobs
            .iter()
            .filter(may_move)
            .map(|job| {
                let nodes = job.placement.nodes().len() as f64;
                let cost = A_MOVE + nodes * defrag.seconds(fabric, &job.placement);
                let disruption = Disruption::Move(cost);
                PresentJob {
                    request: &job.request,
                    placement: &job.placement,
                    disruption,
                    group: Some(0),
                    uses: 1,
                    rank: 0,
                }
            })
            .collect();
        let effort =
            RoomEffort { budgets: vec![defrag.allowed()], questions: QUESTIONS, states: 0 };
        let Ok(plan) = make_room(self.policy, request, self.occupancy, &present, &effort) else {
            return false;
        };
        let id = request.id;
        let before = self.replace(&plan.moved);
        if !keeps(self, &plan.placement) || !self.start(index, plan.placement) {
            self.replace(&before);
            return false;
        }
        if let Some(defrag) = &mut self.defrag {
            defrag.moves += plan.moved.len() as u64;
        }
        let moved = |(moved, placement)| MovedJob { id: moved, placement, made_room_for: id };
        self.moved.extend(plan.moved.into_iter().map(moved));
        true
    }

    /// Moves running jobs to other placements, all at once. Returns their old placements.
    fn replace(&mut self, moved: &[(u64, Arc<Placement>)]) -> Vec<(u64, Arc<Placement>)> {
        let mut before = Vec::with_capacity(moved.len());
        let jobs: Vec<RunningJob> =
            moved.iter().filter_map(|&(id, _)| self.running.remove(id)).collect();
        for job in &jobs {
            self.occupancy.release(&job.placement);
            before.push((job.id, Arc::clone(&job.placement)));
        }
        for (job, (_, placement)) in jobs.into_iter().zip(moved) {
            let claimed = self.occupancy.adopt(placement);
            debug_assert!(claimed.is_ok(), "a plan fits");
            self.running.insert(RunningJob { placement: Arc::clone(placement), ..job });
        }
        before
    }

    /// Places `waiting[index]` now and starts it.
    ///
    /// # Errors
    /// The policy refuses it, or it named nodes that are not free.
    pub fn place_and_start(&mut self, index: usize) -> Result<(), Refusal> {
        let request = &self.waiting[index].request;
        let placement = self.policy.place(request, self.occupancy)?;
        let refusal = Refusal::NotNow { wanted: request.nodes, free: self.occupancy.idle_nodes() };
        if self.start(index, Arc::new(placement)) { Ok(()) } else { Err(refusal) }
    }

    /// Like [`View::place_and_start`], on the most nodes that the request can use. Only for disciplines that have not
    /// promised anything yet.
    ///
    /// # Errors
    /// The policy refuses even the fewest nodes.
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

    /// Whether the begin time of the request has come.
    pub fn is_visible(&self, index: usize) -> bool {
        self.waiting[index].begin <= self.now
    }
}
