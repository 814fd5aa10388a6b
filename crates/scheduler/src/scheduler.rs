//! The queue, the running jobs and the occupancy, with one call per event.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use topolane_fabric::{CableId, Fabric, NodeIndex, Routing};
use topolane_placement::{
    Decision, Explanation, Holder, JobTraffic, Lent, Occupancy, OccupancyError, Placement, Policy,
    Refusal, Request, SeenRequests, lend,
};

use crate::defrag::{Defrag, MovedJob};
use crate::kinds::RequestKinds;
use crate::queue::{HeadWait, Pass, Queue};
use crate::running::{Running, RunningJob};
use crate::view::{EndedEarly, View, Waiting};

/// Everything that a driver needs for decisions: report each event, then ask for a pass.
pub struct Scheduler {
    occupancy: Occupancy,
    policy: Arc<dyn Policy>,
    queue: Box<dyn Queue>,
    /// Waiting jobs: added at the back, mostly removed near the front. Always contiguous in memory.
    waiting: VecDeque<Waiting>,
    /// The class of each waiting job, in the same order.
    classes: VecDeque<u32>,
    /// The ids of all waiting and running jobs.
    known: HashSet<u64>,
    kinds: RequestKinds,
    /// Kinds and sizes known to fit on the empty machine, if the policy depends on nothing else.
    placeable: HashSet<(u32, u32)>,
    /// The number of waiting jobs with a begin time.
    with_begin: usize,
    running: Running,
    fresh: usize,
    changed: bool,
    /// The time of the last pass.
    last_now: f64,
    /// Whether the last pass used the policy for long queues.
    other_rule: bool,
    last: Pass,
    defrag: Option<Defrag>,
    moved: Vec<MovedJob>,
    ended_early: Vec<EndedEarly>,
    lent: Vec<Lent>,
    seen: SeenRequests,
}

impl Scheduler {
    /// Returns a scheduler with an empty machine and an empty queue.
    pub fn new(fabric: Arc<Fabric>, policy: Arc<dyn Policy>, queue: Box<dyn Queue>) -> Self {
        Scheduler {
            occupancy: Occupancy::new(fabric),
            policy,
            queue,
            waiting: VecDeque::new(),
            classes: VecDeque::new(),
            known: HashSet::new(),
            kinds: RequestKinds::default(),
            placeable: HashSet::new(),
            with_begin: 0,
            running: Running::default(),
            fresh: 0,
            changed: true,
            last_now: f64::NEG_INFINITY,
            other_rule: false,
            last: Pass::default(),
            defrag: None,
            moved: Vec::new(),
            ended_early: Vec::new(),
            lent: Vec::new(),
            seen: SeenRequests::default(),
        }
    }

    /// Returns the scheduler, tracking the traffic of jobs over a routing, for policies that read it. Jobs with unknown
    /// traffic are assumed to send as in [`JobTraffic::assumed`].
    #[must_use]
    pub fn on_network(self, routing: Arc<dyn Routing>) -> Self {
        Scheduler { occupancy: self.occupancy.with_network(routing), ..self }
    }

    /// Returns the scheduler with settings for moving running jobs; `None` to never move any.
    #[must_use]
    pub fn moving(self, defrag: Option<Defrag>) -> Self {
        Scheduler { defrag, ..self }
    }

    /// Queues a request: behind those of higher priority and, within the same priority, in ascending
    /// [`Request::order`].
    ///
    /// # Errors
    /// The request is not queued. [`Refusal::Never`] if it would not fit on the empty machine;
    /// [`Refusal::CannotIsolate`] if it could not have links of its own there; `Never` with `most` 0 if it asks for no
    /// slot or its id is already waiting or running.
    pub fn submit(&mut self, mut request: Request, priority: f64) -> Result<(), Refusal> {
        let wanted = request.nodes;
        if wanted == 0 || self.known.contains(&request.id) {
            return Err(Refusal::Never { wanted, most: 0 });
        }
        let kind = self.kinds.of(&request);
        let alike = kind.filter(|_| self.policy.traits().depends_only_on_size);
        let alike = alike.map(|kind| (kind, wanted));
        if alike.is_none_or(|alike| !self.placeable.contains(&alike)) {
            if let Some(refusal) = self.policy.never(&request, &self.occupancy) {
                return Err(refusal);
            }
            self.placeable.extend(alike);
        }
        self.assume_traffic(&mut request);
        if let Some(demand) = self.seen.note(&request, self.occupancy.fabric()) {
            self.occupancy.set_demand(demand);
        }
        let goes_first = |other: &Waiting| {
            let higher = other.priority.total_cmp(&priority);
            higher.then(request.order.cmp(&other.request.order)).is_ge()
        };
        let index = self.waiting.partition_point(goes_first);
        if index < self.waiting.len() {
            self.changed = true;
        }
        self.known.insert(request.id);
        self.with_begin += usize::from(request.begin > 0.0);
        self.classes.insert(index, self.kinds.class_of(kind, wanted));
        self.classes.make_contiguous();
        self.waiting.insert(index, Waiting::new(request, priority));
        self.waiting.make_contiguous();
        Ok(())
    }

    /// Sets the assumed traffic of a request without one, if the occupancy tracks traffic.
    fn assume_traffic(&self, request: &mut Request) {
        if self.occupancy.network().is_some() && request.traffic.is_none() {
            request.traffic = JobTraffic::assumed(request.nodes).ok();
        }
    }

    /// Removes a waiting request. Returns false if it is not waiting.
    pub fn cancel(&mut self, id: u64) -> bool {
        let Some(index) = self.waiting.iter().position(|waiting| waiting.request.id == id) else {
            return false;
        };
        let cancelled = self.leave(index);
        self.known.remove(&id);
        self.changed = true;
        cancelled.is_some()
    }

    /// Reports the end of a running job. Returns false if it was not running.
    pub fn complete(&mut self, id: u64) -> bool {
        let Some(job) = self.running.remove(id) else { return false };
        self.known.remove(&id);
        self.occupancy.release(&job.placement);
        self.changed = true;
        true
    }

    /// Moves a running job to another placement, on nodes in service or not. Returns the new placement; `None`, with
    /// nothing changed, if the job does not run or the placement is not free.
    pub fn relocate(&mut self, id: u64, placement: Placement) -> Option<Arc<Placement>> {
        let mut job = self.running.remove(id)?;
        self.occupancy.release(&job.placement);
        let placement = Arc::new(self.occupancy.name_gpus(placement));
        let relocated = if self.occupancy.adopt(&placement).is_ok() {
            job.placement = Arc::clone(&placement);
            Some(placement)
        } else {
            // The job held this placement a moment ago, so it is free.
            let _ = self.occupancy.adopt(&job.placement);
            None
        };
        self.running.insert(job);
        self.changed = true;
        relocated
    }

    /// Takes over a job that another program started, or that was running before this driver. If it waits here, it is
    /// removed from the queue.
    ///
    /// # Errors
    /// A node that cannot hold the job or is not on the machine; or the first node, if a job with this id is already
    /// running. Then nothing is changed.
    pub fn adopt(
        &mut self,
        request: &Request,
        nodes: Vec<NodeIndex>,
        start: f64,
    ) -> Result<(), OccupancyError> {
        self.adopt_with_links(request, nodes, (Vec::new(), 1.0), start)
    }

    /// Takes over a job that owns links, with its share of full bandwidth on them.
    ///
    /// # Errors
    /// As [`Scheduler::adopt`], or if another job owns one of the links.
    pub fn adopt_with_links(
        &mut self,
        request: &Request,
        nodes: Vec<NodeIndex>,
        (links, bandwidth_share): (Vec<CableId>, f64),
        start: f64,
    ) -> Result<(), OccupancyError> {
        let fabric = self.occupancy.fabric();
        let stranger = nodes.iter().find(|&&node| node >= fabric.nodes());
        if stranger.is_some() || self.running.get(request.id).is_some() {
            let node = stranger.or(nodes.first()).copied().unwrap_or_default();
            return Err(OccupancyError { node });
        }
        let mut request = request.clone();
        self.assume_traffic(&mut request);
        let end = start + request.walltime;
        let placement = Placement::new(fabric, nodes, request.share.clone());
        let placement =
            self.policy.isolate(placement, fabric).with_links(fabric, links, bandwidth_share);
        let placement = self.occupancy.name_gpus(placement);
        let traffic = self.occupancy.lay(&request, &placement).map(|traffic| traffic.until(end));
        let placement = placement.with_traffic(traffic);
        self.occupancy.adopt(&placement)?;
        if !self.known.insert(request.id) {
            self.cancel(request.id);
            self.known.insert(request.id);
        }
        self.changed = true;
        self.running.insert(RunningJob {
            id: request.id,
            start,
            expected_end: end,
            request: Arc::new(request),
            placement: Arc::new(placement),
        });
        Ok(())
    }

    /// Changes the walltime of a waiting or running job. Returns false if there is no such job.
    pub fn set_walltime(&mut self, id: u64, walltime: f64) -> bool {
        self.changed = true;
        if let Some(mut job) = self.running.remove(id) {
            job.expected_end = job.start + walltime;
            job.placement = self.occupancy.set_end(job.placement, job.expected_end);
            self.running.insert(job);
            return true;
        }
        let Some(waiting) = self.waiting.iter_mut().find(|w| w.request.id == id) else {
            return false;
        };
        waiting.walltime = walltime;
        waiting.request.walltime = walltime;
        true
    }

    /// Takes a node out of service or puts it back.
    pub fn set_in_service(&mut self, node: NodeIndex, in_service: bool) {
        self.occupancy.set_in_service(node, in_service);
        self.changed = true;
    }

    /// Takes cables out of service or puts them back. No job is placed on a cable out of service; a job that already
    /// uses it stays. Returns the ids of running jobs, ascending, that may use a cable that has just gone out of
    /// service.
    pub fn set_links_in_service(&mut self, cables: &[CableId], in_service: bool) -> Vec<u64> {
        let out: HashSet<CableId> = self.occupancy.links_out().collect();
        let changing = |&cable: &CableId| out.contains(&cable) == in_service;
        let changing: Vec<CableId> = cables.iter().copied().filter(changing).collect();
        for &cable in &changing {
            self.occupancy.set_link_in_service(cable, in_service);
        }
        self.changed |= !changing.is_empty();
        if in_service { Vec::new() } else { self.users_of(&changing) }
    }

    /// The ids of running jobs, ascending, that own one of these cables or, if they own none, may use one.
    pub fn users_of(&self, cables: &[CableId]) -> Vec<u64> {
        let fabric = self.occupancy.fabric();
        let may_use =
            |job: &&RunningJob| cables.iter().any(|&cable| job.placement.may_use(fabric, cable));
        let mut found: Vec<u64> =
            self.running.jobs().iter().filter(may_use).map(|job| job.id).collect();
        found.sort_unstable();
        found
    }

    /// Takes over another scheduler's decision about how its head waits ([`Pass::head_wait`]).
    pub fn set_head_wait(&mut self, wait: HeadWait) {
        self.queue.set_head_wait(wait);
        self.changed = true;
    }

    /// Sets the time in seconds, for predictions and submissions before the next pass. A pass sets it too.
    pub fn set_time(&mut self, now: f64) {
        self.occupancy.set_time(now);
    }

    /// Starts the jobs that may start at `now`. Returns the decisions in queue order.
    pub fn pass(&mut self, now: f64) -> Vec<Decision> {
        // A begin time reached since the last pass makes a job visible that no pass has tried.
        let come = |waiting: &Waiting| waiting.begin > self.last_now && waiting.begin <= now;
        self.changed |= self.with_begin > 0 && self.waiting.iter().any(come);
        self.last_now = now;
        self.set_time(now);
        // Another policy may place what was refused and refuse what was placed.
        let rule = self.policy.queue_rule();
        let other = rule.and_then(|rule| rule.for_queue_length(self.waiting.len()));
        self.changed |= other.is_some() != self.other_rule;
        self.other_rule = other.is_some();
        let mut view = View {
            now,
            waiting: self.waiting.as_slices().0,
            classes: self.classes.as_slices().0,
            fresh: self.fresh,
            changed: self.changed,
            running: &mut self.running,
            occupancy: &mut self.occupancy,
            policy: self.policy.for_queue_length(self.waiting.len()),
            defrag: self.defrag.as_mut(),
            started: Vec::new(),
            moved: Vec::new(),
            ended_early: Vec::new(),
        };
        self.last = self.queue.pass(&mut view);
        let started = view.started;
        self.moved = view.moved;
        self.ended_early = view.ended_early;
        for job in &self.ended_early {
            self.known.remove(&job.request.id);
        }
        if let Some(defrag) = &mut self.defrag {
            defrag.starts += started.len() as u64;
        }
        self.lend_links();
        self.changed = false;
        let starts = self.take(started);
        self.fresh = self.waiting.len();
        starts
    }

    /// Lends idle links to jobs that have less than full bandwidth on their own links.
    fn lend_links(&mut self) {
        self.lent.clear();
        if self.running.any_slowed() {
            let running = self.running.jobs().iter().map(|job| (job.id, &job.placement));
            self.lent = lend(&self.occupancy, running);
        }
    }

    /// Links lent since the last pass, for every job that owns links and has less than full bandwidth on them.
    pub fn last_lent(&self) -> &[Lent] {
        &self.lent
    }

    /// When a pass is due even if nothing happens: the next begin time after `now`.
    pub fn next_begin(&self, now: f64) -> Option<f64> {
        if self.with_begin == 0 {
            return None;
        }
        let later = self.waiting.iter().map(|w| w.begin).filter(|&begin| begin > now);
        later.min_by(f64::total_cmp)
    }

    /// Removes the started requests from the queue. They are in queue order.
    fn take(&mut self, mut started: Vec<(usize, Arc<Placement>)>) -> Vec<Decision> {
        started.sort_by_key(|&(index, _)| index);
        let from_the_end = started.into_iter().rev();
        let mut starts: Vec<Decision> = from_the_end
            .filter_map(|(index, placement)| {
                self.leave(index).map(|waiting| Decision { request: waiting.request, placement })
            })
            .collect();
        starts.reverse();
        starts
    }

    /// Removes the request at a position from the queue.
    fn leave(&mut self, index: usize) -> Option<Waiting> {
        let waiting = self.waiting.remove(index)?;
        self.waiting.make_contiguous();
        self.classes.remove(index);
        self.classes.make_contiguous();
        self.with_begin -= usize::from(waiting.begin > 0.0);
        Some(waiting)
    }

    /// Explains why a request is not placed at this moment and which jobs are in its way; `None` if the policy would
    /// place it. It is slower than a pass, so it is meant for users and not for queues.
    pub fn explain(&self, request: &Request) -> Option<Explanation> {
        let jobs: Vec<Holder<'_>> =
            self.running.jobs().iter().map(|job| (job.id, &*job.placement)).collect();
        self.policy().explain(request, &self.occupancy, &jobs)
    }

    /// When the queue needs a pass after the one at `now` even if nothing happens.
    pub fn next_pass(&self, now: f64) -> Option<f64> {
        self.queue.next_pass(now)
    }

    /// The queue in order.
    pub fn waiting(&self) -> &[Waiting] {
        self.waiting.as_slices().0
    }

    /// The running jobs.
    pub fn running(&self) -> &Running {
        &self.running
    }

    /// Which job holds what.
    pub fn occupancy(&self) -> &Occupancy {
        &self.occupancy
    }

    /// The policy to use at the current queue length.
    pub fn policy(&self) -> &dyn Policy {
        self.policy.for_queue_length(self.waiting.len())
    }

    /// The policy, as a shared pointer for callers that outlive this borrow.
    pub fn shared_policy(&self) -> Arc<dyn Policy> {
        Arc::clone(&self.policy)
    }

    /// The running jobs that the last pass moved, with their new placements. All moves came before the starts.
    pub fn last_moved(&self) -> &[MovedJob] {
        &self.moved
    }

    /// The running jobs that the last pass ended.
    pub fn last_ended_early(&self) -> &[EndedEarly] {
        &self.ended_early
    }

    /// The promises and refusals of the last pass.
    pub fn last_pass(&self) -> &Pass {
        &self.last
    }
}
