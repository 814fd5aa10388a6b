use std::collections::HashMap;
use std::sync::Arc;

use topolane_placement::{Occupancy, Placement, Request, Share};

use crate::profile::Profile;
use crate::queue::{Pass, Queue, Reservation};
use crate::view::View;

/// Conservative backfilling (Mu'alem and Feitelson 2001) over any policy: every job has a
/// reservation, and none is ever put later than first promised. When a job ends early, each
/// waiting job in turn gives up its reservation for the earliest that fits beside all others.
///
/// With a count-only policy a reservation is a number of nodes; otherwise it names the nodes.
#[derive(Debug, Default)]
pub struct Conservative {
    promises: HashMap<u64, Promise>,
}

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
            let kept =
                plan.promises.get(&request.id).filter(|_| !view.changed && index < view.fresh);
            let due = kept.is_none_or(|promise| promise.start <= view.now);
            if due {
                plan.promise(request, view);
            }
            let Some(promise) = plan.promises.get(&request.id) else { continue };
            let at = promise.start;
            if at > view.now || !start(index, promise.placement.clone(), view) {
                pass.reservation.get_or_insert(Reservation { id: request.id, at });
                if pass.refusal.is_none() {
                    let reason = view.policy.admits(request, view.occupancy).err();
                    pass.refusal = reason.map(|reason| (request.id, reason));
                }
            } else {
                plan.promises.remove(&request.id);
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

/// All that is held now and promised for later.
struct Plan {
    /// Idle nodes over time; jobs that share nodes are left out, so it is an upper bound.
    idle: Profile,
    promises: HashMap<u64, Promise>,
    /// Whether counts are all that matters.
    counting: bool,
}

impl Plan {
    fn of(view: &View<'_>, mut promises: HashMap<u64, Promise>) -> Self {
        let counting = view.policy.count_only()
            && !view.running.any_sharing()
            && view.occupancy.fabric().is_connected()
            && view.waiting.iter().all(|waiting| waiting.request.is_plain());
        let mut idle = Profile::new(view.now, i64::from(view.occupancy.idle_nodes()));
        for job in view.running.jobs() {
            let in_service = |&&node: &&u32| view.occupancy.in_service().contains(node);
            let nodes = job.placement.nodes().iter().filter(in_service).count() as u32;
            if job.placement.share() == Share::Whole && job.expected_end.is_finite() {
                idle.add(job.expected_end.max(view.now), f64::INFINITY, nodes.into());
            }
        }
        if promises.len() > view.waiting.len() {
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
        let whole_nodes = if request.share == Share::Whole { i64::from(request.nodes) } else { 0 };
        let promised = |(start, placement)| Promise {
            start,
            end: start + request.walltime,
            whole_nodes,
            placement,
        };
        let found = if self.counting {
            let start = self.idle.earliest(request.walltime, whole_nodes);
            start.is_finite().then_some((start, None))
        } else {
            let latest = old.as_ref().map_or(f64::INFINITY, |old| old.start);
            self.earliest_placed(request, whole_nodes, latest, view)
        };
        if let Some(promise) = found.map(promised).or(old) {
            self.idle.add(promise.start.max(view.now), promise.end, -promise.whole_nodes);
            self.promises.insert(request.id, promise);
        }
    }

    /// The earliest time before `latest` at which the policy finds nodes that nobody holds or is
    /// promised until the request ends.
    fn earliest_placed(
        &self,
        request: &Request,
        whole_nodes: i64,
        latest: f64,
        view: &View<'_>,
    ) -> Option<(f64, Option<Arc<Placement>>)> {
        let mut span = view.occupancy.clone();
        self.idle.times().iter().take_while(|&&time| time < latest).find_map(|&time| {
            let end = time + request.walltime;
            if self.idle.least(time, end) < whole_nodes {
                return None;
            }
            self.fill(&mut span, time, end, view);
            view.policy.admits(request, &span).ok()?;
            let placement = view.policy.place(request, &span).ok()?;
            Some((time, Some(Arc::new(placement))))
        })
    }

    /// Fills `span` with all that is held or promised at any time from `start` to `end`.
    fn fill(&self, span: &mut Occupancy, start: f64, end: f64, view: &View<'_>) {
        span.clone_from(view.occupancy);
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
