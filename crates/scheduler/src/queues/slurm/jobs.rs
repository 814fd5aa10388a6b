//! The jobs known to the schedulers: waiting jobs, in order, and running jobs.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use topolane_fabric::NodeSet;
use topolane_placement::{Attributes, Request};

use super::Slurm;
use super::config::NeverStarted;
use super::licenses;
use crate::view::View;

/// A job that waits in the records and never starts.
#[derive(Debug, Clone)]
pub(super) struct Never {
    pub request: Request,
    pub submit: f64,
    pub until: f64,
}

impl Never {
    pub fn of(one: &NeverStarted) -> Self {
        let attributes = Attributes {
            partition: Arc::from(&*one.partition),
            user: Arc::from(&*one.user),
            account: Arc::from(&*one.account),
            qos: Arc::from(&*one.qos),
            reservation: Arc::default(),
            nice: one.nice,
            processors: one.processors,
            no_requeue: false,
            licenses: licenses::named(&one.licenses),
            queued: one.queued,
        };
        let request = Request {
            attributes: Some(Arc::new(attributes)),
            ..Request::whole_nodes(u64::MAX - one.id, one.nodes, one.walltime)
        };
        Never { request, submit: one.submit, until: one.until }
    }
}

/// What the schedulers know of a waiting job.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitingState {
    /// The time at which it became eligible.
    pub since: f64,
    /// The time from which the schedulers see it.
    pub seen: f64,
    pub priority: f64,
    /// Whether backfill has found nodes for it. After that, all processors of its nodes count in its priority.
    pub is_tested: bool,
    pub part: usize,
    /// When the job last preempted others.
    pub preempted: f64,
}

/// A job whose turn it is: a job in the queue, or one that never starts.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    /// The job's index in the queue; `None` for a job that never starts.
    pub index: Option<usize>,
    pub request: &'a Request,
    pub whose: Arc<Attributes>,
    pub standing: WaitingState,
}

impl Turn<'_> {
    /// The time that orders it among jobs of the same priority.
    pub(super) fn place(&self) -> f64 {
        self.whose.queued.unwrap_or(self.standing.since)
    }
}

/// A running job, for the computation of usage.
#[derive(Debug, Clone)]
pub(super) struct JobUsage {
    pub whose: Arc<Attributes>,
    pub nodes: NodeSet,
    pub processors: u64,
    /// The time up to which its usage has been counted.
    pub counted: f64,
    /// The end of its grace time; infinite if it is not being preempted.
    pub leaves: f64,
}

impl Slurm {
    /// Applies everything since the last pass: ends, starts by others, arrivals.
    pub(super) fn follow(&mut self, view: &View<'_>) {
        let now = view.now;
        for id in self.gone(view) {
            let Some(ran) = self.running.remove(&id) else { continue };
            self.held.remove(&ran.whose, &ran.nodes);
            self.charge(&ran, now);
            self.clean_up(ran.nodes, now);
        }
        if view.changed {
            let others = view.running.jobs().iter();
            let others = others.filter(|job| !self.running.contains_key(&job.id));
            for job in others.cloned().collect::<Vec<_>>() {
                self.note_start(&job.request, job.placement.nodes(), job.start);
            }
            self.note_change(now);
        }
        let unknown = if view.changed { 0 } else { view.fresh };
        for (index, waiting) in view.waiting.iter().enumerate().skip(unknown) {
            if view.is_visible(index) && !view.has_started(index) {
                self.arrive(&waiting.request, now);
            }
        }
        self.follow_never_started(now);
        if view.changed {
            self.forget_cancelled(view);
        }
    }

    /// Adds a job that became eligible at `since`, unless it is known. The schedulers see it in the next second, or at
    /// once if a scheduler found it eligible itself.
    pub(super) fn arrive(&mut self, request: &Request, since: f64) {
        if self.waiting.contains_key(&request.id) {
            return;
        }
        let seen = if request.begin > 0.0 { since } else { self.next_second(since) };
        let part = self.part(&whose(request));
        let preempted = f64::NEG_INFINITY;
        let standing =
            WaitingState { since, seen, priority: 0.0, is_tested: false, part, preempted };
        let priority = self.priority(request, standing, since);
        self.waiting.insert(request.id, WaitingState { priority, ..standing });
        self.wake(since);
    }

    /// Adds and removes the jobs that never start.
    pub(super) fn follow_never_started(&mut self, now: f64) {
        let never = Arc::clone(&self.never);
        while let Some(one) = never.get(self.come).filter(|one| one.submit <= now) {
            self.arrive(&one.request, one.submit);
            self.never_waiting.push(self.come);
            self.come += 1;
        }
        let waiting = &mut self.waiting;
        self.never_waiting.retain(|&place| {
            let stays = now < never[place].until;
            if !stays {
                waiting.remove(&never[place].request.id);
            }
            stays
        });
    }

    /// Drops jobs that have left the queue without starting.
    pub(super) fn forget_cancelled(&mut self, view: &View<'_>) {
        let waiting = view.waiting.iter().enumerate();
        let visible = waiting
            .filter(|&(index, _)| view.is_visible(index) && !view.has_started(index))
            .map(|(_, waiting)| waiting.request.id);
        if self.waiting.len() <= visible.clone().count() + self.never_waiting.len() {
            return;
        }
        let never = self.never_waiting.iter().map(|&place| self.never[place].request.id);
        let there: HashSet<u64> = visible.chain(never).collect();
        self.waiting.retain(|id, _| there.contains(id));
    }

    /// The jobs that have ended since the last pass.
    pub(super) fn gone(&self, view: &View<'_>) -> Vec<u64> {
        if !view.changed {
            return Vec::new();
        }
        let ran = self.running.keys().copied();
        ran.filter(|&id| !view.running.contains(id)).collect()
    }

    pub(super) fn note_start(&mut self, request: &Request, nodes: &[u32], start: f64) {
        let whose = whose(request);
        let processors = self.processors_on(nodes.len(), request).max(nodes.len() as u64);
        self.waiting.remove(&request.id);
        let capacity = nodes.iter().max().map_or(0, |last| last + 1);
        let nodes = NodeSet::of(capacity, nodes.iter().copied());
        self.held.add(&whose, &nodes);
        self.running.insert(
            request.id,
            JobUsage { whose, nodes, processors, counted: start, leaves: f64::INFINITY },
        );
    }

    /// Releases the nodes of a job that has ended. Without an epilogue they are free at once, and the main scheduler
    /// runs as after a submission.
    pub(super) fn clean_up(&mut self, nodes: NodeSet, now: f64) {
        let until = if let Some(seconds) = self.config.schedulers.epilog {
            self.clock.epilog = self.clock.epilog.min(now + seconds);
            now + seconds
        } else {
            self.wake(now);
            self.next_second(now)
        };
        if until > now {
            self.completing.push((until, nodes));
        }
        self.note_change(now);
    }
}

/// The attributes of a request; empty if unknown.
pub(super) fn whose(request: &Request) -> Arc<Attributes> {
    static UNKNOWN: LazyLock<Arc<Attributes>> = LazyLock::new(Arc::default);
    request.attributes.as_ref().unwrap_or(&UNKNOWN).clone()
}
