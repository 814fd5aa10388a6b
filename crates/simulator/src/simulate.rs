//! The event loop: a clock and a workload around a [`Scheduler`].

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use topolane_fabric::{Fabric, Fixed, InputError, Routing, Rule};
use topolane_placement::{
    Attributes, Lent, Placement, Policy, Refusal, Request, Share, Traits, Within,
};
use topolane_scheduler::{
    Defrag, EndedBy, EndedEarly, HeadWait, Moved, Queue, Reservation, Scheduler,
};

use crate::coupling::Coupling;
use crate::drains::Drains;
use crate::ends::{Begun, Due, Ends, Time};
use crate::failures::{Failing, Failure, FailureCount, Left, Recovery, lost, nodes_held, replaced};
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

/// Longest run, seconds.
const LONGEST: f64 = LONGEST_DAYS * 86_400.0;

/// Priority of jobs that a failure interrupted: above that of all others.
const AHEAD: f64 = f64::MAX;

/// What a run depends on besides workload, machine, policy and queue.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Cut in run time that isolation brings; applied only under policies that isolate.
    pub scenario: Scenario,
    /// Seed of the scenario's draws.
    pub seed: u64,
    /// Walltime of jobs without one, seconds; `None`: their run time.
    pub default_walltime: Option<f64>,
    /// The least share of full bandwidth that jobs accept on links of their own; `None`: all of it.
    pub min_bandwidth: Option<f64>,
    /// Which group of the machine every job is to lie in, for policies that ask jobs.
    pub within: Within,
    /// Whether running jobs may be moved to make room, and what it costs them.
    pub moving: Option<Defrag>,
    /// Nodes of each part of a job that must lie in one domain, for all jobs; `None`: as each job says.
    pub segment: Option<u32>,
    /// How jobs meet on the network; `None`: they do not slow each other down.
    pub network: Option<Network>,
    /// Links that fail. No job is placed on them meanwhile; a job that is there stays, as fast as before.
    pub outages: Vec<Outage>,
    /// Nodes that fail, and with them the jobs on them.
    pub failures: Vec<Failure>,
    /// Nodes that take no new jobs for a time; the jobs on them end when they would have.
    pub out_of_service: Vec<Failure>,
    /// What a failure costs a job, and how many spare nodes stand by.
    pub recovery: Recovery,
}

/// Why a queue ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutShort {
    /// It made room for another job, and was submitted again.
    Requeued,
    /// It made room for another job, and was lost.
    Cancelled,
    /// One of its nodes failed, and it was lost.
    Failed,
}

/// One job's fate. Times in seconds since the workload's epoch.
#[derive(Debug, Clone)]
pub struct JobOutcome {
    /// Index into the workload's jobs.
    pub job: usize,
    /// When it was submitted; again, if a failure had interrupted it.
    pub submitted: f64,
    /// When it started.
    pub start: f64,
    /// When it ended.
    pub finish: f64,
    /// If a node's failure ended it, or another job did so that it will start again, the seconds that this cost. It was submitted
    /// again, and has another outcome for that.
    pub interruption: Option<f64>,
    /// Why a queue ended it, if one did; a failure after which it was submitted again is an interruption only.
    pub cut_short: Option<CutShort>,
    /// The walltime it was scheduled with.
    pub walltime: f64,
    /// Whether it was ended at its walltime.
    pub killed: bool,
    /// Seconds it would have run alone; of one ended at its walltime, for what it had done by then.
    pub alone: f64,
    /// The share of full bandwidth that it had on links of its own, in the mean over its time; 1 where it owned none.
    pub bandwidth_share: f64,
    /// Whether it outlasted its walltime.
    pub overran: bool,
    /// Whether a link failed while it ran that it owned or, owning none, may have used.
    pub affected: bool,
    /// Index of its pattern among the network's; 0 without a network.
    pub pattern: usize,
    /// Its moves in order of time.
    pub moves: Vec<Move>,
    /// Seconds for which it stood still, because it was moved or waited for jobs that left its nodes.
    pub stood_still: f64,
    /// The links that it had in the course of time; empty for one that owned none.
    pub links: Vec<LinksHeld>,
    /// Where it ran; of one that was moved, at the end.
    pub placement: Arc<Placement>,
}

impl JobOutcome {
    /// Where it was, each with the time until then: before its moves, and at the end.
    pub fn places(&self) -> impl Iterator<Item = (f64, &Placement)> {
        let before = self.moves.iter().map(|step| (step.time, &*step.from));
        before.chain([(self.finish, &*self.placement)])
    }

    /// Seconds for which it ran past its walltime because it had stood still; 0 if it did not.
    pub fn past_walltime(&self) -> f64 {
        let longer = self.finish - self.start - self.walltime;
        // The end is a sum, and rounded.
        if longer < 1e-6 { 0.0 } else { longer.min(self.stood_still) }
    }

    /// Whether it was ended and submitted again.
    pub fn is_interrupted(&self) -> bool {
        self.interruption.is_some()
    }

    /// How many times longer than alone it ran while others ran.
    pub fn contention(&self) -> f64 {
        if self.alone > 0.0 { (self.finish - self.start) / self.alone } else { 1.0 }
    }
}

/// What happened.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// The jobs that ran, in order of start.
    pub jobs: Vec<JobOutcome>,
    /// Indices of jobs that the policy would never place, and why.
    pub refused: Vec<(usize, Refusal)>,
    /// Jobs skipped because the log says they ran on nodes that the machine does not have.
    pub elsewhere: usize,
    /// Seconds in which the head of the queue was refused though enough nodes were free.
    pub fragmented_seconds: f64,
    /// How many jobs that befell.
    pub fragmented_jobs: usize,
    /// Jobs of the log whose recorded start had to wait for nodes the log also gave to another.
    pub late_against_log: usize,
    /// Heads of the queue that started later than they were first promised, because running jobs
    /// overran.
    pub late_heads: usize,
    /// Moves of running jobs.
    pub moves: u64,
    /// How often the policy searched, and how often its limit ended that before it had seen all.
    pub searches: (u64, u64),
    /// Of every channel of the network the seconds at full rate that all jobs needed it for.
    pub channel_busy: Vec<f64>,
    /// By which rule the heads of the queue waited, from when on; empty if the policy has no rule for heads.
    pub head_waits: Vec<(f64, HeadWait)>,
    /// How much more would have fitted; `None` on a machine without GPUs.
    pub room: Option<RoomFacts>,
    /// What failures did; `None` if there were none and no spare nodes.
    pub failures: Option<FailureCount>,
}

/// Called with the share of jobs that have ended, after every event; an error stops the run.
pub type Progress<'a, E> = &'a mut dyn FnMut(f64) -> Result<(), E>;

/// Runs a workload. At one instant: completions, then arrivals, then one pass of the queue.
///
/// # Errors
/// A recorded node list that does not parse or names nodes the machine does not have, or jobs over
/// more than 20 years, as an [`InputError`]; and what `progress` returns.
pub fn simulate<E: From<InputError>>(
    workload: &Workload,
    fabric: &Arc<Fabric>,
    policy: &Arc<dyn Policy>,
    queue: Box<dyn Queue>,
    options: &Options,
    progress: Progress<'_, E>,
) -> Result<Outcome, E> {
    let replay = queue.name() == "recorded";
    workload.check_times()?;
    let as_logged = replay || policy.name() == "recorded";
    let widths = Widths::of(options.network.as_ref(), workload, fabric, as_logged, options.seed)?;
    let mut scheduler = Scheduler::new(Arc::clone(fabric), Arc::clone(policy), queue);
    if policy.reads_traffic() {
        scheduler = scheduler.on_network(routing_of(options, fabric));
    }
    let mut run = Run {
        reads_traffic: policy.reads_traffic(),
        scheduler: scheduler.moving(options.moving),
        workload,
        options,
        replay,
        traits: policy.traits(),
        ends: Ends::default(),
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
    let spares = options.recovery.spares;
    let mut failing = Failing::new(&options.failures, spares, first, fabric, &mut run.scheduler);
    let mut drains = Drains::new(&options.out_of_service, first);
    let mut room = RoomLog::of(workload, fabric, options.segment);
    let mut next = 0;
    let mut begin = None;
    loop {
        let arrival = workload.jobs.get(next).map(|job| Time(job.submit));
        let end = run.ends.next().map(Time);
        let is_over = arrival.is_none() && end.is_none() && run.scheduler.waiting().is_empty();
        // One that is as good as for ever must not make the run as long.
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

/// A job asks under its index in the workload, so that ids in logs need not be unique numbers.
fn request_of(index: usize, job: &Job, share: Share, options: &Options) -> Request {
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

/// Whose a request is that is submitted again.
fn whose_again(request: &Request, now: f64) -> Option<Arc<Attributes>> {
    request.attributes.as_ref().map(|of| Arc::new(of.queued_again(now)))
}

fn walltime_of(job: &Job, options: &Options) -> f64 {
    job.walltime.or(options.default_walltime).unwrap_or(job.run)
}

/// The routes that a policy which reads traffic reckons with.
fn routing_of(options: &Options, fabric: &Arc<Fabric>) -> Arc<dyn Routing> {
    options.network.as_ref().map_or_else(
        || Arc::new(Fixed::new(Arc::clone(fabric), Rule::DestinationModK)) as Arc<dyn Routing>,
        |network| Arc::clone(&network.routing),
    )
}

struct Run<'a> {
    scheduler: Scheduler,
    reads_traffic: bool,
    workload: &'a Workload,
    options: &'a Options,
    /// Whether start times come from the log.
    replay: bool,
    traits: Traits,
    ends: Ends,
    coupling: Option<Coupling<'a>>,
    widths: Option<Widths<'a>>,
    /// The widths of jobs, by identity.
    chosen: HashMap<u64, Width>,
    /// The places of the jobs in the order of starts, by identity.
    order: HashMap<u64, usize>,
    link_log: LinkLog,
    /// What interrupted jobs still have to do, by identity.
    left: HashMap<u64, Left>,
    gpu_types: GpuTypes,
    failures: FailureCount,
    /// The earliest start that the head of the queue was promised.
    promise: Option<Reservation>,
    outcome: Outcome,
    fragmented: HashSet<u64>,
    /// Why the first job was skipped that ran on nodes that the machine does not have.
    stranger: Option<InputError>,
    /// Who is the head and since when it is refused though enough nodes are free.
    blocked: Option<(u64, f64)>,
}

impl Run<'_> {
    /// The outcome, with what is counted at the end.
    fn finish(self, policy: &Arc<dyn Policy>, searches_before: (u64, u64)) -> Outcome {
        let mut outcome = self.outcome;
        outcome.channel_busy = self.coupling.map(Coupling::into_busy).unwrap_or_default();
        let (searches, cut_short) = policy.searches();
        outcome.searches = (searches - searches_before.0, cut_short - searches_before.1);
        outcome.fragmented_jobs = self.fragmented.len();
        outcome
    }

    /// What a job asks for on this machine; `None`, and the job is refused, if no node has what it takes.
    fn asked(&mut self, index: usize, job: &Job) -> Option<Request> {
        let fabric = self.scheduler.occupancy().fabric();
        let share = self.workload.share_on(job, fabric);
        let asked = share.and_then(|share| {
            let eligible = self.gpu_types.nodes(job, fabric)?;
            Ok(Request { eligible, ..request_of(index, job, share, self.options) })
        });
        asked.map_err(|refusal| self.outcome.refused.push((index, refusal))).ok()
    }

    /// Submits a job, unless the machine cannot run it.
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
            // What ran longer than it asked for did so.
            request.walltime = request.walltime.max(job.run);
        } else if let Some(time) = job.held_until {
            request.begin = time;
        }
        self.name_traffic(&mut request, job)?;
        self.widen(&mut request, job, policy)?;
        self.submit(request);
        Ok(())
    }

    /// Lets nodes fail and come back that are due by `now`.
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

    /// A job that lost a node goes on with a spare one, from its last checkpoint.
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

    /// A job that lost a node ends, and is submitted again for what is left of it, ahead of the others.
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
        self.left.insert(id, Left { run: Some(run), submitted: now });
        // It asked for time without failures.
        request.walltime = request.walltime.max(run);
        request.attributes = whose_again(&request, now);
        job.interruption = Some(cost);
        job.affected = true;
        if let Err(refusal) = self.scheduler.submit(request, AHEAD) {
            self.outcome.refused.push((id as usize, refusal));
        }
    }

    /// Takes a job out before it is done; answers the seconds of its work that it has done.
    fn end_early(&mut self, id: u64, order: usize, now: f64) -> f64 {
        let done = self.ends.done(id, now);
        self.ends.interrupt(id);
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
        job.alone = done;
        done
    }

    /// Jobs that the pass ended are lost, or submitted again for all of their work.
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
                self.left.insert(request.id, Left { run: None, submitted: now });
                let attributes = whose_again(&request, now);
                self.submit(Request { begin, attributes, ..Request::clone(&request) });
            }
        }
    }

    /// Seconds that a failure costs a job: what it has done since its last checkpoint, and starting again.
    fn cost_of_failure(&mut self, id: u64, placement: &Placement, now: f64) -> f64 {
        let Recovery { checkpoint, restart, .. } = self.options.recovery;
        let cost = lost(self.ends.done(id, now), checkpoint) + restart;
        let fabric = self.scheduler.occupancy().fabric();
        let paid_twice = self.ends.paused(id, now);
        self.failures.node_seconds_lost += nodes_held(fabric, placement) * (cost - paid_twice);
        cost
    }

    /// Ends jobs, and reports to the queue those that outlast their walltime.
    fn complete(&mut self, now: f64) {
        while let Some(due) = self.ends.pop(now) {
            match due {
                Due::End { id, order, killed, done } => {
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

    /// Says what the job sends, for a policy that looks at it.
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

    /// Chooses the cores per node, and with them nodes and walltime, if that is asked for.
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

    /// Records the links lent to jobs whose own links carry less than full bandwidth, and their share of it.
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

    /// Puts the jobs that the pass moved where they are now; answers what they left, and for how long it is busy.
    fn follow_moves(&mut self, now: f64) -> Vec<(Arc<Placement>, f64)> {
        let Some(moving) = self.options.moving else { return Vec::new() };
        let mut vacated = Vec::new();
        for Moved { id, placement, made_room_for } in self.scheduler.last_moved().to_vec() {
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
        // What its walltime ended in the log ends then in any case.
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

    /// Notes what the head is promised, and whether it is refused though enough nodes are free.
    fn follow_head(&mut self, now: f64) {
        let last = self.scheduler.last_pass();
        let kept = self.promise.filter(|kept| {
            last.reservation.is_some_and(|next| next.id == kept.id && kept.at <= next.at)
        });
        self.promise = kept.or(last.reservation);
        let known = self.outcome.head_waits.last().map(|&(_, wait)| wait);
        let news = last.head_wait.filter(|&wait| known != Some(wait));
        self.outcome.head_waits.extend(news.map(|wait| (now, wait)));
        // One that only counts nodes has never refused a job that enough are free for.
        let counts = self.traits.count_only;
        let wanted = match last.refusal {
            Some((id, Refusal::WouldShareLinks { wanted, .. })) => Some((id, wanted)),
            Some((id, Refusal::NotNow { wanted, .. })) if !counts => Some((id, wanted)),
            _ => None,
        };
        if let Some((id, wanted)) = wanted {
            // Those started after the head was refused may have left too little.
            let head = self.scheduler.waiting().iter().find(|waiting| waiting.request.id == id);
            let free =
                head.map(|head| self.scheduler.occupancy().free_slots(&head.request).total());
            self.blocked = free.filter(|&free| free >= wanted).map(|_| (id, now));
        }
    }
}
