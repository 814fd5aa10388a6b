//! All that is held now and promised for later, kept from one pass of conservative backfilling to the next.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use topolane_fabric::{Fabric, GroupIndex};
use topolane_placement::{Occupancy, Placement, Policy, Request, RoomHelps};

use crate::promise::number_of;
use crate::queue::{Pass, Reservation};
use crate::queues::reservation::{Promise, SHORTEST, lasts};
use crate::timeline::{CROSSED, MOST_NODES, Openings, Timeline};
use crate::view::{View, Waiting};

/// Times are compared with differences of times; those may be off by rounding, seconds.
const ROUNDING: f64 = 1e-3;

/// For how long nodes are free, at least, seconds: for rough answers.
const SPANS: [f64; 4] = [0.0, 3600.0, 4.0 * 3600.0, 12.0 * 3600.0];

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
}

/// Runs of leaves one of which must hold the whole job, ascending.
#[derive(Debug, PartialEq, Eq)]
struct Homes {
    runs: Vec<Range<u32>>,
    /// Whether each is one leaf.
    are_leaves: bool,
}

/// Something came or went.
#[derive(Debug)]
struct News {
    leaves: Range<u32>,
    /// When.
    from: f64,
    until: f64,
    has_gone: bool,
    /// What is free around it without it.
    openings: Openings,
}

#[derive(Debug, Clone, Copy)]
struct Reach {
    first: f64,
    last: f64,
    longest: f64,
}

/// The most nodes of a run of leaves that are free together for each of [`SPANS`] at a time that meets some news, on leaves that no
/// job crosses; as far as it was asked.
type Rooms = Vec<(Range<u32>, [Option<u32>; SPANS.len()])>;

/// Where and when a job may fit that did not fit before.
#[derive(Debug, Clone)]
struct Window {
    run: Range<u32>,
    from: f64,
    until: f64,
    /// Whether what the job has been promised may be in its own way there.
    is_near: bool,
}

/// What is held on the leaves and of the groups above by one placement.
#[derive(Debug, Default)]
struct Parts {
    leaves: Vec<(u32, u64)>,
    groups: Vec<(usize, GroupIndex)>,
}

/// The plan for whole nodes under a policy that isolates jobs without giving them links by number, and that more room never harms. It
/// knows what came and went since it last looked at each reservation, and looks again only where that matters.
pub(crate) struct KeptPlan {
    fabric: Arc<Fabric>,
    /// The waiting jobs in order.
    entries: Vec<Entry>,
    /// Nodes in service of every leaf.
    nodes: Vec<u64>,
    leaves: Vec<Timeline>,
    /// When a job crosses each group, by level; empty for leaves and below.
    groups: Vec<Vec<Timeline>>,
    /// Whether a leaf that a job crosses is of no use to another that crosses leaves.
    crossing_matters: bool,
    /// A state that shows what is held at any time of a span, and what it shows.
    span: Occupancy,
    shown: Vec<u64>,
    shown_groups: Vec<Vec<bool>>,
    homes: Vec<Arc<Homes>>,
    news: Vec<News>,
    /// For each of the news the first and the last moment of what is open around it, and for how long any of it is: all that most
    /// jobs need to know of it.
    reaches: Vec<Reach>,
    rooms: Vec<Rooms>,
    /// News before those, and all there were when the last pass over all jobs began.
    forgotten: u64,
    before_last: u64,
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

impl Homes {
    fn of(request: &Request, policy: &dyn Policy, occupancy: &Occupancy) -> Option<Self> {
        let fabric = occupancy.fabric();
        let homes = policy.homes(request, occupancy).filter(|homes| homes.part == request.nodes)?;
        let leaf = |node: Option<&u32>| node.map(|&node| fabric.group(1, node));
        let run = |set: &Vec<u32>| Some(leaf(set.iter().min())?..leaf(set.iter().max())? + 1);
        let mut runs: Vec<Range<u32>> = homes.sets.iter().filter_map(run).collect();
        runs.sort_unstable_by_key(|run| run.start);
        // Of those that overlap, one run that holds both.
        runs.dedup_by(|next, run| {
            let overlap = next.start < run.end;
            if overlap {
                run.end = run.end.max(next.end);
            }
            overlap
        });
        let are_leaves = runs.iter().all(|run| run.len() == 1);
        Some(Homes { runs, are_leaves })
    }

    /// The runs that have some of these leaves.
    fn with<'a>(&'a self, leaves: &'a Range<u32>) -> impl Iterator<Item = &'a Range<u32>> {
        let first = self.runs.partition_point(|run| run.end <= leaves.start);
        self.runs[first..].iter().take_while(|run| run.start < leaves.end)
    }
}

impl Parts {
    fn of(placement: &Placement, fabric: &Fabric, in_service: &[u64]) -> Self {
        let mut parts = Parts::default();
        for node in placement.held() {
            let leaf = fabric.group(1, node);
            let bit = 1 << (node - fabric.node_range(1, leaf).start) & in_service[leaf as usize];
            match parts.leaves.last_mut() {
                Some((last, bits)) if *last == leaf => *bits |= bit,
                _ => parts.leaves.push((leaf, bit)),
            }
        }
        for &(level, group) in placement.crossed() {
            if level > 1 {
                parts.groups.push((level.into(), group));
            } else if let Some((_, bits)) = parts.leaves.iter_mut().find(|part| part.0 == group) {
                *bits |= CROSSED;
            } else {
                parts.leaves.push((group, CROSSED));
            }
        }
        parts
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
        let fabric = Arc::clone(view.occupancy.fabric());
        let groups = |level: usize| if level < 2 { 0 } else { fabric.groups(level) as usize };
        let levels = || 0..=fabric.depth();
        let nodes = |leaf| {
            let range = fabric.node_range(1, leaf);
            let nodes = view.occupancy.in_service().iter_in(range.clone());
            nodes.fold(0, |bits, node| bits | 1 << (node - range.start))
        };
        let mut span = view.occupancy.clone();
        for job in view.running.jobs() {
            span.release(&job.placement);
        }
        let mut plan = KeptPlan {
            entries: Vec::new(),
            nodes: (0..fabric.groups(1)).map(nodes).collect(),
            leaves: vec![Timeline::new(); fabric.groups(1) as usize],
            groups: levels().map(|level| vec![Timeline::new(); groups(level)]).collect(),
            crossing_matters: fabric.domains() == 0,
            shown: vec![0; fabric.groups(1) as usize],
            shown_groups: levels().map(|level| vec![false; groups(level)]).collect(),
            span,
            homes: Vec::new(),
            news: Vec::new(),
            reaches: Vec::new(),
            rooms: Vec::new(),
            forgotten: 0,
            before_last: 0,
            is_unfit: false,
            changes: view.running.changes(),
            service: view.occupancy.service_changes(),
            rule: number_of(view.policy),
            fabric,
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
            self.forget_news(view.now);
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

    /// Forgets news that every reservation takes account of, and what was held before now.
    fn forget_news(&mut self, now: f64) {
        let old = (self.before_last - self.forgotten) as usize;
        self.rooms.resize_with(self.news.len(), Rooms::default);
        self.rooms.drain(..old);
        self.reaches.drain(..old);
        self.news.drain(..old);
        self.forgotten = self.before_last;
        self.before_last = self.forgotten + self.news.len() as u64;
        let timelines = self.leaves.iter_mut().chain(self.groups.iter_mut().flatten());
        timelines.for_each(|timeline| timeline.forget_before(now));
    }

    fn all_news(&self) -> u64 {
        self.forgotten + self.news.len() as u64
    }

    /// Has an entry for each waiting job, in order; a new one has the promise that is known of it.
    fn align(&mut self, view: &View<'_>, mut known: HashMap<u64, Promise>) {
        let is_same = |(entry, waiting): (&Entry, &Waiting)| entry.id == waiting.request.id;
        let in_order = self.entries.len() <= view.waiting.len()
            && (!view.changed || self.entries.iter().zip(view.waiting).all(is_same));
        let mut before = HashMap::new();
        if !in_order {
            before = self.entries.drain(..).map(|entry| (entry.id, entry)).collect();
        }
        for waiting in &view.waiting[self.entries.len()..] {
            let request = &*waiting.request;
            let entry = before.remove(&request.id);
            let entry =
                entry.unwrap_or_else(|| self.new_entry(request, known.remove(&request.id), view));
            self.entries.push(entry);
        }
        for entry in before.into_values() {
            if let Some(promise) = entry.promise {
                self.take_back_promise(&promise, view.now);
            }
        }
    }

    fn new_entry(&mut self, request: &Request, promise: Option<Promise>, view: &View<'_>) -> Entry {
        let suits = request.is_plain()
            && request.walltime >= SHORTEST
            && view.policy.room_helps(request) == RoomHelps::Always;
        let homes = Homes::of(request, view.policy, view.occupancy).filter(|_| suits);
        self.is_unfit |= homes.is_none();
        let homes = homes.unwrap_or(Homes { runs: Vec::new(), are_leaves: false });
        let like = self.homes.iter().find(|like| ***like == homes).cloned();
        let homes = like.unwrap_or_else(|| {
            self.homes.push(Arc::new(homes));
            Arc::clone(&self.homes[self.homes.len() - 1])
        });
        if let Some(Promise { start, end, placement: Some(placement), .. }) = &promise {
            self.hold(placement, (*start, *end));
        }
        let (id, nodes) = (request.id, request.nodes);
        Entry { id, nodes, lasts: lasts(request), homes, promise, seen: None }
    }

    fn hold(&mut self, placement: &Placement, when: (f64, f64)) {
        let parts = Parts::of(placement, &self.fabric, &self.nodes);
        self.hold_parts(&parts, when);
    }

    fn hold_parts(&mut self, parts: &Parts, when: (f64, f64)) {
        for &(leaf, bits) in &parts.leaves {
            self.is_unfit |= !self.leaves[leaf as usize].hold(bits, when);
        }
        for &(level, group) in &parts.groups {
            self.is_unfit |= !self.groups[level][group as usize].hold(1, when);
        }
    }

    fn give_back_parts(&mut self, parts: &Parts, when: (f64, f64)) {
        for &(leaf, bits) in &parts.leaves {
            self.leaves[leaf as usize].give_back(bits, when);
        }
        for &(level, group) in &parts.groups {
            self.groups[level][group as usize].give_back(1, when);
        }
    }

    /// Gives back what a placement holds, and notes it.
    fn take_back(&mut self, placement: &Placement, when: (f64, f64), now: f64) {
        let parts = Parts::of(placement, &self.fabric, &self.nodes);
        self.give_back_parts(&parts, when);
        self.note(&parts, when, true, now);
    }

    fn take_back_promise(&mut self, promise: &Promise, now: f64) {
        if let Some(placement) = &promise.placement {
            self.take_back(placement, (promise.start, promise.end), now);
        }
    }

    /// Notes what has gone, or is about to come.
    fn note(&mut self, parts: &Parts, (from, until): (f64, f64), has_gone: bool, now: f64) {
        let from = from.max(now);
        if from >= until {
            return;
        }
        for &(leaf, bits) in &parts.leaves {
            let nodes = self.nodes[leaf as usize];
            let openings = self.leaves[leaf as usize].openings(bits, nodes, (from, until), now);
            self.add(News { leaves: leaf..leaf + 1, from, until, has_gone, openings });
        }
        for &(level, group) in &parts.groups {
            let range = self.fabric.node_range(level, group);
            let leaves = self.fabric.group(1, range.start)..self.fabric.group(1, range.end - 1) + 1;
            let openings = self.groups[level][group as usize].openings(1, 1, (from, until), now);
            self.add(News { leaves, from, until, has_gone, openings });
        }
    }

    fn add(&mut self, news: News) {
        let Openings { first, last, longest, .. } = news.openings;
        self.reaches.push(Reach { first, last, longest });
        self.news.push(news);
    }

    /// One pass over the queue.
    pub fn pass(&mut self, view: &mut View<'_>) -> Pass {
        self.span.set_demand(Arc::clone(view.occupancy.demand()));
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
        let all_news = self.all_news();
        let entry = &self.entries[index];
        let known = entry.promise.as_ref().filter(|promise| {
            promise.start >= view.now
                && entry.lasts.total_cmp(&lasts(request)).is_eq()
                && entry.seen.is_some()
        });
        let mut rooms = std::mem::take(&mut self.rooms);
        rooms.resize_with(self.news.len(), Rooms::default);
        let (windows, chooses_anew) = match known {
            Some(promise) => self.look(entry, promise, view.now, &mut rooms),
            None => (KeptPlan::everywhere(&entry.homes, view.now), true),
        };
        let is_known = known.is_some();
        self.rooms = rooms;
        self.entries[index].seen = Some(all_news);
        if windows.is_empty() && !chooses_anew {
            return;
        }
        self.entries[index].lasts = lasts(request);
        let before = self.entries[index].promise.take();
        let held = before.as_ref().and_then(|promise| {
            let placement = promise.placement.as_ref()?;
            let parts = Parts::of(placement, &self.fabric, &self.nodes);
            Some((parts, (promise.start, promise.end)))
        });
        if let Some((parts, when)) = &held {
            self.give_back_parts(parts, *when);
        }
        let found = self.earliest(index, windows, request, view.policy);
        let start = found.or(before.as_ref().filter(|_| is_known).map(|promise| promise.start));
        let promise = match start {
            Some(start) if found.is_some() || chooses_anew => {
                self.place(request, start, view.policy)
            }
            _ => before.clone(),
        };
        let same = before == promise;
        if let Some((parts, when)) = held.as_ref().filter(|_| !same) {
            self.note(parts, *when, true, view.now);
        }
        if let Some(Promise { start, end, placement: Some(placement), .. }) = &promise {
            let parts = Parts::of(placement, &self.fabric, &self.nodes);
            if !same {
                self.note(&parts, (*start, *end), false, view.now);
            }
            self.hold_parts(&parts, (*start, *end));
        }
        let seen = Some(self.all_news());
        let entry = &mut self.entries[index];
        (entry.promise, entry.seen) = (promise, seen);
    }

    fn everywhere(homes: &Homes, now: f64) -> Vec<Window> {
        let window = |run: &Range<u32>| Window {
            run: run.clone(),
            from: now,
            until: f64::INFINITY,
            is_near: true,
        };
        homes.runs.iter().map(window).collect()
    }

    /// Where and when a job may start earlier for what is new, and whether other nodes may be chosen at the time that it has.
    fn look(
        &self,
        entry: &Entry,
        promise: &Promise,
        now: f64,
        rooms: &mut [Rooms],
    ) -> (Vec<Window>, bool) {
        let (start, end, lasts) = (promise.start, promise.end, entry.lasts - ROUNDING);
        let mut windows = Vec::new();
        let mut chooses_anew = false;
        let own = promise.placement.as_ref().and_then(|placement| placement.held().next());
        let own = own.map_or(0, |node| self.fabric.group(1, node));
        let seen = entry.seen.unwrap_or(0).max(self.forgotten) - self.forgotten;
        let all = (0..).zip(&self.reaches).skip(seen as usize);
        for (index, &Reach { first, last, longest }) in all {
            if first > start || longest < lasts && last < start {
                continue;
            }
            let (news, rooms): (&News, &mut Rooms) = (&self.news[index], &mut rooms[index]);
            let open = &news.openings;
            chooses_anew |= open.longest >= lasts
                && news.from < end
                && news.until > start
                && open.first <= start
                && open.last >= end;
            if !news.has_gone || open.first >= start {
                continue;
            }
            let many = open.with_nodes.get(entry.nodes as usize - 1);
            let crosses = if self.crossing_matters { open.uncrossed } else { open.longest };
            let fits = many.is_some_and(|&longest| longest >= lasts)
                || !entry.homes.are_leaves && crosses >= lasts;
            let is_near = open.last >= start;
            if !fits && !is_near {
                continue;
            }
            for run in entry.homes.with(&news.leaves) {
                let is_near = is_near && run.contains(&own);
                let mut has_room = || many.is_some() || self.has_room(news, rooms, run, entry);
                if is_near || fits && has_room() {
                    let from = open.first.max(news.from - entry.lasts - 1.0).max(now);
                    let until = news.until.min(start);
                    windows.push(Window { run: run.clone(), from, until, is_near });
                }
            }
        }
        windows
            .sort_unstable_by(|a, b| a.run.start.cmp(&b.run.start).then(a.from.total_cmp(&b.from)));
        windows.dedup_by(|next, window| {
            let overlap = next.run == window.run && next.from <= window.until;
            if overlap {
                window.until = window.until.max(next.until);
                window.is_near |= next.is_near;
            }
            overlap
        });
        windows.retain_mut(|window| {
            let room = || self.room_from(window, entry.nodes, entry.lasts, window.until);
            let from = if window.is_near { Some(window.from) } else { room() };
            from.inspect(|&from| window.from = from).is_some()
        });
        (windows, chooses_anew)
    }

    /// Whether a run of leaves may have room for a job at a time that meets the news: roughly, for a job that crosses leaves.
    fn has_room(&self, news: &News, rooms: &mut Rooms, run: &Range<u32>, entry: &Entry) -> bool {
        let span = SPANS.iter().rposition(|&span| span <= entry.lasts).unwrap_or(0);
        let known = rooms.iter().position(|(known, _)| known == run);
        let known = known.unwrap_or_else(|| {
            rooms.push((run.clone(), [None; SPANS.len()]));
            rooms.len() - 1
        });
        let most = rooms[known].1[span].get_or_insert_with(|| {
            let from = news.openings.first.max(news.from - SPANS[span] - 1.0);
            let room = |leaf, held| self.room_on(leaf, held, u32::MAX);
            let mut most = 0;
            self.find_room(run, SPANS[span], (from, news.until), room, |_, total| {
                most = most.max(total);
                false
            });
            most
        });
        *most >= entry.nodes
    }

    /// The earliest time within the windows at which the policy finds a place.
    fn earliest(
        &mut self,
        index: usize,
        mut windows: Vec<Window>,
        request: &Request,
        policy: &dyn Policy,
    ) -> Option<f64> {
        let lasts = self.entries[index].lasts;
        loop {
            let mut best: Option<f64> = None;
            for window in &mut windows {
                let until = best.map_or(window.until, |best| window.until.min(best));
                let Some(start) = self.room_from(window, request.nodes, lasts, until) else {
                    continue;
                };
                window.from = start;
                best = Some(start);
            }
            let start = best?;
            self.show(start, start + lasts);
            if policy.can_place(request, &self.span).is_ok() {
                return Some(start);
            }
            for window in windows.iter_mut().filter(|window| window.from <= start) {
                let leaves = &self.leaves[window.run.start as usize..window.run.end as usize];
                let later = leaves.iter().map(|timeline| timeline.step_after(start));
                window.from = later.fold(f64::INFINITY, f64::min);
            }
            windows.retain(|window| window.from < window.until);
        }
    }

    /// The earliest time in a window from which on its leaves have nodes enough, if no two jobs may cross a leaf.
    fn room_from(&self, window: &Window, nodes: u32, lasts: f64, until: f64) -> Option<f64> {
        let between = (window.from, until);
        if window.from >= until {
            return None;
        }
        if window.run.len() == 1 {
            let leaf = window.run.start as usize;
            return self.leaves[leaf].earliest(self.nodes[leaf], nodes, lasts, between);
        }
        let room = |leaf, held| self.room_on(leaf, held, nodes);
        self.find_room(&window.run, lasts, between, room, |start, total| {
            let exactly = || {
                let held = |leaf: u32| self.leaves[leaf as usize].held(start, start + lasts);
                window.run.clone().map(|leaf| room(leaf, held(leaf))).sum::<u32>()
            };
            total >= nodes && exactly() >= nodes
        })
    }

    /// Nodes of a leaf for a job of so many, where these bits are held.
    fn room_on(&self, leaf: u32, held: u64, nodes: u32) -> u32 {
        let free = (self.nodes[leaf as usize] & !held).count_ones();
        let is_crossed = held & CROSSED != 0 && self.crossing_matters;
        if is_crossed && free < nodes { 0 } else { free }
    }

    /// The first time at which a run of leaves may have more room than before and that does, of the time and of at most how much room
    /// there is from then on.
    fn find_room(
        &self,
        run: &Range<u32>,
        lasts: f64,
        between: (f64, f64),
        room: impl Fn(u32, u64) -> u32 + Copy,
        mut does: impl FnMut(f64, u32) -> bool,
    ) -> Option<f64> {
        let mut rooms: Vec<(f64, u32, u32)> = Vec::new();
        for leaf in run.clone() {
            let timeline = &self.leaves[leaf as usize];
            let found = timeline.rooms(move |held| room(leaf, held), lasts, between);
            rooms.extend(
                found.filter(|&(_, room)| room > 0).map(|(start, room)| (start, leaf, room)),
            );
        }
        rooms.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut most = vec![0; run.len()];
        let mut total = 0;
        for together in rooms.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
            for &(_, leaf, room) in together {
                let known = &mut most[(leaf - run.start) as usize];
                total = total - *known + room;
                *known = room;
            }
            if does(together[0].0, total) {
                return Some(together[0].0);
            }
        }
        None
    }

    /// The reservation from a time on at which there is a place.
    fn place(&mut self, request: &Request, start: f64, policy: &dyn Policy) -> Option<Promise> {
        self.show(start, start + lasts(request));
        let placement = policy.place(request, &self.span).ok()?;
        Some(Promise::new(request, start, Some(Arc::new(placement))))
    }

    /// Shows what is held at any time from `start` to `end`.
    fn show(&mut self, start: f64, end: f64) {
        for (leaf, timeline) in (0..).zip(&self.leaves) {
            let held = timeline.held(start, end);
            let shown = &mut self.shown[leaf as usize];
            if held == *shown {
                continue;
            }
            let first = self.fabric.node_range(1, leaf).start;
            for (bits, are_held) in [(*shown & !held, false), (held & !*shown, true)] {
                for run in runs(bits & !CROSSED) {
                    self.span.set_held(first + run.start..first + run.end, are_held);
                }
            }
            if (held ^ *shown) & CROSSED != 0 {
                self.span.set_crossed(1, leaf, held & CROSSED != 0);
            }
            *shown = held;
        }
        for (level, timelines) in self.groups.iter().enumerate() {
            for (group, timeline) in (0..).zip(timelines) {
                let is_crossed = timeline.held(start, end) != 0;
                let shown = &mut self.shown_groups[level][group as usize];
                if is_crossed != *shown {
                    self.span.set_crossed(level, group, is_crossed);
                    *shown = is_crossed;
                }
            }
        }
    }
}

/// Runs of consecutive bits.
fn runs(mut bits: u64) -> impl Iterator<Item = Range<u32>> {
    std::iter::from_fn(move || {
        if bits == 0 {
            return None;
        }
        let start = bits.trailing_zeros();
        let end = start + (!(bits >> start)).trailing_zeros();
        bits &= !(((1 << (end - start)) - 1) << start);
        Some(start..end)
    })
}
