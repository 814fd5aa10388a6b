use std::collections::HashMap;
use std::sync::Arc;

use topolane_placement::{Occupancy, Placement, Policy, Request, RoomHelps};

use super::reservation::{Promise, SHORTEST, lasts, whole_nodes};
use crate::counted_plan::CountedPlan;
use crate::kept_plan::KeptPlan;
use crate::profile::FreeProfile;
use crate::queue::{Pass, Queue, Reservation};
use crate::running::RunningJob;
use crate::view::View;

/// Conservative backfilling (Mu'alem and Feitelson 2001) over any policy: every job has a reservation. No job starts
/// later than first promised, as long as its nodes stay in service and no job exceeds its walltime. When a job ends
/// early, each waiting job in turn moves to the earliest reservation that leaves all others in place, if that is
/// earlier.
///
/// With a count-only policy a reservation is a number of nodes; otherwise it names the nodes. The policy chooses them
/// again when the reservation begins. Where the policy refuses, a job takes the nodes of its reservation, if they are
/// free.
#[derive(Debug, Default)]
pub struct Conservative {
    /// Empty while a kept plan has the promises.
    promises: HashMap<u64, Promise>,
    counted: Option<CountedPlan>,
    placed: Option<KeptPlan>,
}

impl Queue for Conservative {
    fn name(&self) -> &'static str {
        "conservative"
    }

    fn pass(&mut self, view: &mut View<'_>) -> Pass {
        let pass = self.pass_once(view);
        // A reservation that was due may have moved to a later time and so freed nodes for jobs examined before it. If
        // no job runs, no later end would trigger another pass, so run one more now.
        let goes_on = !view.running.jobs().is_empty() || self.promised().is_empty();
        if goes_on { pass } else { self.pass_once(view) }
    }
}

impl Conservative {
    fn pass_once(&mut self, view: &mut View<'_>) -> Pass {
        let mut promises = std::mem::take(&mut self.promises);
        if view.policy.traits().count_only {
            promises.extend(self.placed.take().map(KeptPlan::into_promises).unwrap_or_default());
            match CountedPlan::of(self.counted.take(), promises, view) {
                Ok(plan) => self.counted.insert(plan).pass(view),
                Err(promises) => self.pass_on_new_plan(promises, view),
            }
        } else {
            promises
                .extend(self.counted.take().map(CountedPlan::into_promises).unwrap_or_default());
            match KeptPlan::of(self.placed.take(), promises, view) {
                Ok(plan) => self.placed.insert(plan).pass(view),
                Err(promises) => self.pass_on_new_plan(promises, view),
            }
        }
    }

    /// The promised start of each waiting job that has one, by id.
    pub fn promised(&self) -> Vec<(u64, f64)> {
        let mut found: Vec<(u64, f64)> =
            self.promises.iter().map(|(&id, promise)| (id, promise.start)).collect();
        found.extend(self.counted.iter().flat_map(CountedPlan::starts));
        found.extend(self.placed.iter().flat_map(KeptPlan::starts));
        found.sort_unstable_by_key(|&(id, _)| id);
        found
    }

    /// Runs a pass that builds a new plan.
    fn pass_on_new_plan(&mut self, promises: HashMap<u64, Promise>, view: &mut View<'_>) -> Pass {
        let mut plan = ConservativePlan::of(view, promises);
        let mut pass = Pass::default();
        for index in 0..view.waiting.len() {
            if !view.is_visible(index) {
                continue;
            }
            let request = &view.waiting[index].request;
            let is_whole = |promise: &&Promise| plan.counting || promise.placement.is_some();
            let kept = plan.promises.get(&request.id).filter(is_whole);
            let kept = kept.filter(|_| !view.changed && index < view.fresh);
            let due = kept.is_none_or(|promise| promise.start <= view.now);
            if due {
                plan.promise(request, view);
            }
            let promise = plan.promises.get(&request.id);
            let at = promise.map_or(f64::INFINITY, |promise| promise.start);
            let placement = promise.and_then(|promise| promise.placement.clone());
            if at <= view.now && start(index, placement, view) {
                plan.forget(request.id);
            } else if pass.reservation.is_none() {
                pass.reservation = Some(Reservation { id: request.id, at });
                let reason = view.policy.can_place(request, view.occupancy).err();
                pass.refusal = reason.map(|reason| (request.id, reason));
            }
        }
        self.promises = plan.promises;
        pass
    }
}

fn start(index: usize, placement: Option<Arc<Placement>>, view: &mut View<'_>) -> bool {
    match placement {
        Some(placement) => view.start(index, placement),
        None => view.place_and_start(index).is_ok(),
    }
}

/// Everything that is held now or promised for later.
struct ConservativePlan {
    /// Idle nodes over time. If jobs share nodes this is an upper bound, because a node then counts as idle when the
    /// first of its jobs ends.
    idle: FreeProfile,
    promises: HashMap<u64, Promise>,
    /// Whether only the number of nodes matters.
    counting: bool,
    /// Promises that name nodes, by start and by end, then by id.
    by_start: Vec<(f64, u64)>,
    by_end: Vec<(f64, u64)>,
    /// Whether all placements, held and promised, are whole nodes without owned links. Then an occupancy counts the
    /// jobs on each node and group, so jobs that leave a time span can be subtracted again.
    slides: bool,
}

/// How far a time span has moved: the numbers of running jobs that left it, and of promises that entered and left.
#[derive(Debug, Default)]
struct Slid {
    ended: usize,
    came: usize,
    left: usize,
}

/// Whether a request may keep a promise: the promise names nodes, begins later, and lasts as long as the request.
fn stands(promise: &Promise, request: &Request, now: f64) -> bool {
    promise.placement.is_some()
        && promise.start > now
        && promise.end.total_cmp(&(promise.start + lasts(request))).is_eq()
}

/// Drops promises of nodes that are out of service, or that running jobs will hold or cross then.
fn leave_out_void(promises: &mut HashMap<u64, Promise>, view: &View<'_>) {
    let placed = |(&id, promise): (&u64, &Promise)| {
        Some((promise.start.max(view.now), id, Arc::clone(promise.placement.as_ref()?)))
    };
    let mut placed: Vec<_> = promises.iter().filter_map(placed).collect();
    placed.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut running = view.running.jobs().iter().peekable();
    let mut state = view.occupancy.clone();
    for (start, id, placement) in placed {
        let has_ended = |job: &&RunningJob| start > view.now && job.expected_end <= start;
        while let Some(job) = running.next_if(has_ended) {
            state.release(&job.placement);
        }
        if !state.has_room_for(&placement) {
            promises.remove(&id);
        }
    }
}

/// A request, and the nodes promised to it before.
type PromisedRequest<'a> = (&'a Request, Option<&'a Arc<Placement>>);

/// Returns the nodes that the policy chooses, or else those promised before.
fn place(
    (request, own): PromisedRequest<'_>,
    state: &Occupancy,
    policy: &dyn Policy,
) -> Option<Arc<Placement>> {
    let chosen = policy.can_place(request, state).and_then(|()| policy.place(request, state));
    match chosen {
        Ok(placement) => Some(Arc::new(placement)),
        Err(_) => own.filter(|own| state.has_room_for(own)).cloned(),
    }
}

fn counts_whole(placement: &Placement) -> bool {
    placement.share().is_whole() && placement.links().is_empty()
}

fn place_of(entries: &[(f64, u64)], (time, id): (f64, u64)) -> usize {
    entries.partition_point(|other| other.0.total_cmp(&time).then(other.1.cmp(&id)).is_lt())
}

impl ConservativePlan {
    fn of(view: &View<'_>, mut promises: HashMap<u64, Promise>) -> Self {
        let counts = |request| Request::is_plain(request) && view.policy.counts_only(request);
        let counting = !view.running.any_sharing()
            && view.occupancy.is_joined()
            && view.waiting.iter().all(|waiting| counts(&waiting.request));
        let mut idle = FreeProfile::new(view.now, i64::from(view.occupancy.idle_nodes()));
        for job in view.running.jobs() {
            let in_service = |&node: &u32| view.occupancy.in_service().contains(node);
            let nodes = job.placement.held().filter(in_service).count() as u32;
            // A job that exceeds its walltime may end at any moment, but not before now.
            let over = job.expected_end <= view.now;
            let end = if over { view.now + SHORTEST } else { job.expected_end };
            if end.is_finite() {
                idle.add(end, f64::INFINITY, nodes.into());
            }
        }
        if view.changed {
            // A requeued job with the same id may ask for another number of nodes.
            let nodes: HashMap<u64, i64> = view
                .waiting
                .iter()
                .map(|waiting| (waiting.id, whole_nodes(&waiting.request)))
                .collect();
            promises.retain(|id, promise| nodes.get(id) == Some(&promise.whole_nodes));
            leave_out_void(&mut promises, view);
        }
        for promise in promises.values() {
            idle.add(promise.start.max(view.now), promise.end, -promise.whole_nodes);
        }
        let slides = view.occupancy.network().is_none()
            && view.running.jobs().iter().all(|job| counts_whole(&job.placement));
        let placed = || promises.iter().filter(|(_, promise)| promise.placement.is_some());
        let slides =
            slides && promises.values().filter_map(|p| p.placement.as_deref()).all(counts_whole);
        let mut by_start: Vec<_> = placed().map(|(&id, promise)| (promise.start, id)).collect();
        let mut by_end: Vec<_> = placed().map(|(&id, promise)| (promise.end, id)).collect();
        for entries in [&mut by_start, &mut by_end] {
            entries.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        }
        ConservativePlan { idle, promises, counting, by_start, by_end, slides }
    }

    /// Adds a promise to the plan.
    fn keep(&mut self, id: u64, promise: Promise) {
        if let Some(placement) = &promise.placement {
            self.slides &= counts_whole(placement);
            for (entries, time) in
                [(&mut self.by_start, promise.start), (&mut self.by_end, promise.end)]
            {
                entries.insert(place_of(entries, (time, id)), (time, id));
            }
        }
        self.promises.insert(id, promise);
    }

    /// Removes a promise from the plan and returns it.
    fn forget(&mut self, id: u64) -> Option<Promise> {
        let promise = self.promises.remove(&id)?;
        if promise.placement.is_some() {
            for (entries, time) in
                [(&mut self.by_start, promise.start), (&mut self.by_end, promise.end)]
            {
                entries.remove(place_of(entries, (time, id)));
            }
        }
        Some(promise)
    }

    /// Gives a request the earliest reservation that leaves all others in place. Replaces a valid reservation only by
    /// an earlier one.
    fn promise(&mut self, request: &Request, view: &View<'_>) {
        let old = self.forget(request.id);
        if let Some(old) = &old {
            self.idle.add(old.start.max(view.now), old.end, old.whole_nodes);
        }
        let own = old.as_ref().and_then(|old| old.placement.clone());
        let old = old.filter(|old| stands(old, request, view.now));
        let before = old.as_ref().map_or(f64::INFINITY, |old| old.start);
        let asked = (request, own.as_ref());
        let found = if self.counting {
            let start = self.idle.earliest(lasts(request), whole_nodes(request));
            start.is_finite().then(|| Promise::new(request, start, None))
        } else if self.slides && request.share.is_whole() {
            self.earliest_slid(asked, before, view)
        } else {
            self.earliest_placed(asked, before, view)
        };
        if let Some(promise) = found.or(old) {
            self.idle.add(promise.start.max(view.now), promise.end, -promise.whole_nodes);
            self.keep(request.id, promise);
        }
    }

    /// Same as [`ConservativePlan::earliest_placed`], with one time span that slides. If more free capacity always helps,
    /// the policy is asked again only when a job has left the span.
    fn earliest_slid(
        &self,
        (request, own): PromisedRequest<'_>,
        before: f64,
        view: &View<'_>,
    ) -> Option<Promise> {
        let helps = request.is_plain() && view.policy.room_helps(request) == RoomHelps::Always;
        let mut span = view.occupancy.clone();
        let mut slid = Slid::default();
        let mut has_left = true;
        let running = view.running.jobs();
        let times = self.idle.leasts(lasts(request)).take_while(|&(time, _)| time < before);
        times.into_iter().find_map(|(time, least)| {
            if least < whole_nodes(request) {
                return None;
            }
            let end = time + lasts(request);
            has_left |= self.slide(&mut span, &mut slid, (time, end), (view.now, running));
            if helps && !has_left {
                return None;
            }
            has_left = false;
            let placement = place((request, own), &span, view.policy)?;
            Some(Promise::new(request, time, Some(placement)))
        })
    }

    /// Moves a time span to one that begins and ends no earlier. Returns whether a job has left it.
    fn slide(
        &self,
        span: &mut Occupancy,
        slid: &mut Slid,
        (start, end): (f64, f64),
        (now, running): (f64, &[RunningJob]),
    ) -> bool {
        let before = (slid.ended, slid.left);
        let placement = |id: &u64| self.promises.get(id)?.placement.as_deref();
        while let Some((_, id)) = self.by_start.get(slid.came).filter(|entry| entry.0 < end) {
            if let Some(placement) = placement(id) {
                span.overlay(placement);
            }
            slid.came += 1;
        }
        // A promise that has ended by now also began before the end of the span, so the span contains it.
        while let Some((_, id)) = self.by_end.get(slid.left).filter(|entry| entry.0 <= start) {
            if let Some(placement) = placement(id) {
                span.release(placement);
            }
            slid.left += 1;
        }
        let ended = |job: &&RunningJob| start > now && job.expected_end <= start;
        while let Some(job) = running.get(slid.ended).filter(ended) {
            span.release(&job.placement);
            slid.ended += 1;
        }
        before != (slid.ended, slid.left)
    }

    /// The earliest time before `before` at which nodes are free until the request ends: nodes that the policy chooses,
    /// or those promised before.
    fn earliest_placed(
        &self,
        (request, own): PromisedRequest<'_>,
        before: f64,
        view: &View<'_>,
    ) -> Option<Promise> {
        let mut span = view.occupancy.clone();
        let mut times = self.idle.times().iter().take_while(|&&time| time < before);
        times.find_map(|&time| {
            let end = time + lasts(request);
            if self.idle.least(time, end) < whole_nodes(request) {
                return None;
            }
            self.fill(&mut span, time, end, view);
            let placement = place((request, own), &span, view.policy)?;
            Some(Promise::new(request, time, Some(placement)))
        })
    }

    /// Fills `span` with everything that is held or promised at any time from `start` to `end`.
    fn fill(&self, span: &mut Occupancy, start: f64, end: f64, view: &View<'_>) {
        span.clone_from(view.occupancy);
        span.set_time(start.max(view.now));
        for job in view.running.jobs().iter().take_while(|job| job.expected_end <= start) {
            if start > view.now {
                span.release(&job.placement);
            }
        }
        for promise in self.promises.values() {
            if let Some(placement) = &promise.placement
                && promise.start < end
                && promise.end > start
            {
                span.overlay(placement);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use topolane_fabric::{Fabric, Wiring, pgft};
    use topolane_placement::{Occupancy, POLICIES, Placement, Request, Share, policy};

    use super::{Conservative, ConservativePlan, Promise, Slid};
    use crate::profile::FreeProfile;
    use crate::queue::{Pass, Queue};
    use crate::running::{Running, RunningJob};
    use crate::scheduler::Scheduler;
    use crate::view::View;

    const NODES: u32 = 24;

    /// An isolated placement on consecutive nodes from `first` on, wrapping around at the end of the machine.
    fn nodes_from(fabric: &Fabric, first: u32, count: u32) -> Arc<Placement> {
        let nodes = (first..first + count).map(|node| node % NODES).collect();
        Arc::new(Placement::new(fabric, nodes, Share::Whole).isolated(true))
    }

    /// Conservative backfilling that keeps no plan between passes.
    #[derive(Default)]
    struct Unkept(Conservative);

    impl Queue for Unkept {
        fn name(&self) -> &'static str {
            "conservative"
        }

        fn pass(&mut self, view: &mut View<'_>) -> Pass {
            let promises = std::mem::take(&mut self.0.promises);
            let pass = self.0.pass_on_new_plan(promises, view);
            if !view.running.jobs().is_empty() || self.0.promises.is_empty() {
                return pass;
            }
            let promises = std::mem::take(&mut self.0.promises);
            self.0.pass_on_new_plan(promises, view)
        }
    }

    /// A job: the time of its submission, its nodes, its walltime and its run time.
    type Job = (u32, u32, u32, u32);

    /// A change: before which pass, which job gets which other walltime, and which other job is cancelled. No effect if
    /// there is no such job or it has ended. The cancelled job is submitted again with the last number as its nodes,
    /// unless that is 0.
    type Change = (usize, u64, u32, (u64, u32));

    /// The placement and start of each job, and the number of cancelled jobs. A node goes out of service for a while,
    /// and the walltime of the longest running job changes.
    fn decisions(
        queue: Box<dyn Queue>,
        rule: &str,
        jobs: &[Job],
        changes: &[Change],
    ) -> (Vec<(u32, Placement)>, usize) {
        let fabric = Fabric::build(&pgft("n", &[4, 3, 2], &[1, 2, 2], &[1, 1, 1])).unwrap();
        let rule = policy(rule, 0).unwrap().into();
        let mut scheduler = Scheduler::new(Arc::new(fabric), rule, queue);
        let mut ends: Vec<(u32, u64)> = Vec::new();
        let mut found = Vec::new();
        let (mut next, mut cancelled) = (0, 0);
        for pass in 0.. {
            let comes = jobs.get(next).map(|job| job.0);
            let Some(now) = ends.iter().map(|end| end.0).chain(comes).min() else { break };
            for &(_, id) in ends.iter().filter(|end| end.0 == now) {
                assert!(scheduler.complete(id));
            }
            ends.retain(|end| end.0 > now);
            while let Some(&(_, nodes, walltime, _)) = jobs.get(next).filter(|job| job.0 == now) {
                let request = Request::whole_nodes(next as u64, nodes, walltime.into());
                scheduler.submit(request, f64::from(next as u32 % 7 / 6)).unwrap();
                next += 1;
            }
            for &(_, id, walltime, (other, nodes)) in changes.iter().filter(|it| it.0 == pass) {
                scheduler.set_walltime(id, walltime.into());
                if !scheduler.cancel(other) {
                    continue;
                }
                if nodes > 0 {
                    let walltime = jobs[other as usize].2.into();
                    scheduler.submit(Request::whole_nodes(other, nodes, walltime), 0.0).unwrap();
                } else {
                    cancelled += 1;
                }
            }
            match next {
                16 => scheduler.set_in_service(3, false),
                18 | 30 => {
                    let longest = scheduler.running().jobs().last().map(|job| (job.id, job.start));
                    let walltime = if next == 18 { 90.0 } else { 1.0 };
                    longest.map(|(id, start)| {
                        scheduler.set_walltime(id, f64::from(now) - start + walltime)
                    });
                }
                22 => scheduler.set_in_service(3, true),
                _ => (),
            }
            for decision in scheduler.pass(now.into()) {
                let (_, _, walltime, runs) = jobs[decision.request.id as usize];
                ends.push((now + runs.min(walltime), decision.request.id));
                found.push((now, (*decision.placement).clone()));
            }
        }
        (found, cancelled)
    }

    /// Jobs that last seconds or up to 13 hours, of few kinds or many, and changes.
    fn jobs() -> impl Strategy<Value = (Vec<Job>, Vec<Change>)> {
        let job = (0u32..4, 0u32..15, 0u32..39, 0u32..40);
        let change = (4usize..80, 0u64..60, 1u32..60, (0u64..200, 0u32..16));
        let unit = prop::sample::select(vec![1, 1200]);
        let kinds = prop::sample::select(vec![2, 40]);
        let jobs = prop::collection::vec(job, 1..60);
        let changes = prop::collection::vec(change, 0..6);
        (unit, kinds, jobs, changes).prop_map(|(unit, kinds, jobs, mut changes)| {
            let mut now = 0;
            let jobs = jobs.into_iter().map(|(later, nodes, walltime, runs)| {
                now += later * unit;
                (now, nodes % kinds + 1, (walltime % kinds + 1) * unit, runs * unit)
            });
            for change in &mut changes {
                change.2 *= unit;
            }
            (jobs.collect(), changes)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        /// A plan kept between passes starts the same jobs on the same nodes as a new plan at every pass.
        #[test]
        fn a_kept_plan_decides_as_a_new_one(
            (jobs, changes) in jobs(),
            rule in prop::sample::select(vec!["isolated", "segments-isolated", "first-fit"]),
        ) {
            let kept = decisions(Box::new(Conservative::default()), rule, &jobs, &changes);
            prop_assert_eq!(kept, decisions(Box::new(Unkept::default()), rule, &jobs, &changes));
        }
    }

    proptest! {
        /// No job that fits the machine waits forever, whatever the policy answers.
        #[test]
        fn every_job_starts(
            (jobs, changes) in jobs(),
            rule in prop::sample::select(POLICIES.iter().filter(|info| (info.build)(0).traits().wirings.has(&Wiring::Tree)).map(|info| info.name).filter(|&name| name != "recorded").collect::<Vec<_>>()),
        ) {
            let (started, cancelled) = decisions(Box::new(Conservative::default()), rule, &jobs, &changes);
            prop_assert_eq!(started.len() + cancelled, jobs.len(), "under {}", rule);
        }
    }

    proptest! {
        /// A sliding span holds the same as a new span filled at that time: idle nodes in total and per group, and
        /// crossings.
        #[test]
        fn a_span_that_slides_is_as_one_just_filled(
            held in prop::collection::vec((0u32..4, -2i32..30), 0..6),
            promised in prop::collection::vec((0u32..NODES, 1u32..10, -3i32..40, 1i32..30), 0..12),
            times in prop::collection::btree_set(0i32..60, 1..20),
            duration in 1i32..30,
            out in 0..NODES,
        ) {
            let fabric =
                Arc::new(Fabric::build(&pgft("n", &[4, 3, 2], &[1, 2, 2], &[1, 1, 1])).unwrap());
            let mut occupancy = Occupancy::new(Arc::clone(&fabric));
            let mut running = Running::default();
            for (id, (count, end)) in held.into_iter().enumerate() {
                let placement = nodes_from(&fabric, 4 * id as u32, count + 1);
                occupancy.claim(&placement).unwrap();
                running.insert(RunningJob {
                    id: id as u64,
                    request: Arc::new(Request::whole_nodes(id as u64, count + 1, 1.0)),
                    start: -5.0,
                    expected_end: end.into(),
                    placement,
                });
            }
            occupancy.set_in_service(out, false);
            let rule = policy("isolated", 0).unwrap();
            let view = View {
                now: 0.0,
                waiting: &[],
                classes: &[],
                fresh: 0,
                changed: true,
                running: &mut running,
                occupancy: &mut occupancy,
                policy: &*rule,
                defrag: None,
                started: Vec::new(),
                ended_early: Vec::new(),
                moved: Vec::new(),
            };
            let mut plan = ConservativePlan::of(&view, std::collections::HashMap::new());
            plan.idle = FreeProfile::new(0.0, 0);
            for (id, (first, count, start, length)) in promised.into_iter().enumerate() {
                let (start, end) = (start.into(), (start + length).into());
                let placement = Some(nodes_from(&fabric, first, count));
                plan.keep(id as u64, Promise { start, end, whole_nodes: count.into(), placement });
                if id % 4 == 3 {
                    plan.forget(id as u64 - 1);
                }
            }
            let mut slid = Slid::default();
            let mut span = view.occupancy.clone();
            let mut filled = view.occupancy.clone();
            for time in times {
                let (start, end) = (time.into(), (time + duration).into());
                plan.slide(&mut span, &mut slid, (start, end), (0.0, view.running.jobs()));
                plan.fill(&mut filled, start, end, &view);
                prop_assert_eq!(span.idle(), filled.idle(), "at {}", time);
                for level in 1..=fabric.depth() {
                    for group in 0..fabric.groups(level) {
                        prop_assert_eq!(span.idle_in(level, group), filled.idle_in(level, group));
                        prop_assert_eq!(span.crossing(level, group), filled.crossing(level, group));
                        prop_assert_eq!(
                            span.isolated_crossing(level, group),
                            filled.isolated_crossing(level, group)
                        );
                    }
                }
                for node in 0..NODES {
                    prop_assert_eq!(span.held(node), filled.held(node));
                }
            }
        }
    }
}
