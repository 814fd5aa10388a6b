//! The plan of everything held now and promised for later, kept between passes of conservative backfilling.

mod begins;
mod classes;
mod held;
mod homes;
mod opening;
mod runs;
mod span;
mod windows;

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use topolane_fabric::GroupIndex;
use topolane_placement::{Placement, Policy, Request, RoomHelps};

use crate::promise::number_of;
use crate::queue::{Pass, Reservation};
use crate::queues::reservation::{Promise, SHORTEST, lasts, whole_nodes};
use crate::timeline::MOST_NODES;
use crate::view::View;
use begins::Begins;
use classes::WaitingClasses;
use held::{HeldTimelines, PlacementParts};
use homes::LeafRuns;
use opening::Opening;
use span::Span;
use windows::{Window, Windows};

/// Comparisons of times with differences of times tolerate this rounding error, in seconds.
const ROUNDING: f64 = 1e-3;

/// The number of passes after which the plan drops classes that no longer have waiting jobs.
const PASSES: u32 = 16;

/// A waiting job and its reservation.
#[derive(Debug)]
struct PlannedJob {
    class: usize,
    promise: Option<Promise>,
    /// Whether this plan made the reservation; if not, an earlier one may be possible.
    is_own: bool,
    /// The time span in which the job may start on the leaves of its own reservation, as far as that has changed.
    in_own_leaves: Option<(f64, f64)>,
}

impl PlannedJob {
    fn begins_at(&self, start: f64) -> bool {
        self.promise.as_ref().is_some_and(|promise| promise.start.total_cmp(&start).is_eq())
    }

    /// Records an opening before its reservation. Returns false if the job cannot use it.
    fn note(&mut self, opening: &Opening, lasts: f64, now: f64) -> bool {
        let Some(promise) = &self.promise else { return false };
        let (from, until) = (opening.from(lasts, now), opening.when.1.min(promise.start));
        if from < until {
            let known = self.in_own_leaves.unwrap_or((from, until));
            self.in_own_leaves = Some((known.0.min(from), known.1.max(until)));
        }
        from < until
    }
}

/// The position of a waiting job in the queue.
#[derive(Debug)]
struct Seat {
    id: u64,
    /// The index of its entry.
    entry: usize,
    class: usize,
    nodes: u32,
    walltime: f64,
    /// The start of its reservation in seconds; `None` if it has none, or if its walltime has changed since.
    start: Option<f64>,
}

/// The plan for whole nodes under a policy that isolates jobs without assigning single links, and that never refuses
/// because of more free capacity. A job gets another reservation only if something opens before its own.
pub(crate) struct KeptPlan {
    /// The waiting jobs in queue order.
    seats: Vec<Seat>,
    /// Entries in no order, including unused ones of jobs that left; then the indices of unused entries.
    entries: Vec<PlannedJob>,
    gone: Vec<usize>,
    /// For each entry, whether something has opened before its reservation.
    is_reached: Vec<bool>,
    classes: WaitingClasses,
    begins: Begins,
    held: HeldTimelines,
    span: Span,
    /// Whether the plan cannot be kept: two jobs hold the same at one time, or a job does not fit this kind of plan.
    is_unfit: bool,
    passes: u32,
    changes: u64,
    service: u64,
    rule: usize,
}

impl fmt::Debug for KeptPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.promised()).finish()
    }
}

/// Whether the policy and the state allow a plan to be kept.
fn suits(view: &View<'_>) -> bool {
    let (policy, occupancy, running) = (view.policy, &*view.occupancy, &*view.running);
    let fabric = occupancy.fabric();
    policy.traits().isolates
        && fabric.wiring().is_tree()
        && policy.dedicates_links().is_none()
        && occupancy.is_joined()
        && occupancy.network().is_none()
        && running.times().first().is_none_or(|&end| end > view.now)
        && (0..fabric.groups(1)).all(|leaf| fabric.node_range(1, leaf).len() as u32 <= MOST_NODES)
}

fn is_whole(placement: &Placement) -> bool {
    placement.share().is_whole() && placement.links().is_empty() && placement.is_isolated()
}

impl KeptPlan {
    /// Returns the kept plan, updated, or a new plan with these promises.
    ///
    /// # Errors
    /// Returns the promises if no such plan is possible.
    pub fn of(
        kept: Option<Self>,
        promises: HashMap<u64, Promise>,
        view: &View<'_>,
    ) -> Result<Self, HashMap<u64, Promise>> {
        let mut promises = promises;
        if let Some(mut plan) = kept {
            if plan.follow(view) {
                return Ok(plan);
            }
            promises = plan.into_promises();
        }
        let Some(mut plan) = KeptPlan::new(view, &promises) else { return Err(promises) };
        plan.align(view, promises);
        if plan.is_unfit { Err(plan.into_promises()) } else { Ok(plan) }
    }

    fn promised(&self) -> impl Iterator<Item = (u64, &Promise)> {
        let promise = |seat: &Seat| self.entries[seat.entry].promise.as_ref();
        self.seats.iter().filter_map(move |seat| Some((seat.id, promise(seat)?)))
    }

    /// The promised start of each waiting job that has one, by id.
    pub fn starts(&self) -> impl Iterator<Item = (u64, f64)> {
        self.promised().map(|(id, promise)| (id, promise.start))
    }

    pub fn into_promises(self) -> HashMap<u64, Promise> {
        self.promised().map(|(id, promise)| (id, promise.clone())).collect()
    }

    /// Returns a plan with the running jobs only.
    fn new(view: &View<'_>, promises: &HashMap<u64, Promise>) -> Option<Self> {
        let in_service = view.occupancy.in_service();
        // A promise of a node that has gone out of service is void.
        let stands = |placement: &Placement| {
            is_whole(placement) && placement.held().all(|node| in_service.contains(node))
        };
        let mut all = promises.values().map(|promise| promise.placement.as_deref());
        let are_whole = all.all(|placement| placement.is_some_and(stands))
            && view.running.jobs().iter().all(|job| is_whole(&job.placement));
        if !are_whole || !suits(view) {
            return None;
        }
        let mut plan = KeptPlan {
            seats: Vec::new(),
            entries: Vec::new(),
            gone: Vec::new(),
            is_reached: Vec::new(),
            classes: WaitingClasses::default(),
            begins: Begins::new(view.occupancy.fabric()),
            held: HeldTimelines::new(view.occupancy),
            span: Span::new(view),
            is_unfit: false,
            passes: 0,
            changes: view.running.changes(),
            service: view.occupancy.service_changes(),
            rule: number_of(view.policy),
        };
        for job in view.running.jobs() {
            plan.hold(&job.placement, (f64::NEG_INFINITY, job.expected_end));
        }
        Some(plan)
    }

    /// Applies all changes since the last pass. Returns false if that is not possible.
    fn follow(&mut self, view: &View<'_>) -> bool {
        let is_same = !self.is_unfit
            && self.service == view.occupancy.service_changes()
            && self.rule == number_of(view.policy)
            && suits(view);
        let Some(changes) = view.running.changes_since(self.changes).filter(|_| is_same) else {
            return false;
        };
        if view.changed {
            self.held.forget_before(view.now);
        }
        for change in changes {
            if change.came {
                return false;
            }
            let parts = self.held.parts(&change.placement);
            self.take_back(&parts, (view.now, change.expected_end), view.now);
        }
        self.changes = view.running.changes();
        self.align(view, HashMap::new());
        !self.is_unfit
    }

    /// Gives each waiting job an entry, in queue order. A new entry takes the promise in `known`, if there is one.
    fn align(&mut self, view: &View<'_>, mut known: HashMap<u64, Promise>) {
        let mut before = view.out_of_order(&mut self.seats, |seat| seat.id);
        for waiting in &view.waiting[self.seats.len()..] {
            let request = &*waiting.request;
            let seat = before.remove(&request.id);
            let seat =
                seat.unwrap_or_else(|| self.new_seat(request, known.remove(&request.id), view));
            self.seats.push(seat);
        }
        for seat in before.into_values() {
            self.give_up(seat.entry, view.now);
            self.gone.push(seat.entry);
        }
        for (seat, waiting) in self.seats.iter_mut().zip(view.waiting).filter(|_| view.changed) {
            // A requeued job with the same id may ask for another number of nodes.
            self.is_unfit |= seat.nodes != waiting.nodes;
            if seat.walltime.total_cmp(&waiting.walltime).is_ne() {
                (seat.walltime, seat.start) = (waiting.walltime, None);
                self.is_unfit |= waiting.walltime.is_nan() || waiting.walltime < SHORTEST;
            }
        }
    }

    fn new_seat(&mut self, request: &Request, promise: Option<Promise>, view: &View<'_>) -> Seat {
        let suits = request.is_plain()
            && request.walltime >= SHORTEST
            && view.policy.room_helps(request) == RoomHelps::Always;
        let homes = LeafRuns::of(request, view.policy, view.occupancy).filter(|_| suits);
        self.is_unfit |= homes.is_none();
        let class = self.classes.of(request, homes.unwrap_or_default());
        let entry = PlannedJob { class, promise: None, is_own: false, in_own_leaves: None };
        let index = if let Some(index) = self.gone.pop() {
            self.entries[index] = entry;
            index
        } else {
            self.entries.push(entry);
            self.is_reached.push(true);
            self.entries.len() - 1
        };
        self.is_reached[index] = true;
        let promise = promise.filter(|promise| promise.whole_nodes == whole_nodes(request));
        let lasts_as_long =
            |promise: &&Promise| promise.end.total_cmp(&(promise.start + lasts(request))).is_eq();
        let start = promise.as_ref().filter(lasts_as_long).map(|promise| promise.start);
        if let Some(promise) = promise {
            self.keep(index, promise);
        }
        Seat {
            id: request.id,
            entry: index,
            class,
            nodes: request.nodes,
            walltime: request.walltime,
            start,
        }
    }

    fn hold(&mut self, placement: &Placement, when: (f64, f64)) {
        let parts = self.held.parts(placement);
        self.is_unfit |= !self.held.hold(&parts, when);
    }

    /// Gives a job a reservation.
    fn keep(&mut self, index: usize, promise: Promise) {
        if let Some(placement) = &promise.placement {
            self.hold(placement, (promise.start, promise.end));
        }
        let start = promise.start;
        self.entries[index].promise = Some(promise);
        if let Some(run) = self.run_of(index) {
            self.begins.insert(&run, (start, index));
        }
    }

    /// Removes the reservation of a job. The caller must still give back what it held.
    fn forget(&mut self, index: usize) -> Option<Promise> {
        let run = self.run_of(index);
        let promise = self.entries[index].promise.take()?;
        if let Some(run) = run {
            self.begins.remove(&run, (promise.start, index));
        }
        Some(promise)
    }

    /// The run of leaves that contains the reservation of a job.
    fn run_of(&self, index: usize) -> Option<Range<u32>> {
        let entry = &self.entries[index];
        let node = entry.promise.as_ref()?.placement.as_ref()?.held().next()?;
        self.classes.run_with(entry.class, self.held.fabric.group(1, node))
    }

    /// Removes the reservation of a job, gives back what it held, and records the opening.
    fn give_up(&mut self, index: usize, now: f64) {
        if let Some(Promise { start, end, placement: Some(placement), .. }) = self.forget(index) {
            let parts = self.held.parts(&placement);
            self.take_back(&parts, (start, end), now);
        }
    }

    /// Gives back what was held, and records the opening.
    fn take_back(&mut self, parts: &PlacementParts, when: (f64, f64), now: f64) {
        self.held.give_back(parts, when);
        self.note(parts, when, now);
    }

    /// Records where jobs may start after something was given back.
    fn note(&mut self, parts: &PlacementParts, (from, until): (f64, f64), now: f64) {
        let when = (from.max(now), until);
        if when.0 >= until {
            return;
        }
        let leaf = |&(leaf, bits): &(u32, u64)| {
            Opening::of_leaf(leaf, bits, when, self.held.openings(leaf, bits, when, now))
        };
        let group = |&(level, group): &(usize, GroupIndex)| {
            let openings = self.held.openings_of_group((level, group), when, now);
            Opening::of_leaves(self.held.leaves_of(level, group), when, openings)
        };
        let leaves = parts.leaves.iter().map(leaf);
        let openings: Vec<Opening> = leaves.chain(parts.groups.iter().map(group)).collect();
        self.classes.open(&openings, &mut self.held, now);
        for opening in &openings {
            for index in self.begins.reached(opening, now) {
                let entry = &mut self.entries[index];
                self.is_reached[index] |= entry.note(opening, self.classes.lasts(entry.class), now);
            }
        }
    }

    /// Starts and promises jobs in one pass over the queue.
    pub fn pass(&mut self, view: &mut View<'_>) -> Pass {
        self.span.state.set_demand(Arc::clone(view.occupancy.demand()));
        if view.changed {
            self.passes = (self.passes + 1) % PASSES;
            if self.passes == 0 {
                self.trim(view.now);
            }
        }
        let mut pass = Pass::default();
        let mut any_started = false;
        for index in 0..self.seats.len() {
            let may_change = self.may_change(index, view);
            if pass.reservation.is_some() && !may_change || !view.is_visible(index) {
                continue;
            }
            let Seat { entry, start: known, .. } = self.seats[index];
            if may_change {
                debug_assert!(known.is_none_or(|start| self.entries[entry].begins_at(start)));
                self.renew(entry, known, &view.waiting[index].request, view);
                self.is_reached[entry] = false;
            }
            let promise = self.entries[entry].promise.as_ref();
            let start = promise.map(|promise| promise.start);
            let placement = || promise.and_then(|promise| promise.placement.clone());
            let started = start.is_some_and(|start| start <= view.now)
                && placement().is_some_and(|placement| view.start(index, placement));
            let seat = &mut self.seats[index];
            (seat.start, seat.class) = (start, self.entries[entry].class);
            if started {
                any_started = true;
                self.forget(entry);
                self.gone.push(entry);
                self.seats[index].entry = usize::MAX;
            } else if pass.reservation.is_none() {
                let request = &view.waiting[index].request;
                let at = start.unwrap_or(f64::INFINITY);
                pass.reservation = Some(Reservation { id: request.id, at });
                let reason = view.policy.can_place(request, view.occupancy).err();
                pass.refusal = reason.map(|reason| (request.id, reason));
            }
        }
        if any_started {
            self.seats.retain(|seat| seat.entry != usize::MAX);
        }
        self.changes = view.running.changes();
        pass
    }

    /// Whether a job may start now or get an earlier reservation.
    fn may_change(&mut self, seat: usize, view: &View<'_>) -> bool {
        let seat = &self.seats[seat];
        let Some(start) = seat.start.filter(|&start| start > view.now) else { return true };
        view.changed
            && (self.is_reached[seat.entry]
                || self.classes.may_fit_before(seat.class, &mut self.held, start, view.now))
    }

    /// Shortens each class to the last reservation of its jobs.
    fn trim(&mut self, now: f64) {
        let mut last = vec![None; self.classes.len()];
        for seat in &self.seats {
            let entry = &self.entries[seat.entry];
            let start = entry.promise.as_ref().map_or(f64::NEG_INFINITY, |promise| promise.start);
            let last: &mut Option<f64> = &mut last[entry.class];
            *last = Some(last.map_or(start, |last| last.max(start)));
        }
        self.classes.trim(&last, &mut self.held, now);
    }

    /// Gives a job the earliest possible reservation. If it has one, which begins at `start`, only an earlier one
    /// replaces it.
    fn renew(&mut self, index: usize, start: Option<f64>, request: &Request, view: &View<'_>) {
        let entry = &mut self.entries[index];
        match start {
            Some(start) if start > view.now => {
                if !entry.is_own {
                    entry.in_own_leaves = Some((view.now, start));
                }
                self.improve(index, request, start, view);
            }
            Some(_) => self.choose_again(index, request, view),
            None => self.promise(index, request, view),
        }
        self.entries[index].is_own = true;
    }

    /// Gives the earliest reservation to a job without one, or with a void one.
    fn promise(&mut self, index: usize, request: &Request, view: &View<'_>) {
        self.give_up(index, view.now);
        self.entries[index].class = self.classes.like(self.entries[index].class, lasts(request));
        self.entries[index].in_own_leaves = None;
        if let Some(promise) = self.earliest(index, request, f64::INFINITY, None, view) {
            self.keep(index, promise);
        }
    }

    /// Lets the policy choose the nodes again when a reservation begins.
    fn choose_again(&mut self, index: usize, request: &Request, view: &View<'_>) {
        let Some(before) = self.forget(index) else { return };
        let Promise { start, end, placement: Some(placement), .. } = &before else { return };
        let parts = self.held.parts(placement);
        self.held.give_back(&parts, (*start, *end));
        let found = self.place(request, view.now, view.policy);
        if found.as_ref().is_none_or(|found| found.placement != before.placement) {
            self.note(&parts, (*start, *end), view.now);
        }
        match found {
            Some(promise) => self.keep(index, promise),
            None => self.promise(index, request, view),
        }
    }

    /// Replaces the reservation at `start` by an earlier one, if there is one.
    fn improve(&mut self, index: usize, request: &Request, start: f64, view: &View<'_>) {
        let entry = &mut self.entries[index];
        let class = entry.class;
        let in_own_leaves = entry.in_own_leaves.take().and_then(|(from, until)| {
            let run = self.run_of(index)?;
            let (from, until) = (from.max(view.now), until.min(start));
            let has_room = self.held.has_room_before(&run, self.classes.nodes(class), start);
            has_room.then_some(Window { run, from, until })
        });
        if in_own_leaves.is_none()
            && self.classes.earliest(class, &mut self.held, start, view.now).is_none()
        {
            return;
        }
        let placement = self.entries[index].promise.as_ref().and_then(|p| p.placement.clone());
        let Some(placement) = placement else { return };
        let parts = self.held.parts(&placement);
        let when = (start, start + lasts(request));
        self.held.give_back(&parts, when);
        match self.earliest(index, request, start, in_own_leaves, view) {
            Some(promise) => {
                self.forget(index);
                self.note(&parts, when, view.now);
                self.keep(index, promise);
            }
            None => self.is_unfit |= !self.held.hold(&parts, when),
        }
    }

    /// The earliest reservation before `limit`, searched where the job's class may fit and on the leaves of its own
    /// reservation.
    fn earliest(
        &mut self,
        index: usize,
        request: &Request,
        limit: f64,
        in_own_leaves: Option<Window>,
        view: &View<'_>,
    ) -> Option<Promise> {
        let class = self.entries[index].class;
        let shape = (request.nodes, lasts(request));
        let mut in_own_leaves = Windows::of(in_own_leaves);
        loop {
            let found = self.classes.earliest(class, &mut self.held, limit, view.now);
            let limit = found.unwrap_or(limit);
            let start = in_own_leaves.earliest(&mut self.held, shape, limit).or(found)?;
            if let Some(promise) = self.place(request, start, view.policy) {
                return Some(promise);
            }
            self.classes.pass_over(class, &self.held, start);
            in_own_leaves.pass_over(&self.held, start);
        }
    }

    /// The reservation that begins at `start`, if the policy finds a placement.
    fn place(&mut self, request: &Request, start: f64, policy: &dyn Policy) -> Option<Promise> {
        self.span.show(&self.held, (start, start + lasts(request)));
        let placement = policy.place(request, &self.span.state).ok()?;
        Some(Promise::new(request, start, Some(Arc::new(placement))))
    }
}
