//! The first plans: good ones, found with few questions.

use super::asking::Asking;
use super::cover::{Base, Start};
use super::jobs::Jobs;
use super::search::{FoundRoom, RoomSearch, is_best};
use crate::placement::Placement;

/// The best of the first plans; none if none is found.
///
/// The sets of the cover come first: what the policy accepts of them is mostly best. If it wants more than slots, jobs are added to
/// each of them in some order until it places the request, and then removed again one after another, the dearest first.
pub(super) fn first_plans(
    search: &RoomSearch<'_>,
    start: &Start,
    asking: &mut Asking<'_>,
) -> Option<FoundRoom> {
    let mut best: Option<FoundRoom> = None;
    let keeps = |base: &&Base| search.keeps_to_budgets(&base.gone);
    for base in start.bases.iter().filter(keeps) {
        if asking.works(&base.gone) == Some(true) {
            keep(&mut best, search.found(base.gone.clone()));
            if is_best(best.as_ref(), start.least) {
                return best;
            }
        }
    }
    let everywhere = Base { gone: Jobs::none(search.jobs.len()), inside: by_nodes(search) };
    'bases: for base in start.bases.iter().filter(keeps).chain([&everywhere]) {
        for order in orders(search, base) {
            if has_asked_enough(search, asking) {
                break 'bases;
            }
            if let Some(found) = added(search, base, &order, asking) {
                keep(&mut best, found);
                if is_best(best.as_ref(), start.least) {
                    return best;
                }
            }
        }
    }
    if best.is_none() {
        // Jobs that are requeued need no other place: so they alone may make room where none was made with moves.
        let mut requeued = everywhere;
        requeued.inside.retain(|&job| !search.jobs[job].moves);
        let orders = orders(search, &requeued);
        best = orders.iter().find_map(|order| added(search, &requeued, order, asking));
    }
    while let Some(cheaper) = best.as_ref().and_then(|best| varied(search, best, asking)) {
        best = Some(cheaper);
    }
    best
}

/// The plan of a base to which jobs are added in some order.
fn added(
    search: &RoomSearch<'_>,
    base: &Base,
    order: &[usize],
    asking: &mut Asking<'_>,
) -> Option<FoundRoom> {
    let found = grown(base, order, asking)?;
    Some(search.found(shrunk(search, found, asking)?))
}

/// Half of the questions are for the search that proves.
pub(super) fn has_asked_enough(search: &RoomSearch<'_>, asking: &Asking<'_>) -> bool {
    asking.questions() > search.effort.questions / 2
}

/// A cheaper plan that keeps a job which the plan requeues, the dearest of them if possible, and requeues others instead.
fn varied(search: &RoomSearch<'_>, plan: &FoundRoom, asking: &mut Asking<'_>) -> Option<FoundRoom> {
    let mut dearest: Vec<usize> = plan.gone.iter().collect();
    dearest.sort_by(|&a, &b| search.jobs[b].cost.total_cmp(&search.jobs[a].cost).then(a.cmp(&b)));
    for job in dearest {
        let mut gone = plan.gone.clone();
        gone.remove(job);
        let mut base = Base { gone, inside: by_nodes(search) };
        base.inside.retain(|&other| other != job);
        for order in orders(search, &base) {
            if has_asked_enough(search, asking) {
                return None;
            }
            let found = added(search, &base, &order, asking);
            if found.as_ref().is_some_and(|found| found.cost < plan.cost) {
                return found;
            }
        }
    }
    None
}

/// All jobs, those with the least cost for their nodes first.
fn by_nodes(search: &RoomSearch<'_>) -> Vec<usize> {
    let cost = |job: &usize| {
        let job = &search.jobs[*job];
        job.cost / job.placement.held().count().max(1) as f64
    };
    let mut jobs: Vec<usize> = (0..search.jobs.len()).collect();
    jobs.sort_by(|a, b| cost(a).total_cmp(&cost(b)).then(a.cmp(b)));
    jobs
}

/// Keeps the cheaper one.
pub(super) fn keep(best: &mut Option<FoundRoom>, found: FoundRoom) {
    if best.as_ref().is_none_or(|best| found.cost < best.cost) {
        *best = Some(found);
    }
}

/// Orders in which jobs of the place of a base may be added: by cost for the slots there, by cost alone, and by cost for the links that
/// they may use. None uses up more of a budget than there is.
fn orders(search: &RoomSearch<'_>, base: &Base) -> [Vec<usize>; 3] {
    let sorted = |cost: &dyn Fn(usize) -> f64| {
        let mut order = base.inside.clone();
        order.sort_by(|&a, &b| cost(a).total_cmp(&cost(b)).then(a.cmp(&b)));
        order
    };
    let cost = |job: usize| search.jobs[job].cost;
    let for_links = |job: usize| {
        let placement = search.jobs[job].placement;
        cost(job) / (1 + placement.links().len() + placement.crossed().len()) as f64
    };
    let mut orders = [base.inside.clone(), sorted(&cost), sorted(&for_links)];
    for order in &mut orders {
        let mut used = search.used(&base.gone);
        order.retain(|&job| match search.jobs[job].group {
            _ if base.gone.contains(job) => false,
            Some(group) => {
                let with = used[group].saturating_add(search.jobs[job].uses);
                let keeps = with <= search.effort.budgets[group];
                if keeps {
                    used[group] = with;
                }
                keeps
            }
            None => true,
        });
    }
    orders
}

/// The base and as few of the first jobs of the order as the policy needs to place the request, if more room is not in its way.
fn grown(base: &Base, order: &[usize], asking: &mut Asking<'_>) -> Option<Jobs> {
    let with = |count: usize| {
        let mut set = base.gone.clone();
        order[..count].iter().for_each(|&job| set.insert(job));
        set
    };
    let (mut low, mut high) = (0, order.len());
    if !asking.fits(&with(high))? {
        return None;
    }
    while low < high {
        let middle = low.midpoint(high);
        if asking.fits(&with(middle))? {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(with(high))
}

/// The same without the jobs that the policy does not need to be gone; none if those that move then do not fit.
fn shrunk(search: &RoomSearch<'_>, mut gone: Jobs, asking: &mut Asking<'_>) -> Option<Jobs> {
    if let Some(needed) = needed(search, &gone, asking)
        && asking.fits(&needed) == Some(true)
    {
        gone = needed;
    }
    let mut order: Vec<usize> = gone.iter().collect();
    order.sort_by(|&a, &b| search.jobs[b].cost.total_cmp(&search.jobs[a].cost).then(a.cmp(&b)));
    for job in order {
        let mut fewer = gone.clone();
        fewer.remove(job);
        match asking.fits(&fewer) {
            Some(true) => gone = fewer,
            Some(false) => {}
            None => break,
        }
    }
    asking.works(&gone)?.then_some(gone)
}

/// The jobs of a set that hold nodes or links of the place that the policy then finds.
fn needed(search: &RoomSearch<'_>, gone: &Jobs, asking: &mut Asking<'_>) -> Option<Jobs> {
    let placement = asking.place_request(gone)?;
    let mut nodes: Vec<u32> = placement.held().collect();
    nodes.sort_unstable();
    let in_the_way = |other: &Placement| {
        other.held().any(|node| nodes.binary_search(&node).is_ok())
            || other.links().iter().any(|link| placement.links().binary_search(link).is_ok())
            || (placement.is_isolated() || other.is_isolated())
                && (other.links().is_empty() || placement.links().is_empty())
                && other.crossed().iter().any(|group| placement.crossed().contains(group))
    };
    let jobs = gone.iter().filter(|&job| in_the_way(search.jobs[job].placement));
    Some(Jobs::of(search.jobs.len(), jobs))
}
