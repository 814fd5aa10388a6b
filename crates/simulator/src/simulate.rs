//! The event loop of the simulator: a clock and a workload around a [`Scheduler`].

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use topolane_fabric::{DEFAULT_ROUTING, Fabric, InputError, Routing, routing};
use topolane_placement::{
    Attributes, Lent, Placement, Policy, Refusal, Request, Share, Traits, Within,
};
use topolane_scheduler::{
    Defrag, EndedBy, EndedEarly, HeadWait, MovedJob, Queue, Reservation, Scheduler,
};

use crate::coupling::Coupling;
use crate::drains::Drains;
use crate::ends::{Begun, Due, JobEnds, Time};
use crate::failures::{
    Failing, Failure, FailureCount, RESTART, RemainingWork, lost, nodes_held, replaced,
};
use crate::gpu_types::GpuTypes;
use crate::links_held::{LinkLog, LinksHeld};
use crate::moving::{Move, meet};
use crate::network::Network;
use crate::outages::{Outage, Outages};
use crate::recorded::RecordedNodes;
use crate::room::{RoomFacts, RoomLog};
use crate::scenario::Scenario;
use crate::widths::{Width, Widths};
use crate::workload::{Job, LONGEST_DAYS, Workload};

/// The longest simulated time, in seconds.
const LONGEST: f64 = LONGEST_DAYS * 86_400.0;

/// The priority of jobs interrupted by a failure: above all others.
const AHEAD: f64 = f64::MAX;

/// Settings of a run, in addition to workload, machine, policy and queue.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// How much run time isolation saves; applied only under policies that isolate.
    pub scenario: Scenario,
    /// The seed of the scenario's random draws.
    pub seed: u64,
    /// The walltime of jobs without one, in seconds; `None`: their run time.
    pub default_walltime: Option<f64>,
    /// The least share of full bandwidth that jobs accept on links of their own; `None`: full bandwidth.
    pub min_bandwidth: Option<f64>,
    /// The group of the machine in which every job is to lie, for policies that read it from jobs.
    pub within: Within,
    /// Limits and costs of moving running jobs; `None` if they are never moved.
    pub moving: Option<Defrag>,
    /// The nodes of each segment, for all jobs; a segment must lie in one domain. `None`: as each job says.
    pub segment: Option<u32>,
    /// How jobs communicate on the network; `None`: they do not slow each other down.
    pub network: Option<Network>,
    /// Links that fail. Meanwhile no job is placed on them; a job already there stays, at the same speed.
    pub outages: Vec<Outage>,
    /// Nodes that fail, together with the jobs on them.
    pub failures: Vec<Failure>,
    /// Nodes that take no new jobs for a time; jobs on them run to their normal end.
    pub out_of_service: Vec<Failure>,
    /// Idle nodes kept back in each domain (on each leaf of a machine without domains), to take the place of one that fails.
    pub spares: u32,
    /// Seconds of work between two checkpoints of a job: a failure costs what it has done since the last one. 0: nothing is lost.
    pub checkpoint: f64,
}

/// Why a queue ended a run early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutShort {
    /// Another job preempted the job, which was requeued.
    Requeued,
    /// Another job preempted the job, which was cancelled.
    Cancelled,
    /// A node of the job failed, and the job was not requeued.
    Failed,
}

/// The outcome of one run of a job. Times are in seconds since the workload's epoch.
#[derive(Debug, Clone)]
pub struct JobOutcome {
    /// Index into the workload's jobs.
    pub job: usize,
    /// When the job was submitted; after an interruption, when it was submitted again.
    pub submitted: f64,
    /// When the run started.
    pub start: f64,
    /// When the run ended.
    pub finish: f64,
    /// The seconds lost, if a node failure or preemption ended this run and the job was requeued. The next run has an
    /// outcome of its own.
    pub interruption: Option<f64>,
    /// Why a queue ended it, if it did. A failure after which the job was requeued counts as an interruption only.
    pub cut_short: Option<CutShort>,
    /// The walltime with which it was scheduled.
    pub walltime: f64,
    /// Whether the run was ended at its walltime.
    pub killed: bool,
    /// Seconds that it would have run alone; if it was ended at its walltime, the work done by then.
    pub alone: f64,
    /// The mean share of full bandwidth that it had on links of its own; 1 if it owned none.
    pub bandwidth_share: f64,
    /// Whether the run exceeded its walltime.
    pub overran: bool,
    /// Whether a link failed during its run that it owned or, if it owned none, may have used.
    pub affected: bool,
    /// Index of its communication pattern; 0 without a network.
    pub pattern: usize,
    /// The moves of the job, in order of time.
    pub moves: Vec<Move>,
    /// Seconds for which it stopped, because it was moved or waited for jobs to leave its nodes.
    pub stood_still: f64,
    /// The links of the job over time; empty if it owned none.
    pub links: Vec<LinksHeld>,
    /// The placement of the job; if it was moved, the last one.
    pub placement: Arc<Placement>,
}

impl JobOutcome {
    /// The placements of the job in order, each with the time until which it held: before each move, and at the end.
    pub fn places(&self) -> impl Iterator<Item = (f64, &Placement)> {
        let before = self.moves.iter().map(|step| (step.time, &*step.from));
        before.chain([(self.finish, &*self.placement)])
    }

    /// Seconds that it ran past its walltime because it had been stopped; 0 if it did not.
    pub fn past_walltime(&self) -> f64 {
        let longer = self.finish - self.start - self.walltime;
        // The end is a rounded sum, so small differences do not count.
        if longer < 1e-6 { 0.0 } else { longer.min(self.stood_still) }
    }

    /// Whether the run was interrupted and submitted again.
    pub fn is_interrupted(&self) -> bool {
        self.interruption.is_some()
    }

    /// How many times longer it ran than it would have alone.
    pub fn contention(&self) -> f64 {
        if self.alone > 0.0 { (self.finish - self.start) / self.alone } else { 1.0 }
    }
}

/// The outcome of a run of the simulator.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// The jobs that ran, in order of start.
    pub jobs: Vec<JobOutcome>,
    /// Indices of jobs that the policy would never place, with the refusals.
    pub refused: Vec<(usize, Refusal)>,
    /// Jobs skipped because the log says they ran on nodes that the machine does not have.
    pub elsewhere: usize,
    /// Seconds for which the head of the queue was refused although enough nodes were free.
    pub fragmented_seconds: f64,
    /// The number of jobs affected.
    pub fragmented_jobs: usize,
    /// Jobs that started later than in the log, because the log also gave their nodes to another job.
    pub late_against_log: usize,
    /// Heads of the queue that started later than first promised, because running jobs exceeded their walltimes.
    pub late_heads: usize,
    /// The number of moves of running jobs.
    pub moves: u64,
    /// The number of searches of the policy, and how many of them reached a bound.
    pub searches: (u64, u64),
    /// For every channel of the network, the seconds at full rate that all jobs needed it for.
    pub channel_busy: Vec<f64>,
    /// How heads of the queue waited, and from what time on; empty if the policy has no rule for heads.
    pub head_waits: Vec<(f64, HeadWait)>,
    /// How many further jobs would have fitted; `None` on a machine without GPUs.
    pub room: Option<RoomFacts>,
    /// The effects of failures; `None` if there were no failures and no spare nodes.
    pub failures: Option<FailureCount>,
}

/// A callback after every event, with the share of jobs that have ended. An error stops the run.
pub type Progress<'a, E> = &'a mut dyn FnMut(f64) -> Result<(), E>;

/// Simulates a workload. At each instant, completions come first, then arrivals, then one pass of the queue.
///
/// # Errors
/// As an [`InputError`]: a recorded node list that cannot be read or names nodes that the machine does not have, or
/// jobs over more than 20 years. Also any error of `progress`.
pub fn simulate<E: From<InputError>>(
    workload: &Workload,
    fabric: &Arc<Fabric>,
    policy: &Arc<dyn Policy>,
    queue: Box<dyn Queue>,
    options: &RunOptions,
    progress: Progress<'_, E>,
) -> Result<Outcome, E> {
    let replay = queue.name() == "recorded";
    workload.check_times()?;
    let as_logged = replay || policy.name() == "recorded";
    let widths = Widths::of(options.network.as_ref(), workload, fabric, as_logged, options.seed)?;
    let mut scheduler = Scheduler::new(Arc::clone(fabric), Arc::clone(policy), queue);
    if policy.reads_traffic() {
        scheduler = scheduler.on_network(routing_of(options, fabric)?);
    }
    let mut run = Run {
        reads_traffic: policy.reads_traffic(),
        scheduler: scheduler.moving(options.moving),
        workload,
        options,
        replay,
        traits: policy.traits(),
        ends: JobEnds::default(),
        coupling: options.network.as_ref().map(|network| Coupling::new(network, options.seed)),
        widths,
        chosen: HashMap::new(),
        order: HashMap::new(),
        link_log: LinkLog::default(),
        promise: None,
        left: HashMap::new(),
        gpu_types: GpuTypes::default(),
        failures: FailureCount::default(),
        outcome: Outcome::default(),
        fragmented: HashSet::new(),
        stranger: None,
        blocked: None,
    };
    let before = policy.searches();
    let mut recorded = RecordedNodes::on(fabric);
    let first = workload.jobs.first().map_or(0.0, |job| job.submit);
    let mut outages = Outages::new(&options.outages, first);
    let spares = options.spares;
    let mut failing = Failing::new(&options.failures, spares, first, fabric, &mut run.scheduler);
    let mut drains = Drains::new(&options.out_of_service, first);
    let mut room = RoomLog::of(workload, fabric, options.segment);
    let mut next = 0;
    let mut begin = None;
    loop {
        let arrival = workload.jobs.get(next).map(|job| Time(job.submit));
        let end = run.ends.next().map(Time);
        let is_over = arrival.is_none() && end.is_none() && run.scheduler.waiting().is_empty();
        // A change in the far future must not extend the run.
        let change =
            [outages.next(), failing.next(), drains.next()].into_iter().flatten().map(Time).min();
        let change = change.filter(|Time(time)| !is_over && time - first <= LONGEST);
        let due = [arrival, end, begin.map(Time), change].into_iter().flatten().min();
        let Some(Time(now)) = due else { break };
        if now - first > LONGEST {
            let message = format!(
                "the run goes on for {:.0} days, more than 20 years: a time of the log is wrong",
                (now - first) / 86_400.0
            );
            return Err(InputError::whole(message).into());
        }
        if let Some(room) = &mut room {
            room.follow(now, run.scheduler.occupancy(), run.scheduler.policy());
        }
        run.scheduler.set_time(now);
        run.complete(now);
        run.follow_failures(&mut failing, now);
        drains.follow(now, &mut run.scheduler);
        for id in outages.follow(now, &mut run.scheduler) {
            if let Some(&order) = run.order.get(&id) {
                run.outcome.jobs[order].affected = true;
            }
        }
        while let Some(job) = workload.jobs.get(next).filter(|job| job.submit <= now) {
            run.arrive(next, job, policy, &mut recorded)?;
            next += 1;
        }
        run.pass(now)?;
        begin = run.scheduler.next_begin(now);
        let timed = if replay { None } else { run.scheduler.next_pass(now) };
        begin = [begin, timed].into_iter().flatten().min_by(f64::total_cmp);
        let ended = run.outcome.jobs.len() - run.ends.len();
        progress((ended as f64 / workload.jobs.len() as f64).min(1.0))?;
    }
    if let Some(stranger) = run.stranger.take_if(|_| run.outcome.elsewhere == workload.jobs.len()) {
        return Err(stranger.into());
    }
    progress(1.0)?;
    run.outcome.room = room.and_then(RoomLog::into_facts);
    if !options.failures.is_empty() || spares > 0 || run.failures.interruptions > 0 {
        let last = run.outcome.jobs.iter().map(|job| job.finish).fold(first, f64::max);
        run.failures.node_seconds_spare = failing.spares().node_seconds(last);
        run.outcome.failures = Some(run.failures);
    }
    Ok(run.finish(policy, before))
}

/// The request of a job. Its id is the index in the workload, so ids in logs need not be unique numbers.
fn request_of(index: usize, job: &Job, share: Share, options: &RunOptions) -> Request {
    Request {
        id: index as u64,
        nodes: job.nodes,
        share,
        walltime: walltime_of(job, options),
        min_bandwidth: options.min_bandwidth,
        segment: options.segment.or(job.segment),
        within: options.within,
        attributes: job.attributes.clone(),
        ..Request::default()
    }
}

/// The attributes of a request that is submitted again.
fn whose_again(request: &Request, now: f64) -> Option<Arc<Attributes>> {
    request.attributes.as_ref().map(|of| Arc::new(of.queued_again(now)))
}

fn walltime_of(job: &Job, options: &RunOptions) -> f64 {
    job.walltime.or(options.default_walltime).unwrap_or(job.run)
}

/// The routing for policies that read traffic.
fn routing_of(options: &RunOptions, fabric: &Arc<Fabric>) -> Result<Arc<dyn Routing>, InputError> {
    match &options.network {
        Some(network) => Ok(Arc::clone(&network.routing)),
        None => routing(DEFAULT_ROUTING, fabric, options.seed).map(Arc::from),
    }
}

struct Run<'a> {
    scheduler: Scheduler,
    reads_traffic: bool,
    workload: &'a Workload,
    options: &'a RunOptions,
    /// Whether start times come from the log.
    replay: bool,
    traits: Traits,
    ends: JobEnds,
    coupling: Option<Coupling<'a>>,
    widths: Option<Widths<'a>>,
    /// The chosen width of each job, by id.
    chosen: HashMap<u64, Width>,
    /// The index of each job in the order of starts, by id.
    order: HashMap<u64, usize>,
    link_log: LinkLog,
    /// The remaining work of interrupted jobs, by id.
    left: HashMap<u64, RemainingWork>,
    gpu_types: GpuTypes,
    failures: FailureCount,
    /// The earliest start promised to the head of the queue.
    promise: Option<Reservation>,
    outcome: Outcome,
    fragmented: HashSet<u64>,
    /// The error of the first job skipped because it ran on nodes that the machine does not have.
    stranger: Option<InputError>,
    /// The head of the queue, and since when it is refused although enough nodes are free.
    blocked: Option<(u64, f64)>,
}

impl Run<'_> {
    /// Returns the outcome, after adding what is counted at the end.
    fn finish(self, policy: &Arc<dyn Policy>, searches_before: (u64, u64)) -> Outcome {
        let mut outcome = self.outcome;
        outcome.channel_busy = self.coupling.map(Coupling::into_busy).unwrap_or_default();
        let (searches, cut_short) = policy.searches();
        outcome.searches = (searches - searches_before.0, cut_short - searches_before.1);
        outcome.fragmented_jobs = self.fragmented.len();
        outcome
    }

    /// The request of a job on this machine. If no node has what it takes, the job is refused and the result is `None`.
    fn asked(&mut self, index: usize, job: &Job) -> Option<Request> {
        let fabric = self.scheduler.occupancy().fabric();
        let share = self.workload.share_on(job, fabric);
        let asked = share.and_then(|share| {
            let eligible = self.gpu_types.nodes(job, fabric)?;
            Ok(Request { eligible, ..request_of(index, job, share, self.options) })
        });
        asked.map_err(|refusal| self.outcome.refused.push((index, refusal))).ok()
    }

    /// Submits a job, unless the machine can never run it.
    fn arrive(
        &mut self,
        index: usize,
        job: &Job,
        policy: &Arc<dyn Policy>,
        recorded: &mut RecordedNodes<'_>,
    ) -> Result<(), InputError> {
        let Some(mut request) = self.asked(index, job) else { return Ok(()) };
        if policy.name() == "recorded" {
            match recorded.nodes(job)? {
                Ok(nodes) => request.recorded = nodes,
                Err(stranger) => {
                    self.stranger.get_or_insert(stranger);
                    self.outcome.elsewhere += 1;
                    return Ok(());
                }
            }
        }
        if self.replay {
            request.begin = job.recorded.as_ref().map_or(0.0, |recorded| recorded.start);
            // A job that ran longer than its walltime in the log was allowed to do so.
            request.walltime = request.walltime.max(job.run);
        } else if let Some(time) = job.held_until {
            request.begin = time;
        }
        self.name_traffic(&mut request, job)?;
        self.widen(&mut request, job, policy)?;
        self.submit(request);
        Ok(())
    }

    /// Takes out the nodes whose failure is due by `now`, and puts repaired ones back.
    fn follow_failures(&mut self, failing: &mut Failing, now: f64) {
        while let Some((node, fails)) = failing.pop(now) {
            let fabric = Arc::clone(self.scheduler.occupancy().fabric());
            if !fails {
                failing.spares().give_back(node, now, &fabric, &mut self.scheduler);
                continue;
            }
            self.failures.failures += 1;
            failing.spares().take(node, now);
            self.scheduler.set_in_service(node, false);
            let holds = |placement: &Placement| placement.held().any(|held| held == node);
            let running = self.scheduler.running().jobs().iter();
            let hit: Vec<(u64, Arc<Placement>)> = running
                .filter(|job| holds(&job.placement))
                .map(|job| (job.id, Arc::clone(&job.placement)))
                .collect();
            if hit.is_empty() {
                continue;
            }
            let spare = failing.spares().substitute(node, &hit, &fabric);
            for (id, placement) in &hit {
                self.failures.interruptions += 1;
                let other = spare.and_then(|spare| {
                    self.scheduler.relocate(*id, replaced(placement, &fabric, node, spare))
                });
                match other {
                    Some(other) => self.go_on(*id, other, now),
                    None => self.interrupt(*id, now),
                }
            }
            if let Some(spare) = spare {
                failing.spares().take(spare, now);
                self.scheduler.set_in_service(spare, true);
            }
        }
    }

    /// Continues a job that lost a node on a spare one, from its last checkpoint.
    fn go_on(&mut self, id: u64, placement: Arc<Placement>, now: f64) {
        let Some(&order) = self.order.get(&id) else { return };
        // If another failure cuts a pause short, the rest of that pause is dropped.
        let pause = self.cost_of_failure(id, &placement, now) - self.ends.paused(id, now);
        self.failures.absorbed += 1;
        let job = &mut self.outcome.jobs[order];
        job.affected = true;
        self.link_log.place(id, &placement, job.start, now);
        let from = std::mem::replace(&mut job.placement, placement);
        job.moves.push(Move { time: now, from, pause, made_room_for: None });
        self.pause(id, pause, now);
    }

    /// Ends a job that lost a node, and submits its remaining work again ahead of all others.
    fn interrupt(&mut self, id: u64, now: f64) {
        let running = self.scheduler.running().get(id);
        let (Some(&order), Some(running)) = (self.order.get(&id), running) else { return };
        let mut request = Request::clone(&running.request);
        let placement = Arc::clone(&running.placement);
        let cost = self.cost_of_failure(id, &placement, now);
        let left = self.outcome.jobs[order].alone;
        let done = self.end_early(id, order, now);
        let job = &mut self.outcome.jobs[order];
        let run = left - done + cost;
        self.left.insert(id, RemainingWork { run: Some(run), submitted: now });
        // The requested walltime did not include failures.
        request.walltime = request.walltime.max(run);
        request.attributes = whose_again(&request, now);
        job.interruption = Some(cost);
        job.affected = true;
        if let Err(refusal) = self.scheduler.submit(request, AHEAD) {
            self.outcome.refused.push((id as usize, refusal));
        }
    }

    /// Ends a job early. Returns the seconds of work that it has done.
    fn end_early(&mut self, id: u64, order: usize, now: f64) -> f64 {
        let done = self.ends.done(id, now);
        self.ends.interrupt(id);
        self.end(id, order, now, done).alone = done;
        done
    }

    /// Ends a job that has done `done` seconds of work. Returns its row.
    fn end(&mut self, id: u64, order: usize, now: f64, done: f64) -> &mut JobOutcome {
        self.scheduler.complete(id);
        if let Some(coupling) = &mut self.coupling {
            coupling.leave(id, done);
        }
        let job = &mut self.outcome.jobs[order];
        if let Some((links, bandwidth_share)) = self.link_log.end(id, now) {
            job.links = links;
            job.bandwidth_share = bandwidth_share;
        }
        job.finish = now;
        job
    }

    /// Handles jobs that the pass ended: they are cancelled, or submitted again with all their work.
    fn follow_ended_early(&mut self, now: f64) {
        for EndedEarly { request, again, by } in self.scheduler.last_ended_early().to_vec() {
            let Some(&order) = self.order.get(&request.id) else { continue };
            let done = self.end_early(request.id, order, now);
            let job = &mut self.outcome.jobs[order];
            job.killed = false;
            match by {
                EndedBy::Preemption => {
                    job.cut_short = Some(again.map_or(CutShort::Cancelled, |_| CutShort::Requeued));
                }
                EndedBy::NodeFailure => {
                    let fabric = self.scheduler.occupancy().fabric();
                    self.failures.interruptions += 1;
                    self.failures.node_seconds_lost += nodes_held(fabric, &job.placement) * done;
                    job.affected = true;
                    job.cut_short = again.is_none().then_some(CutShort::Failed);
                }
            }
            if let Some(begin) = again {
                job.interruption = Some(done);
                self.left.insert(request.id, RemainingWork { run: None, submitted: now });
                let attributes = whose_again(&request, now);
                self.submit(Request { begin, attributes, ..Request::clone(&request) });
            }
        }
    }

    /// Seconds that a failure costs a job: the work since its last checkpoint, plus the restart.
    fn cost_of_failure(&mut self, id: u64, placement: &Placement, now: f64) -> f64 {
        let cost = lost(self.ends.done(id, now), self.options.checkpoint) + RESTART;
        let fabric = self.scheduler.occupancy().fabric();
        let paid_twice = self.ends.paused(id, now);
        self.failures.node_seconds_lost += nodes_held(fabric, placement) * (cost - paid_twice);
        cost
    }

    /// Ends jobs that are due, and reports those that exceed their walltime to the queue.
    fn complete(&mut self, now: f64) {
        while let Some(due) = self.ends.pop(now) {
            match due {
                Due::End { id, order, killed, done } => {
                    let job = self.end(id, order, now, done);
                    job.killed |= killed;
                    if killed {
                        job.alone = done;
                    }
                }
                Due::Overrun { id, order, until } => {
                    let job = &mut self.outcome.jobs[order];
                    job.overran = true;
                    self.scheduler.set_walltime(id, until - job.start);
                }
            }
        }
    }

    /// Sets the traffic of a request, for policies that read it.
    fn name_traffic(&mut self, request: &mut Request, job: &Job) -> Result<(), InputError> {
        let never_fits = job.nodes > self.scheduler.occupancy().fabric().nodes();
        if never_fits || !self.reads_traffic {
            return Ok(());
        }
        if let Some(coupling) = &mut self.coupling {
            let per_node = self.widths.as_ref().map_or(1, |widths| widths.ranks_of_each_node(job));
            request.traffic = Some(coupling.traffic_of(job, job.nodes.saturating_mul(per_node))?);
        }
        Ok(())
    }

    /// Chooses the cores per node of a job, which sets its nodes and walltime, if the options ask for it.
    fn widen(
        &mut self,
        request: &mut Request,
        job: &Job,
        policy: &Arc<dyn Policy>,
    ) -> Result<(), InputError> {
        let (Some(widths), Some(coupling)) = (&mut self.widths, &mut self.coupling) else {
            return Ok(());
        };
        let occupancy = self.scheduler.occupancy();
        let chosen = widths.choose(request, job, occupancy, policy, coupling.contention())?;
        if let Some(width) = chosen {
            request.nodes = width.processes.div_ceil(width.k);
            request.walltime *= width.stretch;
            request.traffic = request.traffic.take().map(|traffic| traffic.on_rails(false));
            self.chosen.insert(request.id, width);
        }
        Ok(())
    }

    fn submit(&mut self, request: Request) {
        let index = request.id as usize;
        let priority = self.workload.jobs[index].priority;
        if let Err(refusal) = self.scheduler.submit(request, priority) {
            self.outcome.refused.push((index, refusal));
        }
    }

    fn pass(&mut self, now: f64) -> Result<(), InputError> {
        if let Some((head, since)) = self.blocked.take().filter(|&(_, since)| since < now) {
            self.outcome.fragmented_seconds += now - since;
            self.fragmented.insert(head);
        }
        let starts = self.scheduler.pass(now);
        self.follow_ended_early(now);
        let vacated = self.follow_moves(now);
        for start in starts {
            let wait =
                vacated.iter().filter(|(nodes, _)| meet(nodes.nodes(), start.placement.nodes()));
            let wait = wait.map(|&(_, seconds)| seconds).fold(0.0, f64::max);
            let id = start.request.id;
            self.begin(&start.request, start.placement, now)?;
            if wait > 0.0 {
                self.pause(id, wait, now);
            }
        }
        self.follow_head(now);
        self.follow_lending(now);
        if let Some(coupling) = &mut self.coupling {
            for (id, pace) in coupling.settle() {
                self.ends.set_pace(id, pace, now);
            }
        }
        Ok(())
    }

    /// Records the links lent to jobs whose own links carry less than full bandwidth, and the resulting share.
    fn follow_lending(&mut self, now: f64) {
        for &Lent { id, bandwidth_share, ref links } in self.scheduler.last_lent() {
            let order = self.order.get(&id);
            let Some(placed) =
                order.map(|&order| self.outcome.jobs[order].placement.bandwidth_share())
            else {
                continue;
            };
            self.link_log.lend(id, links, bandwidth_share, now);
            let coupling = self.coupling.as_ref();
            if let Some(pace) =
                coupling.and_then(|coupling| coupling.own_pace(id, bandwidth_share / placed))
            {
                self.ends.set_pace(id, pace, now);
            }
        }
    }

    /// Updates the jobs that the pass moved. Returns the placements that they left, and how long each stays busy.
    fn follow_moves(&mut self, now: f64) -> Vec<(Arc<Placement>, f64)> {
        let Some(moving) = self.options.moving else { return Vec::new() };
        let mut vacated = Vec::new();
        for MovedJob { id, placement, made_room_for } in self.scheduler.last_moved().to_vec() {
            let Some(&order) = self.order.get(&id) else { continue };
            let job = &mut self.outcome.jobs[order];
            self.link_log.place(id, &placement, job.start, now);
            let before = std::mem::replace(&mut job.placement, placement);
            let pause = moving.seconds(self.scheduler.occupancy().fabric(), &before);
            let made_room_for = Some(made_room_for as usize);
            job.moves.push(Move { time: now, from: Arc::clone(&before), pause, made_room_for });
            self.outcome.moves += 1;
            self.pause(id, pause, now);
            vacated.push((before, pause));
        }
        vacated
    }

    fn pause(&mut self, id: u64, seconds: f64, now: f64) {
        self.ends.pause(id, seconds, now);
        if let Some(&order) = self.order.get(&id) {
            self.outcome.jobs[order].stood_still += seconds;
        }
        if let Some(job) = self.scheduler.running().get(id) {
            let walltime = job.expected_end - job.start + seconds;
            self.scheduler.set_walltime(id, walltime);
        }
    }

    fn begin(
        &mut self,
        request: &Request,
        placement: Arc<Placement>,
        now: f64,
    ) -> Result<(), InputError> {
        let index = request.id as usize;
        let job = &self.workload.jobs[index];
        let walltime = request.walltime;
        let cut = if self.traits.isolates {
            self.options.scenario.speed_up(job.id, job.nodes, self.options.seed)
        } else {
            0.0
        };
        let width = self.chosen.get(&request.id);
        let logged = job.run * width.map_or(1.0, |width| width.stretch);
        let left = self.left.remove(&request.id);
        let run = left.and_then(|left| left.run).unwrap_or(logged * (1.0 - cut));
        let alone = run.min(walltime);
        let order = self.outcome.jobs.len();
        let mut pattern = 0;
        // A run that its walltime ended in the log also ends there in the simulation.
        let is_given = job.walltime.or(self.options.default_walltime).is_some();
        let mut ends_at_walltime = is_given && logged >= walltime;
        if let (Some(coupling), Some(network)) = (&mut self.coupling, &self.options.network) {
            pattern = coupling.enter(request.id, job, &placement, width)?;
            ends_at_walltime |= is_given && network.kill_at_walltime;
        }
        self.ends.begin(Begun { id: request.id, order, alone, walltime, ends_at_walltime }, now);
        let coupling = self.coupling.as_ref();
        if let Some(pace) = coupling.and_then(|coupling| coupling.own_pace(request.id, 1.0)) {
            self.ends.set_pace(request.id, pace, now);
        }
        let in_log = job.recorded.as_ref().filter(|_| self.replay);
        if in_log.is_some_and(|recorded| now > recorded.start.max(job.submit)) {
            self.outcome.late_against_log += 1;
        }
        if self.promise.is_some_and(|promise| promise.id == request.id && now > promise.at) {
            self.outcome.late_heads += 1;
        }
        self.link_log.place(request.id, &placement, now, now);
        self.outcome.jobs.push(JobOutcome {
            job: index,
            submitted: left.map_or(job.submit, |left| left.submitted),
            start: now,
            finish: now + alone,
            interruption: None,
            cut_short: None,
            walltime,
            killed: run > walltime,
            alone,
            bandwidth_share: placement.bandwidth_share(),
            overran: false,
            affected: false,
            pattern,
            moves: Vec::new(),
            stood_still: 0.0,
            links: Vec::new(),
            placement,
        });
        self.order.insert(request.id, order);
        Ok(())
    }

    /// Records the promise to the head, and whether it is refused although enough nodes are free.
    fn follow_head(&mut self, now: f64) {
        let last = self.scheduler.last_pass();
        let kept = self.promise.filter(|kept| {
            last.reservation.is_some_and(|next| next.id == kept.id && kept.at <= next.at)
        });
        self.promise = kept.or(last.reservation);
        let known = self.outcome.head_waits.last().map(|&(_, wait)| wait);
        let news = last.head_wait.filter(|&wait| known != Some(wait));
        self.outcome.head_waits.extend(news.map(|wait| (now, wait)));
        // A policy that only counts nodes never refuses a job for which enough are free.
        let counts = self.traits.count_only;
        let wanted = match last.refusal {
            Some((id, Refusal::WouldShareLinks { wanted, .. })) => Some((id, wanted)),
            Some((id, Refusal::NotNow { wanted, .. })) if !counts => Some((id, wanted)),
            _ => None,
        };
        if let Some((id, wanted)) = wanted {
            // Jobs started after the refusal may have left too few nodes.
            let head = self.scheduler.waiting().iter().find(|waiting| waiting.request.id == id);
            let free =
                head.map(|head| self.scheduler.occupancy().free_slots(&head.request).total());
            self.blocked = free.filter(|&free| free >= wanted).map(|_| (id, now));
        }
    }
}
