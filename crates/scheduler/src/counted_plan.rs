//! The plan of free nodes over time, kept between passes of conservative backfilling, for policies that only count
//! nodes.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use topolane_placement::{Placement, Request};

use crate::promise::number_of;
use crate::queue::{Pass, Reservation};
use crate::queues::reservation::{Promise, SHORTEST, lasts, whole_nodes};
use crate::steps::Steps;
use crate::view::{View, Waiting};

/// Differences of times may be off by rounding errors; tolerance in seconds.
const ROUNDING: f64 = 1e-3;

/// The number of classes without a waiting job that are always kept.
const SPARE: usize = 16;

/// A waiting job and its reservation.
#[derive(Debug)]
struct CountedJob {
    id: u64,
    nodes: i64,
    lasts: f64,
    /// The index of its class.
    class: usize,
    /// The promised start; infinite if the job has no reservation.
    start: f64,
    end: f64,
    /// Whether this plan made the reservation; one taken over from elsewhere may no longer fit.
    is_own: bool,
}

/// Classes of jobs with equal numbers of nodes and equal walltimes, in ascending order of nodes. Each property has its
/// own list, because searches read all entries of one property.
#[derive(Debug, Default)]
struct CountedClasses {
    nodes: Vec<i64>,
    lasts: Vec<f64>,
    /// By class: the earliest time, in seconds, at which an interval may begin in which its nodes are free for long
    /// enough.
    clear: Vec<f64>,
    numbers: Vec<usize>,
    /// For each class number, its position in the lists.
    places: Vec<usize>,
    /// The longest walltime of any class.
    longest: f64,
}

impl CountedClasses {
    fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns the number of a class, adding it if it is new.
    fn number(&mut self, nodes: i64, lasts: f64) -> usize {
        let first = self.nodes.partition_point(|&fewer| fewer < nodes);
        let alike = first..self.up_to(nodes);
        let is_same = |&place: &usize| self.lasts[place].total_cmp(&lasts).is_eq();
        if let Some(place) = alike.into_iter().find(is_same) {
            return self.numbers[place];
        }
        let number = self.places.len();
        self.nodes.insert(first, nodes);
        self.lasts.insert(first, lasts);
        self.clear.insert(first, f64::NEG_INFINITY);
        self.numbers.insert(first, number);
        self.places.iter_mut().filter(|place| **place >= first).for_each(|place| *place += 1);
        self.places.push(first);
        self.longest = self.longest.max(lasts);
        number
    }

    fn clear_of(&mut self, number: usize) -> &mut f64 {
        &mut self.clear[self.places[number]]
    }

    /// The number of classes with at most `nodes` nodes.
    fn up_to(&self, nodes: i64) -> usize {
        self.nodes.partition_point(|&fewer| fewer <= nodes)
    }

    /// Records for some classes that their nodes are free from `begin` to `until`, and perhaps before, but no earlier
    /// than `since`. Intervals that begin too early to affect `start` are known already.
    fn note(&mut self, some: Range<usize>, start: f64, (begin, until): (f64, f64), since: f64) {
        for (clear, lasts) in self.clear[some.clone()].iter_mut().zip(&self.lasts[some]) {
            let earliest = start - lasts - ROUNDING;
            let time = if since > earliest { since } else { earliest };
            let time = if begin + lasts <= until { time } else { f64::INFINITY };
            *clear = if time < *clear { time } else { *clear };
        }
    }
}

/// The plan for whole nodes under a policy that only counts. A job gets another reservation only if nodes become free
/// for long enough before it.
pub(crate) struct CountedPlan {
    /// The waiting jobs in queue order.
    entries: Vec<CountedJob>,
    /// Nodes over time that are neither held nor promised.
    idle: Steps,
    classes: CountedClasses,
    /// Whether a waiting job does not fit this kind of plan.
    is_unfit: bool,
    changes: u64,
    service: u64,
    rule: usize,
}

impl fmt::Debug for CountedPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let promised = self.entries.iter().map(|entry| (entry.id, (entry.start, entry.end)));
        f.debug_map().entries(promised).finish()
    }
}

/// Whether the policy and all running jobs depend only on the number of nodes.
fn suits(view: &View<'_>) -> bool {
    view.policy.traits().count_only
        && view.occupancy.is_joined()
        && !view.running.any_sharing()
        && view.running.times().first().is_none_or(|&end| end > view.now)
}

fn whole_nodes_of(waiting: &Waiting) -> i64 {
    if waiting.whole { waiting.nodes.into() } else { 0 }
}

fn nodes_in_service(placement: &Placement, view: &View<'_>) -> i64 {
    let in_service = view.occupancy.in_service();
    let held = placement.held().filter(|&node| in_service.contains(node)).count();
    i64::from(held as u32)
}

impl CountedPlan {
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
        if !suits(view) {
            return Err(promises);
        }
        let mut plan = CountedPlan::new(view);
        plan.align(view, promises);
        if plan.is_unfit { Err(plan.into_promises()) } else { Ok(plan) }
    }

    /// The promised start of each waiting job that has one, by id.
    pub fn starts(&self) -> impl Iterator<Item = (u64, f64)> {
        let promised = self.entries.iter().filter(|entry| entry.start < f64::INFINITY);
        promised.map(|entry| (entry.id, entry.start))
    }

    pub fn into_promises(self) -> HashMap<u64, Promise> {
        let promised = self.entries.into_iter().filter(|entry| entry.start < f64::INFINITY);
        let promise = |entry: CountedJob| Promise {
            start: entry.start,
            end: entry.end,
            whole_nodes: entry.nodes,
            placement: None,
        };
        promised.map(|entry| (entry.id, promise(entry))).collect()
    }

    /// Returns a plan with the running jobs only.
    fn new(view: &View<'_>) -> Self {
        let mut idle = Steps::new(view.occupancy.idle_nodes().into());
        for job in view.running.jobs() {
            idle.add((job.expected_end, f64::INFINITY), nodes_in_service(&job.placement, view));
        }
        idle.forget_before(view.now);
        CountedPlan {
            entries: Vec::new(),
            idle,
            classes: CountedClasses::default(),
            is_unfit: false,
            changes: view.running.changes(),
            service: view.occupancy.service_changes(),
            rule: number_of(view.policy),
        }
    }

    /// Applies all changes since the last pass. Returns false if that is not possible.
    fn follow(&mut self, view: &View<'_>) -> bool {
        let is_same = self.service == view.occupancy.service_changes()
            && self.rule == number_of(view.policy)
            && suits(view);
        let Some(changes) = view.running.changes_since(self.changes).filter(|_| is_same) else {
            return false;
        };
        self.idle.forget_before(view.now);
        for change in changes {
            if change.came {
                return false;
            }
            let nodes = nodes_in_service(&change.placement, view);
            self.give_back((view.now, change.expected_end), nodes, view.now);
        }
        self.changes = view.running.changes();
        self.align(view, HashMap::new());
        if self.classes.len() > 2 * self.entries.len() + SPARE {
            self.forget_classes();
        }
        !self.is_unfit
    }

    /// Gives each waiting job an entry, in queue order. A new entry takes the promise in `known`, if there is one.
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
            self.give_back((entry.start, entry.end), entry.nodes, view.now);
        }
        for (index, waiting) in view.waiting.iter().enumerate().filter(|_| view.changed) {
            // A requeued job with the same id may ask for another number of nodes.
            if self.entries[index].nodes != whole_nodes_of(waiting) {
                let fresh = self.new_entry(&waiting.request, None, view);
                let before = std::mem::replace(&mut self.entries[index], fresh);
                self.give_back((before.start, before.end), before.nodes, view.now);
            }
        }
    }

    fn new_entry(
        &mut self,
        request: &Request,
        promise: Option<Promise>,
        view: &View<'_>,
    ) -> CountedJob {
        self.is_unfit |= !request.is_plain()
            || request.walltime.is_nan()
            || request.walltime < SHORTEST
            || !view.policy.counts_only(request);
        let (nodes, lasts) = (whole_nodes(request), lasts(request));
        let promise = promise.filter(|promise| promise.whole_nodes == nodes);
        let (start, end) =
            promise.map_or((f64::INFINITY, f64::INFINITY), |promise| (promise.start, promise.end));
        self.idle.add((start.max(view.now), end), -nodes);
        let class = self.classes.number(nodes, lasts);
        CountedJob { id: request.id, nodes, lasts, class, start, end, is_own: false }
    }

    /// Drops the classes that no waiting job uses.
    fn forget_classes(&mut self) {
        let mut before = std::mem::take(&mut self.classes);
        for entry in &mut self.entries {
            let clear = *before.clear_of(entry.class);
            entry.class = self.classes.number(entry.nodes, entry.lasts);
            *self.classes.clear_of(entry.class) = clear;
        }
    }

    /// Gives back nodes from now or from `start`, if that is later.
    fn give_back(&mut self, (start, end): (f64, f64), nodes: i64, now: f64) {
        let when = (start.max(now), end);
        self.idle.add(when, nodes);
        self.note_free(when);
    }

    /// Records for every class where nodes may be free for long enough around a time at which nodes became free.
    fn note_free(&mut self, (start, end): (f64, f64)) {
        if start >= end {
            return;
        }
        let mut level = self.idle.most(start, end);
        let (mut begin, mut until) = (start, end);
        let mut backward = self.idle.backward(start).peekable();
        let mut forward = self.idle.forward(end).peekable();
        let mut wider = self.classes.up_to(level);
        let fewest = self.classes.nodes.first().copied().unwrap_or(0);
        let enough = self.classes.longest + ROUNDING;
        while wider > 0 && level >= fewest {
            while let Some((time, _)) =
                backward.next_if(|&(_, free)| free >= level && until - begin < enough)
            {
                begin = time;
            }
            while let Some((time, _)) =
                forward.next_if(|&(_, free)| free >= level && until - begin < enough)
            {
                until = time;
            }
            let is_longest = until - begin >= enough;
            let side = |step: Option<&(f64, i64)>| step.map_or(0, |step| step.1);
            let lower = side(backward.peek()).max(side(forward.peek()));
            let next = if is_longest { 0 } else { lower.min(level - 1) };
            // If the interval is long enough for all classes, its beginning does not matter.
            let since = if is_longest { f64::NEG_INFINITY } else { begin };
            let narrower = self.classes.up_to(next).min(wider);
            self.classes.note(narrower..wider, start, (begin, until), since);
            wider = narrower;
            level = next;
        }
    }

    /// Starts and promises jobs in one pass over the queue.
    pub fn pass(&mut self, view: &mut View<'_>) -> Pass {
        let mut pass = Pass::default();
        let mut started = Vec::new();
        for index in 0..self.entries.len() {
            if !view.is_visible(index) {
                continue;
            }
            let start = self.entries[index].start;
            if view.changed || start <= view.now || start == f64::INFINITY {
                self.renew(index, view);
            }
            let at = self.entries[index].start;
            if at <= view.now && view.place_and_start(index).is_ok() {
                started.push(index);
            } else if pass.reservation.is_none() {
                let request = &view.waiting[index].request;
                pass.reservation = Some(Reservation { id: request.id, at });
                let reason = view.policy.can_place(request, view.occupancy).err();
                pass.refusal = reason.map(|reason| (request.id, reason));
            }
        }
        for index in started.into_iter().rev() {
            self.entries.remove(index);
        }
        self.changes = view.running.changes();
        pass
    }

    /// Gives a job the earliest possible reservation.
    fn renew(&mut self, index: usize, view: &View<'_>) {
        let lasts = view.waiting[index].walltime.max(SHORTEST);
        let entry = &self.entries[index];
        let (nodes, start, end) = (entry.nodes, entry.start, entry.end);
        let stands = entry.is_own
            && start >= view.now
            && start < f64::INFINITY
            && entry.lasts.total_cmp(&lasts).is_eq();
        let found = if stands {
            let Some(found) = self.earlier(index) else { return };
            self.idle.add((start, end), nodes);
            found
        } else {
            self.give_back((start, end), nodes, view.now);
            let class = self.classes.number(nodes, lasts);
            (self.entries[index].class, self.entries[index].lasts) = (class, lasts);
            let from = self.classes.clear_of(class).max(view.now);
            let found = self.idle.earliest(nodes, lasts, (from, f64::INFINITY));
            *self.classes.clear_of(class) = found;
            found
        };
        let until = found + lasts;
        self.idle.add((found, until), -nodes);
        let entry = &mut self.entries[index];
        (entry.start, entry.end, entry.is_own) = (found, until, true);
        if stands {
            self.note_free((start.max(until), end));
        }
    }

    /// The earliest time before its reservation at which the job fits; `None` if there is none.
    fn earlier(&mut self, index: usize) -> Option<f64> {
        let &CountedJob { nodes, lasts, class, start, .. } = &self.entries[index];
        let clear = self.classes.clear_of(class);
        let mut found = f64::INFINITY;
        if *clear < start {
            found = self.idle.earliest(nodes, lasts, (*clear, start));
            *clear = found.min(start);
        }
        if self.idle.free_before(start) >= nodes {
            found = found.min(self.idle.free_since(start, nodes));
        }
        (found < start).then_some(found)
    }
}
