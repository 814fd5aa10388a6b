//! Slurm's backfill: each job in order gets a reservation, and starts if that delays no other reservation.

use std::collections::HashMap;
use std::sync::Arc;

use topolane_fabric::NodeSet;
use topolane_placement::{Occupancy, Placement, Request};

use super::Slurm;
use super::config::{PreemptMode, Schedulers};
use super::jobs::{Turn, whose};
use super::licenses::{self, Licenses};
use super::plan::BackfillPlan;
use super::start::limited;
use crate::running::RunningJob;
use crate::view::View;

/// The first time window, in seconds, in which ends of running jobs are tried together. It doubles after each try.
const TOGETHER: f64 = 30.0;

/// How often Slurm looks for a later time at which licences are not reserved.
const RETRIES: usize = 10;

/// The result of looking for a placement for a job.
enum BackfillPlace {
    Now(Placement),
    Later(NodeSet, f64),
}

/// When and where a job could start.
struct Chance {
    start: f64,
    placement: Placement,
    /// Whether the nodes are really free now. Slurm treats nodes of jobs that exceed their walltime as free, and then
    /// fails to start the job.
    is_free: bool,
}

/// The machine as jobs end one after another. The state is copied only when it is first needed.
struct Freed<'a> {
    now: &'a Occupancy,
    /// The relevant nodes that could be free by now.
    at_most: NodeSet,
    nodes: &'a NodeSet,
    licenses: Licenses,
    /// Licences that the job needs.
    needed: Vec<(Arc<str>, u64)>,
    state: &'a mut Option<Occupancy>,
    is_copied: bool,
    /// Jobs that have ended but are still in `state`.
    ended: Vec<&'a Placement>,
}

impl<'a> Freed<'a> {
    /// `state` may hold anything; it is overwritten.
    fn new(
        now: &'a Occupancy,
        (licenses, needed): (Licenses, Vec<(Arc<str>, u64)>),
        nodes: &'a NodeSet,
        state: &'a mut Option<Occupancy>,
    ) -> Self {
        let mut at_most = now.idle().clone();
        at_most.intersect(nodes);
        Freed { now, at_most, nodes, licenses, needed, state, is_copied: false, ended: Vec::new() }
    }

    fn release(&mut self, job: &'a RunningJob) {
        let held = job.placement.held().filter(|&node| self.nodes.contains(node));
        held.for_each(|node| self.at_most.insert(node));
        self.licenses.give_back(licenses::of(&job.request));
        self.ended.push(&job.placement);
    }

    /// Whether the request could fit. False is certain, true is not.
    fn could_hold(&self, request: &Request) -> bool {
        let has_nodes = !request.share.is_whole() || self.at_most.count() >= request.nodes;
        has_nodes && self.licenses.suffice(&self.needed)
    }

    fn occupancy(&mut self) -> &Occupancy {
        let state = self.state.get_or_insert_with(|| self.now.without_network());
        if !self.is_copied {
            state.clone_from(self.now);
            self.is_copied = true;
        }
        self.ended.drain(..).for_each(|placement| state.release(placement));
        state
    }
}

/// The numbers of jobs that backfill has examined, per user and partition.
#[derive(Default)]
struct Seen {
    tried: usize,
    of_user: HashMap<Arc<str>, usize>,
    of_part: HashMap<usize, usize>,
}

impl Seen {
    /// Counts a job. Returns false if its user or partition has reached a limit.
    fn counts(&mut self, turn: &Turn<'_>, schedulers: &Schedulers) -> bool {
        let of_part = self.of_part.entry(turn.standing.part).or_insert(0);
        let of_user = self.of_user.entry(Arc::clone(&turn.whose.user)).or_insert(0);
        let is_over = |seen: usize, most: usize| most > 0 && seen >= most;
        if is_over(*of_part, schedulers.backfill_depth_partition)
            || is_over(*of_user, schedulers.backfill_depth_user)
        {
            return false;
        }
        *of_part += 1;
        *of_user += 1;
        true
    }
}

impl Slurm {
    /// Goes through the jobs in order. Each job starts, is promised nodes for a later time, or neither.
    pub(super) fn run_backfill(&mut self, view: &mut View<'_>) {
        let never = Arc::clone(&self.never);
        let turns = self.turns(view, &never);
        if turns.is_empty() {
            return;
        }
        let usable = self.usable(view);
        let mut state = self.scratch.take();
        let schedulers = self.config.schedulers.clone();
        let mut plan = self.new_plan(view, usable.clone());
        let mut seen = Seen::default();
        let mut next = 0;
        for (place, turn) in turns.iter().enumerate() {
            next = self.next_that_matters(view, (&plan, &usable), &turns, next.max(place));
            if seen.tried >= schedulers.backfill_depth || next == turns.len() {
                break;
            }
            if !self.held.admits(&turn.whose, 0) || !seen.counts(turn, &schedulers) {
                continue;
            }
            seen.tried += 1;
            if !schedulers.backfill_licenses
                && !self.has_licenses(turn.request, &turn.whose, view.now)
            {
                continue;
            }
            let Some(found) = self.find(view, &plan, turn, (&usable, &mut state)) else {
                continue;
            };
            if let Some(standing) = self.waiting.get_mut(&turn.request.id) {
                standing.is_tested = true;
            }
            match found {
                BackfillPlace::Now(placement) => {
                    if !self.held.admits(&turn.whose, turn.request.nodes) {
                        continue;
                    }
                    let nodes = NodeSet::of(view.occupancy.idle().capacity(), placement.held());
                    if self.start_on(view, turn, placement) {
                        let end = view.now + turn.request.walltime;
                        self.keep(&mut plan, turn.request, nodes, end);
                    }
                }
                BackfillPlace::Later(nodes, start) => {
                    if start <= view.now && self.config.preemption.by.is_some() {
                        // Slurm checks the limits of the job before it ends others.
                        if !self.held.admits(&turn.whose, turn.request.nodes) {
                            continue;
                        }
                        let span = (view.now, view.now + turn.request.walltime);
                        let mut free = usable.clone();
                        self.keep_allowed(&mut free, turn, span);
                        plan.keep_free(&mut free, span.0, span.1);
                        self.make_room(view, turn, &free);
                    }
                    if !self.held.admits_on(&turn.whose, &nodes) {
                        continue;
                    }
                    let slot = self.slot(start, turn.request.walltime);
                    plan.promise(&nodes, &turn.whose, slot, schedulers.backfill_resolution);
                }
            }
        }
        self.scratch = state;
    }

    /// The first turn, from a given position on, that may end in a start or change a priority; the number of turns if
    /// there is none. A promise to a later job keeps no other job from starting.
    fn next_that_matters(
        &self,
        view: &View<'_>,
        (plan, usable): (&BackfillPlan, &NodeSet),
        turns: &[Turn<'_>],
        from: usize,
    ) -> usize {
        let matters = |turn: &Turn<'_>| {
            self.config.preemption.by.is_some()
                || self.counts_when_tested(turn)
                || turn.index.is_some() && self.could_start(view, plan, usable, turn)
        };
        from + turns[from..].iter().position(matters).unwrap_or(turns.len() - from)
    }

    /// Whether a job could start now or later in this pass. False is certain, true is not.
    fn could_start(
        &self,
        view: &View<'_>,
        plan: &BackfillPlan,
        usable: &NodeSet,
        turn: &Turn<'_>,
    ) -> bool {
        let request = turn.request;
        if !request.share.is_whole() {
            return true;
        }
        if view.occupancy.idle_nodes() < request.nodes
            || !self.held.admits(&turn.whose, request.nodes)
        {
            return false;
        }
        let end = view.now + request.walltime;
        let mut nodes = usable.clone();
        nodes.intersect(view.occupancy.idle());
        self.completing.iter().for_each(|(_, left)| nodes.subtract(left));
        if self.keep_allowed(&mut nodes, turn, (view.now, end)).is_none() {
            return false;
        }
        plan.keep_free(&mut nodes, view.now, end);
        nodes.count() >= request.nodes
    }

    /// Whether the priority of a job changes as soon as backfill has found nodes for it.
    fn counts_when_tested(&self, turn: &Turn<'_>) -> bool {
        let of_nodes = self.processors_of(turn.request);
        let is_fewer = turn.whose.processors.is_some_and(|asked| asked < of_nodes);
        !turn.standing.is_tested && is_fewer
    }

    /// Returns a plan without promises or, if backfill reserves licences, with those of running jobs.
    fn new_plan(&self, view: &View<'_>, usable: NodeSet) -> BackfillPlan {
        let Schedulers { backfill_window, backfill_resolution: step, backfill_licenses, .. } =
            self.config.schedulers;
        let (begin, end) = (self.down(view.now), self.down(view.now + backfill_window));
        if !backfill_licenses {
            return BackfillPlan::new(begin, end, usable, Licenses::default());
        }
        let capacity = usable.capacity();
        let mut plan = BackfillPlan::new(begin, end, usable, Licenses::of(&self.config));
        for kept in self.reservations.iter().filter(|kept| !kept.licenses.is_empty()) {
            if kept.until >= begin {
                let span = (self.down(kept.from), self.down(kept.until + step - 1.0));
                plan.reserve(&kept.name, &kept.licenses, span, step);
            }
        }
        for job in view.running.jobs() {
            let nodes = NodeSet::of(capacity, job.placement.held());
            self.keep(&mut plan, &job.request, nodes, job.expected_end);
        }
        plan
    }

    /// Reserves what a running job holds until its end: its licences, and its nodes if it shares none and cannot be
    /// preempted. Slurm does this in `_bf_reserve_running`.
    fn keep(&self, plan: &mut BackfillPlan, request: &Request, mut nodes: NodeSet, end: f64) {
        let step = self.config.schedulers.backfill_resolution;
        let whose = whose(request);
        let keeps_nodes = request.share.is_whole() && self.mode_of(&whose) == PreemptMode::Off;
        if !keeps_nodes && whose.licenses.is_empty() {
            return;
        }
        if !keeps_nodes {
            nodes = NodeSet::empty(nodes.capacity());
        }
        plan.promise(&nodes, &whose, (f64::NEG_INFINITY, self.down(end + step - 1.0)), step);
    }

    /// Rounds a time of day down to the resolution.
    fn down(&self, time: f64) -> f64 {
        let (step, epoch) = (self.config.schedulers.backfill_resolution, self.config.epoch);
        ((time + epoch) / step).floor() * step - epoch
    }

    /// The time span for which a job that starts at `start` is promised nodes.
    fn slot(&self, start: f64, walltime: f64) -> (f64, f64) {
        let step = self.config.schedulers.backfill_resolution;
        (self.down(start), self.down(start + walltime + step - 1.0))
    }

    /// One second after the end, rounded up, of the reservation that ends first at or after `start`.
    fn after_reservation(&self, start: f64) -> Option<f64> {
        let ends = self.reservations.iter().map(|kept| kept.until);
        let end = ends.filter(|&end| end >= start && end.is_finite()).min_by(f64::total_cmp)?;
        Some(self.down(end + self.config.schedulers.backfill_resolution - 1.0) + 1.0)
    }

    /// When and where a job can start without delaying a promise. As Slurm does, it tries now, and then each time at
    /// which a promise ends.
    fn find(
        &self,
        view: &View<'_>,
        plan: &BackfillPlan,
        turn: &Turn<'_>,
        (usable, state): (&NodeSet, &mut Option<Occupancy>),
    ) -> Option<BackfillPlace> {
        let (now, walltime) = (view.now, turn.request.walltime);
        let step = self.config.schedulers.backfill_resolution;
        let window = self.config.schedulers.backfill_window;
        let last = self.down(now + window);
        let mut from = now;
        loop {
            from = self.after_reserved_licenses(turn, now, from)?;
            if from > last {
                return None;
            }
            let mut nodes = usable.clone();
            let is_reduced = self.keep_allowed(&mut nodes, turn, (from, from + walltime))?;
            let licensed = plan.licenses_later(&turn.whose, from, from + walltime);
            let mut later = licensed.or(plan.keep_free(&mut nodes, from, from + walltime));
            if is_reduced {
                let end = self.after_reservation(from).filter(|&end| end < last);
                later = [later, end].into_iter().flatten().min_by(f64::total_cmp);
            }
            if licensed.is_some() {
                from = later?;
                continue;
            }
            let Some(chance) = self.will_run(view, turn, &nodes, (from, later), state) else {
                from = later?;
                continue;
            };
            let start = chance.start.max(from);
            if chance.is_free {
                return Some(BackfillPlace::Now(chance.placement));
            }
            let chosen = NodeSet::of(nodes.capacity(), chance.placement.held());
            if start <= now {
                later = None;
            }
            let (begin, end) = self.slot(start, walltime);
            let is_overlapping = !plan.is_free(&chosen, &turn.whose, begin, end);
            if is_overlapping && chance.start > now {
                from = if start > from { start } else { start + step };
            } else if let Some(later) = later.filter(|&later| start > later) {
                from = later;
            } else if start > now + window {
                return None;
            } else if is_overlapping {
                from = if start > from { start } else { start + step };
            } else {
                return Some(BackfillPlace::Later(chosen, start));
            }
        }
    }

    /// The time from which the licences of a job are free and not reserved; `None` if there is no such time. As Slurm's
    /// `job_test_resv`, it applies to jobs without a reservation while any reservation exists. The next time to try is
    /// the first end of a reservation with such licences.
    fn after_reserved_licenses(&self, turn: &Turn<'_>, now: f64, start: f64) -> Option<f64> {
        let there = || self.reservations.iter().filter(|kept| kept.until >= now);
        if !turn.whose.reservation.is_empty() || there().next().is_none() {
            return Some(start);
        }
        let mut from = start;
        for _ in 0..=RETRIES {
            if self.has_licenses(turn.request, &turn.whose, from) {
                return Some(from);
            }
            let end = from + turn.request.walltime;
            let others = there().filter(|kept| {
                kept.meets(from, end) && licenses::meet(&kept.licenses, &turn.whose.licenses)
            });
            from =
                others.map(|kept| kept.until).min_by(f64::total_cmp).filter(|&end| end > from)?;
        }
        None
    }

    /// When a job can start on some of these nodes as running jobs end: now, at `from`, or at one of the ends up to
    /// `until`. Ends close together count as one. Jobs that would be preempted are removed first.
    fn will_run(
        &self,
        view: &View<'_>,
        turn: &Turn<'_>,
        nodes: &NodeSet,
        (from, until): (f64, Option<f64>),
        state: &mut Option<Occupancy>,
    ) -> Option<Chance> {
        let request = turn.request;
        if nodes.count() < request.nodes {
            return None;
        }
        let needed = self.licenses_with_reservations(request, &turn.whose, view.now);
        let licenses = (self.held.licenses.clone(), needed);
        let mut freed = Freed::new(view.occupancy, licenses, nodes, state);
        let place = |nodes: NodeSet, occupancy: &Occupancy| {
            view.policy.place(&limited(request, nodes), occupancy).ok()
        };
        let fits = |freed: &mut Freed<'_>| {
            freed.could_hold(request).then(|| place(nodes.clone(), freed.occupancy())).flatten()
        };
        let now = view.now;
        let at = |start: f64, placement: Placement| Chance { start, placement, is_free: false };
        if from <= now && freed.could_hold(request) {
            let mut cleaned_up = nodes.clone();
            self.completing.iter().for_each(|(_, left)| cleaned_up.subtract(left));
            if let Some(placement) = place(cleaned_up, view.occupancy) {
                return Some(Chance { start: now, placement, is_free: true });
            }
            if !self.completing.is_empty()
                && let Some(placement) = place(nodes.clone(), view.occupancy)
            {
                return Some(at(now + 1.0, placement));
            }
        }
        let asked = licenses::of(request);
        let holds_some = |job: &RunningJob| {
            job.placement.held().any(|node| nodes.contains(node))
                || licenses::meet(licenses::of(&job.request), asked)
        };
        let giving_way = self.candidates(view, turn);
        let gives_way = |job: &RunningJob| giving_way.iter().any(|other| other.id == job.id);
        let running = view.running.jobs();
        let (ended, later) =
            running.split_at(running.partition_point(|job| job.expected_end < from));
        let mut is_changed = from > now;
        let ended = ended.iter().filter(|job| !gives_way(job));
        for job in ended.chain(&giving_way).filter(|job| holds_some(job)) {
            freed.release(job);
            is_changed = true;
        }
        if is_changed && let Some(placement) = fits(&mut freed) {
            return Some(at(now, placement));
        }
        let limit = until.unwrap_or(f64::INFINITY);
        let ends = |job: &&RunningJob| job.expected_end.is_finite() && job.expected_end <= limit;
        // A job that would be preempted is in no group of ends (`_build_cr_job_list` of Slurm).
        let mut later = later.iter().filter(|job| !gives_way(job)).peekable();
        let mut base = None;
        let mut together = TOGETHER;
        loop {
            let mut last = None;
            while let Some(job) = later.next_if(ends) {
                if !holds_some(job) {
                    continue;
                }
                let base = *base.get_or_insert_with(|| self.after_window(job.expected_end));
                freed.release(job);
                last = Some(job.expected_end);
                if later.peek().is_some_and(|next| next.expected_end > base + together) {
                    break;
                }
            }
            let end = last?;
            if let Some(placement) = fits(&mut freed) {
                return Some(at(self.guessed_end(end, now), placement));
            }
            let upcoming = later.peek()?.expected_end;
            together *= 2.0;
            while upcoming > base? + together && upcoming.is_finite() {
                together *= 2.0;
            }
        }
    }

    /// When a job is expected to end. Slurm ends jobs some time after their walltime (`_guess_job_end`).
    fn guessed_end(&self, end: f64, now: f64) -> f64 {
        if end > now {
            return end;
        }
        (end + self.config.schedulers.over_time).max(now + 1.0)
    }

    /// The first multiple of [`TOGETHER`] after an end, in times of day: there Slurm's next group of ends begins.
    fn after_window(&self, end: f64) -> f64 {
        let epoch = self.config.epoch;
        ((end + epoch) / TOGETHER).floor() * TOGETHER + TOGETHER - epoch
    }
}
