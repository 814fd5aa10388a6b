//! All that is held now and promised for later, kept from one pass of conservative backfilling to the next.

mod choice;
mod held;
mod homes;
mod news;
mod span;
mod windows;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use topolane_placement::{Placement, Policy, Request, RoomHelps};

use crate::promise::number_of;
use crate::queue::{Pass, Reservation};
use crate::queues::reservation::{Promise, SHORTEST, lasts};
use crate::timeline::MOST_NODES;
use crate::view::View;
use choice::Choice;
use held::{Held, Parts};
use homes::Homes;
use news::{Item, News};
use span::Span;
use windows::{Window, Windows};

/// Times are compared with differences of times; those may be off by rounding, seconds.
const ROUNDING: f64 = 1e-3;

/// A waiting job and its reservation.
#[derive(Debug)]
struct Entry {
    id: u64,
    nodes: u32,
    lasts: f64,
    homes: Arc<Homes>,
    promise: Option<Promise>,
    /// No earlier time would do, and the policy would choose the same nodes, as far as the first `seen` news go. `None`: not known.
    seen: Option<u64>,
    /// What the policy chose the nodes from.
    choice: Choice,
}

/// What the news mean for a reservation.
struct Prospects {
    /// Where the job may start earlier.
    windows: Windows,
    /// Whether the policy may choose other nodes at the same time.
    chooses_anew: bool,
    /// Leaves of other groups that may not be as they were when the policy chose.
    changed: Vec<u32>,
}

/// The plan for whole nodes under a policy that isolates jobs without giving them links by number, and that more room never harms. It
/// knows what came and went since it last looked at each reservation, and looks again only where that matters.
pub(crate) struct KeptPlan {
    /// The waiting jobs in order.
    entries: Vec<Entry>,
    homes: Vec<Arc<Homes>>,
    held: Held,
    span: Span,
    news: News,
    /// Whether it cannot be kept: two jobs hold the same at one time, or a job is not one that it is for.
    is_unfit: bool,
    changes: u64,
    service: u64,
    rule: usize,
}

impl fmt::Debug for KeptPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let promised =
            self.entries.iter().filter_map(|entry| Some((entry.id, entry.promise.as_ref()?)));
        f.debug_map().entries(promised).finish()
    }
}

/// Whether the policy and the state are such that a plan can be kept.
fn suits(view: &View<'_>) -> bool {
    let (policy, occupancy, running) = (view.policy, &*view.occupancy, &*view.running);
    let fabric = occupancy.fabric();
    policy.traits().isolates
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
    /// The plan that was kept, brought up to date, or a new one with these promises; these if there can be none.
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

    /// The start that each waiting job is promised.
    pub fn starts(&self) -> impl Iterator<Item = (u64, f64)> {
        self.entries.iter().filter_map(|entry| Some((entry.id, entry.promise.as_ref()?.start)))
    }

    pub fn into_promises(self) -> HashMap<u64, Promise> {
        let promised = |entry: Entry| Some((entry.id, entry.promise?));
        self.entries.into_iter().filter_map(promised).collect()
    }

    /// A plan of what runs.
    fn new(view: &View<'_>, promises: &HashMap<u64, Promise>) -> Option<Self> {
        let in_service = view.occupancy.in_service();
        // What is promised on a node that has gone out of service is void.
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
            entries: Vec::new(),
            homes: Vec::new(),
            held: Held::new(view.occupancy),
            span: Span::new(view),
            news: News::default(),
            is_unfit: false,
            changes: view.running.changes(),
            service: view.occupancy.service_changes(),
            rule: number_of(view.policy),
        };
        for job in view.running.jobs() {
            plan.hold(&job.placement, (f64::NEG_INFINITY, job.expected_end));
        }
        Some(plan)
    }

    /// Takes in what has changed since the last pass; false if it cannot.
    fn follow(&mut self, view: &View<'_>) -> bool {
        let is_same = !self.is_unfit
            && self.service == view.occupancy.service_changes()
            && self.rule == number_of(view.policy)
            && suits(view);
        let Some(changes) = view.running.changes_since(self.changes).filter(|_| is_same) else {
            return false;
        };
        if view.changed {
            self.news.forget();
            self.held.forget_before(view.now);
        }
        for change in changes {
            if change.came {
                return false;
            }
            self.take_back(&change.placement, (view.now, change.expected_end), view.now);
        }
        self.changes = view.running.changes();
        self.align(view, HashMap::new());
        !self.is_unfit
    }

    /// Has an entry for each waiting job, in order; a new one has the promise that is known of it.
    fn align(&mut self, view: &View<'_>, mut known: HashMap<u64, Promise>) {
        let mut before = view.out_of_order(&mut self.entries, |entry| entry.id);
        for waiting in &view.waiting[self.entries.len()..] {
            let request = &*waiting.request;
            let entry = before.remove(&request.id);
            let entry =
                entry.unwrap_or_else(|| self.new_entry(request, known.remove(&request.id), view));
            self.entries.push(entry);
        }
        for entry in before.into_values() {
            if let Some(Promise { start, end, placement: Some(placement), .. }) = entry.promise {
                self.take_back(&placement, (start, end), view.now);
            }
        }
    }

    fn new_entry(&mut self, request: &Request, promise: Option<Promise>, view: &View<'_>) -> Entry {
        let suits = request.is_plain()
            && request.walltime >= SHORTEST
            && view.policy.room_helps(request) == RoomHelps::Always;
        let homes = Homes::of(request, view.policy, view.occupancy).filter(|_| suits);
        self.is_unfit |= homes.is_none();
        let homes = homes.unwrap_or_default();
        let like = self.homes.iter().find(|like| ***like == homes).cloned();
        let homes = like.unwrap_or_else(|| {
            self.homes.push(Arc::new(homes));
            Arc::clone(&self.homes[self.homes.len() - 1])
        });
        if let Some(Promise { start, end, placement: Some(placement), .. }) = &promise {
            self.hold(placement, (*start, *end));
        }
        Entry {
            id: request.id,
            nodes: request.nodes,
            lasts: lasts(request),
            homes,
            promise,
            seen: None,
            choice: Choice::default(),
        }
    }

    fn hold(&mut self, placement: &Placement, when: (f64, f64)) {
        let parts = self.held.parts(placement);
        self.is_unfit |= !self.held.hold(&parts, when);
    }

    /// Gives back what a placement holds, and notes it.
    fn take_back(&mut self, placement: &Placement, when: (f64, f64), now: f64) {
        let parts = self.held.parts(placement);
        self.held.give_back(&parts, when);
        self.news.note(&self.held, &parts, when, true, now);
    }

    /// One pass over the queue.
    pub fn pass(&mut self, view: &mut View<'_>) -> Pass {
        self.span.state.set_demand(Arc::clone(view.occupancy.demand()));
        let mut pass = Pass::default();
        let mut any_started = false;
        for index in 0..self.entries.len() {
            if !view.is_visible(index) {
                continue;
            }
            let entry = &self.entries[index];
            let is_due = entry.promise.as_ref().is_none_or(|promise| promise.start <= view.now);
            if view.changed || is_due {
                self.renew(index, view);
            }
            let promise = self.entries[index].promise.as_ref();
            let at = promise.map_or(f64::INFINITY, |promise| promise.start);
            let placement = promise.and_then(|promise| promise.placement.clone());
            let started =
                at <= view.now && placement.is_some_and(|placement| view.start(index, placement));
            if started {
                any_started = true;
                self.entries[index].promise = None;
                self.entries[index].seen = Some(u64::MAX);
            } else if pass.reservation.is_none() {
                let request = &view.waiting[index].request;
                pass.reservation = Some(Reservation { id: request.id, at });
                let reason = view.policy.can_place(request, view.occupancy).err();
                pass.refusal = reason.map(|reason| (request.id, reason));
            }
        }
        if any_started {
            self.entries.retain(|entry| entry.seen != Some(u64::MAX));
        }
        self.changes = view.running.changes();
        pass
    }

    /// Gives a job the earliest reservation, if it may have a better one.
    fn renew(&mut self, index: usize, view: &View<'_>) {
        let request = &*view.waiting[index].request;
        let entry = &self.entries[index];
        let is_known = entry.seen.is_some() && entry.lasts.total_cmp(&lasts(request)).is_eq();
        match entry.promise.as_ref().filter(|promise| promise.start >= view.now && is_known) {
            Some(promise) => {
                let start = promise.start;
                self.improve(index, request, start, view);
            }
            None => self.promise_anew(index, request, view),
        }
        self.entries[index].seen = Some(self.news.count());
    }

    /// The earliest reservation of a job of which nothing is known.
    fn promise_anew(&mut self, index: usize, request: &Request, view: &View<'_>) {
        let entry = &mut self.entries[index];
        entry.lasts = lasts(request);
        let everywhere = Windows::from(&entry.homes.runs, view.now);
        self.replace(index, request, everywhere, None, view);
    }

    /// An earlier reservation than at `start`, or other nodes at that time, if the news allow for it.
    fn improve(&mut self, index: usize, request: &Request, start: f64, view: &View<'_>) {
        let mut prospects = self.look(index, start, view.now);
        let entry = &mut self.entries[index];
        if !prospects.chooses_anew && !prospects.changed.is_empty() {
            prospects.chooses_anew = entry.choice.goes_elsewhere(
                &prospects.changed,
                request,
                view.policy,
                &self.held,
                (start, start + entry.lasts),
            );
        }
        if !prospects.windows.is_empty() || prospects.chooses_anew {
            let at = Some((start, prospects.chooses_anew));
            self.replace(index, request, prospects.windows, at, view);
        }
    }

    /// Gives a job the earliest reservation in windows, else at the time that is known, if it has one. There it keeps its nodes, if the
    /// policy does not choose anew.
    fn replace(
        &mut self,
        index: usize,
        request: &Request,
        windows: Windows,
        at: Option<(f64, bool)>,
        view: &View<'_>,
    ) {
        let before = self.entries[index].promise.take();
        let held = before.as_ref().and_then(|promise| {
            let placement = promise.placement.as_ref()?;
            Some((self.held.parts(placement), (promise.start, promise.end)))
        });
        if let Some((parts, when)) = &held {
            self.held.give_back(parts, *when);
        }
        let found = self.earliest(windows, request, view);
        let promise = match (found, at) {
            (Some(start), _) | (None, Some((start, true))) => {
                self.place(index, request, start, view.policy)
            }
            (None, Some(_)) => before.clone(),
            (None, None) => None,
        };
        self.note_change(held.as_ref(), promise.as_ref(), before == promise, view.now);
        self.entries[index].promise = promise;
    }

    /// Holds what is promised instead of what was held, and notes both if they differ.
    fn note_change(
        &mut self,
        before: Option<&(Parts, (f64, f64))>,
        promise: Option<&Promise>,
        is_same: bool,
        now: f64,
    ) {
        if let Some((parts, when)) = before.filter(|_| !is_same) {
            self.news.note(&self.held, parts, *when, true, now);
        }
        if let Some(Promise { start, end, placement: Some(placement), .. }) = promise {
            let parts = self.held.parts(placement);
            let when = (*start, *end);
            if !is_same {
                self.news.note(&self.held, &parts, when, false, now);
            }
            self.is_unfit |= !self.held.hold(&parts, when);
        }
    }

    /// What the news mean for the reservation of a job.
    fn look(&mut self, index: usize, start: f64, now: f64) -> Prospects {
        let entry = &self.entries[index];
        let own =
            entry.promise.as_ref().and_then(|promise| promise.placement.as_ref()?.held().next());
        let own = own.map(|node| self.held.fabric.group(1, node));
        let (mut near, mut others) = (Vec::new(), Vec::new());
        let (mut chooses_anew, mut changed) = (false, Vec::new());
        let mut next = self.news.first(entry.seen);
        while let Some(number) = self.news.next_about(next, start, entry.lasts - ROUNDING) {
            next = number + 1;
            let item = self.news.item(number);
            if is_about(item, (start, start + entry.lasts)) {
                let is_outside = item.is_of_leaf && entry.choice.is_outside(item.leaves.start);
                chooses_anew |= !is_outside;
                changed.extend(is_outside.then_some(item.leaves.start));
            }
            let from = item.openings.first.max(item.from - entry.lasts - 1.0).max(now);
            let until = item.until.min(start);
            if !item.has_gone || from >= until {
                continue;
            }
            let fits = fits(item, entry, self.held.crossing_matters());
            let (leaves, is_near) = (item.leaves.clone(), item.openings.last >= start);
            let on_one_leaf = item.openings.with_nodes.len() >= entry.nodes as usize;
            for run in entry.homes.with(&leaves) {
                let window = Window { run: run.clone(), from, until };
                if is_near && own.is_some_and(|own| run.contains(&own)) {
                    near.push(window.clone());
                }
                if fits
                    && (on_one_leaf
                        || self.news.most_room(number, &self.held, run, entry.lasts) >= entry.nodes)
                {
                    others.push(window);
                }
            }
        }
        let windows = self.with_room(&self.entries[index], near, others, start);
        Prospects { windows, chooses_anew, changed }
    }

    /// The windows in which a job may find room. In those that are near, what the job holds itself may be in its way.
    fn with_room(
        &self,
        entry: &Entry,
        near: Vec<Window>,
        others: Vec<Window>,
        start: f64,
    ) -> Windows {
        let has_room = |window: &Window| self.held.has_room_before(&window.run, entry.nodes, start);
        let mut windows = Windows::joined(others);
        windows.keep_with_room(&self.held, (entry.nodes, entry.lasts));
        if near.first().is_some_and(has_room) {
            windows.and(Windows::joined(near))
        } else {
            windows
        }
    }

    /// The earliest time in windows at which the policy finds a place.
    fn earliest(
        &mut self,
        mut windows: Windows,
        request: &Request,
        view: &View<'_>,
    ) -> Option<f64> {
        let shape = (request.nodes, lasts(request));
        loop {
            let start = windows.earliest(&self.held, shape)?;
            self.span.show(&self.held, (start, start + shape.1));
            if view.policy.can_place(request, &self.span.state).is_ok() {
                return Some(start);
            }
            windows.pass_over(&self.held, start);
        }
    }

    /// The reservation from a time on at which there is a place.
    fn place(
        &mut self,
        index: usize,
        request: &Request,
        start: f64,
        policy: &dyn Policy,
    ) -> Option<Promise> {
        let when = (start, start + lasts(request));
        self.span.show(&self.held, when);
        let placement = policy.place(request, &self.span.state).ok()?;
        self.entries[index].choice =
            Choice::of(request, policy, &self.held, &self.span.leaves, when);
        Some(Promise::new(request, start, Some(Arc::new(placement))))
    }
}

/// Whether something that came or went may be free, or have been, all of a span of time.
fn is_about(item: &Item, (start, end): (f64, f64)) -> bool {
    let open = &item.openings;
    open.longest >= end - start - ROUNDING
        && item.from < end
        && item.until > start
        && open.first <= start
        && open.last >= end
}

/// Whether there may be room for a job where something has gone.
fn fits(item: &Item, entry: &Entry, crossing_matters: bool) -> bool {
    let (open, lasts) = (&item.openings, entry.lasts - ROUNDING);
    let many = open.with_nodes.get(entry.nodes as usize - 1);
    let crosses = if crossing_matters { open.uncrossed } else { open.longest };
    many.is_some_and(|&longest| longest >= lasts) || !entry.homes.are_leaves && crosses >= lasts
}
