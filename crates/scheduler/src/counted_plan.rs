//! Free nodes now and later, kept from one pass of conservative backfilling to the next, for a policy that only counts.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use topolane_placement::{Placement, Request};

use crate::promise::number_of;
use crate::queue::{Pass, Reservation};
use crate::queues::reservation::{Promise, SHORTEST, lasts, whole_nodes};
use crate::steps::Steps;
use crate::view::{View, Waiting};

/// Differences of times may be off by rounding, seconds.
const ROUNDING: f64 = 1e-3;

/// The number of classes without a waiting job that are kept in any case.
const SPARE: usize = 16;

/// A waiting job and its reservation.
#[derive(Debug)]
struct Entry {
    id: u64,
    nodes: i64,
    lasts: f64,
    /// Number of its class.
    class: usize,
    /// Infinite if it has no reservation.
    start: f64,
    end: f64,
    /// Whether this plan made the reservation: one that it took over may no longer fit.
    is_own: bool,
}

/// Jobs that ask for the same, by nodes, ascending: a list for each of what is known of them, since all are looked at often.
#[derive(Debug, Default)]
struct Classes {
    nodes: Vec<i64>,
    lasts: Vec<f64>,
    /// By class: before this time, seconds, no interval begins in which its nodes are free for as long as its jobs last.
    clear: Vec<f64>,
    numbers: Vec<usize>,
    /// By number: the place of a class in the lists.
    places: Vec<usize>,
    /// The longest that a job of any class lasts.
    longest: f64,
}

impl Classes {
    fn len(&self) -> usize {
        self.places.len()
    }

    /// The number of a class.
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

    /// The number of classes that ask for at most `nodes` nodes.
    fn up_to(&self, nodes: i64) -> usize {
        self.nodes.partition_point(|&fewer| fewer <= nodes)
    }

    /// Notes for some classes that their nodes are free from `begin` to `until` and perhaps before, but no earlier than `since`; what
    /// begins too early to meet `start` was known before.
    fn note(&mut self, some: Range<usize>, start: f64, (begin, until): (f64, f64), since: f64) {
        for (clear, lasts) in self.clear[some.clone()].iter_mut().zip(&self.lasts[some]) {
            let earliest = start - lasts - ROUNDING;
            let time = if since > earliest { since } else { earliest };
            let time = if begin + lasts <= until { time } else { f64::INFINITY };
            *clear = if time < *clear { time } else { *clear };
        }
    }
}

/// The plan for whole nodes under a policy that only counts. A job is given another reservation only where nodes are free for long
/// enough before it, or up to it.
pub(crate) struct CountedPlan {
    /// The waiting jobs in order.
    entries: Vec<Entry>,
    /// Nodes that are not held and not promised.
    idle: Steps,
    classes: Classes,
    /// Whether a job waits that it is not for.
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

/// Whether only numbers matter to those that run and to the policy.
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
        if !suits(view) {
            return Err(promises);
        }
        let mut plan = CountedPlan::new(view);
        plan.align(view, promises);
        if plan.is_unfit { Err(plan.into_promises()) } else { Ok(plan) }
    }

    /// The start that each waiting job is promised.
    pub fn starts(&self) -> impl Iterator<Item = (u64, f64)> {
        let promised = self.entries.iter().filter(|entry| entry.start < f64::INFINITY);
        promised.map(|entry| (entry.id, entry.start))
    }

    pub fn into_promises(self) -> HashMap<u64, Promise> {
        let promised = self.entries.into_iter().filter(|entry| entry.start < f64::INFINITY);
        let promise = |entry: Entry| Promise {
            start: entry.start,
            end: entry.end,
            whole_nodes: entry.nodes,
            placement: None,
        };
        promised.map(|entry| (entry.id, promise(entry))).collect()
    }

    /// A plan of what runs.
    fn new(view: &View<'_>) -> Self {
        let mut idle = Steps::new(view.occupancy.idle_nodes().into());
        for job in view.running.jobs() {
            idle.add((job.expected_end, f64::INFINITY), nodes_in_service(&job.placement, view));
        }
        idle.forget_before(view.now);
        CountedPlan {
            entries: Vec::new(),
            idle,
            classes: Classes::default(),
            is_unfit: false,
            changes: view.running.changes(),
            service: view.occupancy.service_changes(),
            rule: number_of(view.policy),
        }
    }

    /// Takes in what has changed since the last pass; false if it cannot.
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
            self.give_back((entry.start, entry.end), entry.nodes, view.now);
        }
        for (index, waiting) in view.waiting.iter().enumerate().filter(|_| view.changed) {
            // One that has come again under its old number may ask for other nodes.
            if self.entries[index].nodes != whole_nodes_of(waiting) {
                let fresh = self.new_entry(&waiting.request, None, view);
                let before = std::mem::replace(&mut self.entries[index], fresh);
                self.give_back((before.start, before.end), before.nodes, view.now);
            }
        }
    }

    fn new_entry(&mut self, request: &Request, promise: Option<Promise>, view: &View<'_>) -> Entry {
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
        Entry { id: request.id, nodes, lasts, class, start, end, is_own: false }
    }

    /// Forgets the classes of which no job waits any more.
    fn forget_classes(&mut self) {
        let mut before = std::mem::take(&mut self.classes);
        for entry in &mut self.entries {
            let clear = *before.clear_of(entry.class);
            entry.class = self.classes.number(entry.nodes, entry.lasts);
            *self.classes.clear_of(entry.class) = clear;
        }
    }

    /// Gives back nodes from now on, or from later.
    fn give_back(&mut self, (start, end): (f64, f64), nodes: i64, now: f64) {
        let when = (start.max(now), end);
        self.idle.add(when, nodes);
        self.note_free(when);
    }

    /// Notes for every class where nodes may be free for long enough around a time at which nodes have become free.
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
            // One that lasts long enough for all is not followed to its begin.
            let since = if is_longest { f64::NEG_INFINITY } else { begin };
            let narrower = self.classes.up_to(next).min(wider);
            self.classes.note(narrower..wider, start, (begin, until), since);
            wider = narrower;
            level = next;
        }
    }

    /// One pass over the queue.
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

    /// Gives a job the earliest reservation.
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

    /// The earliest time before that of its reservation at which a job fits.
    fn earlier(&mut self, index: usize) -> Option<f64> {
        let &Entry { nodes, lasts, class, start, .. } = &self.entries[index];
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
