use std::collections::HashMap;
use std::sync::Arc;

use topolane_placement::{Occupancy, Placement, Request};

use crate::profile::Profile;
use crate::queue::{Pass, Queue, Reservation};
use crate::view::View;

/// Conservative backfilling (Mu'alem and Feitelson 2001) over any policy: every job has a
/// reservation, and none is ever put later than first promised. When a job ends early, each
/// waiting job in turn gives up its reservation for the earliest that fits beside all others.
///
/// With a count-only policy a reservation is a number of nodes; otherwise it names the nodes, and
/// it is kept if the policy still finds a place where all the nodes that it once named are free.
#[derive(Debug, Default)]
pub struct Conservative {
    promises: HashMap<u64, Promise>,
}

/// A reservation lasts at least this long, seconds, so that one for no time at all is kept too.
const SHORTEST: f64 = 1.0;

#[derive(Debug, Clone)]
struct Promise {
    start: f64,
    end: f64,
    whole_nodes: i64,
    placement: Option<Arc<Placement>>,
}

impl Queue for Conservative {
    fn name(&self) -> &'static str {
        "conservative"
    }

    fn pass(&mut self, view: &mut View<'_>) -> Pass {
        let mut plan = Plan::of(view, std::mem::take(&mut self.promises));
        let mut pass = Pass::default();
        for index in 0..view.waiting.len() {
            if !view.is_visible(index) {
                continue;
            }
            let request = &view.waiting[index].request;
            let stands = |promise: &&Promise| plan.counting || promise.placement.is_some();
            let kept = plan.promises.get(&request.id).filter(stands);
            let kept = kept.filter(|_| !view.changed && index < view.fresh);
            let due = kept.is_none_or(|promise| promise.start <= view.now);
            if due {
                plan.promise(request, view);
            }
            let promise = plan.promises.get(&request.id);
            let at = promise.map_or(f64::INFINITY, |promise| promise.start);
            let placement = promise.and_then(|promise| promise.placement.clone());
            if at <= view.now && start(index, placement, view) {
                plan.promises.remove(&request.id);
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

impl Promise {
    fn new(request: &Request, start: f64, placement: Option<Arc<Placement>>) -> Self {
        let end = start + lasts(request);
        Promise { start, end, whole_nodes: whole_nodes(request), placement }
    }
}

fn lasts(request: &Request) -> f64 {
    request.walltime.max(SHORTEST)
}

fn whole_nodes(request: &Request) -> i64 {
    if request.share.is_whole() { i64::from(request.nodes) } else { 0 }
}

fn start(index: usize, placement: Option<Arc<Placement>>, view: &mut View<'_>) -> bool {
    match placement {
        Some(placement) => view.start(index, placement),
        None => view.place_and_start(index).is_ok(),
    }
}

/// All that is held now and promised for later.
struct Plan {
    /// Idle nodes over time; where jobs share nodes an upper bound, since a node then counts as
    /// idle when the first of them ends.
    idle: Profile,
    promises: HashMap<u64, Promise>,
    /// Whether counts are all that matters.
    counting: bool,
}

impl Plan {
    fn of(view: &View<'_>, mut promises: HashMap<u64, Promise>) -> Self {
        let counts = |request| Request::is_plain(request) && view.policy.counts_only(request);
        let counting = !view.running.any_sharing()
            && view.occupancy.is_joined()
            && view.waiting.iter().all(|waiting| counts(&waiting.request));
        let mut idle = Profile::new(view.now, i64::from(view.occupancy.idle_nodes()));
        for job in view.running.jobs() {
            let in_service = |&node: &u32| view.occupancy.in_service().contains(node);
            let nodes = job.placement.held().filter(in_service).count() as u32;
            // One that is over its time ends at any moment, but not before now.
            let over = job.expected_end <= view.now;
            let end = if over { view.now + SHORTEST } else { job.expected_end };
            if end.is_finite() {
                idle.add(end, f64::INFINITY, nodes.into());
            }
        }
        if view.changed {
            let ids: std::collections::HashSet<u64> =
                view.waiting.iter().map(|waiting| waiting.request.id).collect();
            promises.retain(|id, _| ids.contains(id));
        }
        for promise in promises.values() {
            idle.add(promise.start.max(view.now), promise.end, -promise.whole_nodes);
        }
        Plan { idle, promises, counting }
    }

    /// Gives the request the earliest reservation beside all others, its old one at the latest.
    fn promise(&mut self, request: &Request, view: &View<'_>) {
        let old = self.promises.remove(&request.id);
        if let Some(old) = &old {
            self.idle.add(old.start.max(view.now), old.end, old.whole_nodes);
        }
        let found = if self.counting {
            let start = self.idle.earliest(lasts(request), whole_nodes(request));
            start.is_finite().then(|| Promise::new(request, start, None))
        } else {
            self.earliest_placed(request, view)
        };
        if let Some(promise) = found {
            self.idle.add(promise.start.max(view.now), promise.end, -promise.whole_nodes);
            self.promises.insert(request.id, promise);
        }
    }

    /// The earliest time at which the policy finds nodes that nobody holds or is promised until
    /// the request ends. That of an old promise is among those tried.
    fn earliest_placed(&self, request: &Request, view: &View<'_>) -> Option<Promise> {
        let mut span = view.occupancy.clone();
        self.idle.times().iter().find_map(|&time| {
            let end = time + lasts(request);
            if self.idle.least(time, end) < whole_nodes(request) {
                return None;
            }
            self.fill(&mut span, time, end, view);
            view.policy.can_place(request, &span).ok()?;
            let placement = view.policy.place(request, &span).ok()?;
            Some(Promise::new(request, time, Some(Arc::new(placement))))
        })
    }

    /// Fills `span` with all that is held or promised at any time from `start` to `end`.
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
