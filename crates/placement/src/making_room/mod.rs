//! Room for a request: which running jobs must go or move so that a policy places it, at the least cost.
//!
//! The policy itself is asked what it would do once some jobs are gone; nothing here knows its rule. What it needs in any
//! case, enough slots in the right places, is a knapsack problem ([`cover`]). Its solution is a bound, and mostly the answer. Where the
//! policy wants more, links of its own for instance, [`first`] looks for good plans and [`tree`] for better ones, until nothing can
//! be better or enough was asked.

mod asking;
mod counts;
mod cover;
mod few;
mod first;
mod jobs;
mod knapsack;
mod plan;
mod search;
mod tree;

use std::sync::Arc;

use self::asking::{Asking, is_asked_itself};
pub use self::counts::{CountedAmounts, FreedAmounts};
use self::cover::{Cover, Start};
use self::few::{few, plans_of_few};
use self::first::first_plans;
use self::jobs::Jobs;
use self::plan::touchable;
pub use self::plan::{Disruption, NoRoom, PresentJob, RoomEffort, RoomPlan};
use self::search::{FoundRoom, RoomSearch, is_best};
use self::tree::improve;
use crate::homes::Homes;
use crate::level::Within;
use crate::occupancy::Occupancy;
use crate::policy::{Policy, RoomHelps};
use crate::request::Request;

/// The cheapest jobs found that must go or move so that the policy places the request, and then the jobs that move, those with
/// most nodes first. `present` are the jobs that run; what they hold is
/// held in `occupancy`, which is as before when this returns.
///
/// The plan is verified: the policy has placed the request in the state without these jobs. [`RoomPlan::least`] is a proven bound if the
/// policy describes itself correctly ([`Policy::homes`](crate::Policy::homes), [`Policy::room_helps`](crate::Policy::room_helps)). The
/// answer depends on the arguments alone, and not on the order of `present`.
///
/// # Errors
/// That there is no plan, or that none was found with [`RoomEffort::questions`].
pub fn make_room(
    policy: &dyn Policy,
    request: &Request,
    occupancy: &mut Occupancy,
    present: &[PresentJob<'_>],
    effort: &RoomEffort,
) -> Result<RoomPlan, NoRoom> {
    by_rank(policy, request, occupancy, present, None, effort)
}

/// The same for a request whose slots another system counts, whose [`Request::slots`] and [`Request::room`] are not looked at.
///
/// # Errors
/// As [`make_room`].
pub fn make_counted_room(
    policy: &dyn Policy,
    request: &Request,
    occupancy: &mut Occupancy,
    present: &[PresentJob<'_>],
    counts: &CountedAmounts,
    effort: &RoomEffort,
) -> Result<RoomPlan, NoRoom> {
    let slots = Some(counts.slots([]));
    let room = Some(counts.most.as_slice().into());
    let request = Request { slots, room, ..request.clone() };
    by_rank(policy, &request, occupancy, present, Some(counts), effort)
}

/// The cheapest jobs of the lowest ranks that make room: first without those of higher ranks.
fn by_rank(
    policy: &dyn Policy,
    request: &Request,
    occupancy: &mut Occupancy,
    present: &[PresentJob<'_>],
    counts: Option<&CountedAmounts>,
    effort: &RoomEffort,
) -> Result<RoomPlan, NoRoom> {
    let mut ranks: Vec<u32> = present.iter().map(|job| job.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let last = ranks.pop().unwrap_or(0);
    let mut left = effort.clone();
    for rank in ranks {
        match up_to_rank(policy, request, occupancy, present, rank, counts, &left) {
            Ok(plan) => return Ok(plan),
            Err(NoRoom::Impossible) => {}
            Err(NoRoom::NotFound { questions }) => {
                left.questions = left.questions.saturating_sub(questions);
            }
        }
    }
    up_to_rank(policy, request, occupancy, present, last, counts, &left)
}

fn up_to_rank(
    policy: &dyn Policy,
    request: &Request,
    occupancy: &mut Occupancy,
    present: &[PresentJob<'_>],
    rank: u32,
    counts: Option<&CountedAmounts>,
    effort: &RoomEffort,
) -> Result<RoomPlan, NoRoom> {
    let jobs = touchable(present, &effort.budgets, rank);
    let homes = homes(policy, request, occupancy);
    let cover = Cover::new(request, occupancy, &jobs, &effort.budgets, homes, counts);
    let none = Jobs::none(jobs.len());
    let fabric = Arc::clone(occupancy.fabric());
    let mut asking =
        Asking::new(policy, request, occupancy, &jobs, &cover, counts, effort.questions);
    if let Some(places) = asking.place(&none) {
        return Ok(asking.plan(&none, 0.0, places));
    }
    let search = RoomSearch {
        jobs: &jobs,
        cover: &cover,
        effort,
        room_helps: policy.room_helps(request) == RoomHelps::Always
            && is_asked_itself(policy, request),
    };
    let few = few(&search);
    // A bound that nothing is compared with need not be computed.
    let start = match few {
        Some(_) if effort.states == 0 => Start { least: 0.0, bases: Vec::new() },
        _ => cover.start(request, &fabric),
    };
    if start.least.is_infinite() {
        return Err(NoRoom::Impossible);
    }
    let mut best = match few {
        Some(most) => plans_of_few(&search, most, &mut asking),
        None => first_plans(&search, &start, &mut asking),
    };
    let least = improve(&search, start.least, &mut best, &mut asking);
    let Some(best) = best else {
        let questions = asking.questions();
        return Err(if least.is_infinite() {
            NoRoom::Impossible
        } else {
            NoRoom::NotFound { questions }
        });
    };
    let best = if effort.states > 0 { spared(&search, best, least, &mut asking) } else { best };
    let places = asking.place(&best.gone);
    let places = places.ok_or(NoRoom::NotFound { questions: asking.questions() })?;
    let least = if is_best(Some(&best), least) { best.cost } else { least };
    Ok(asking.plan(&best.gone, least, places))
}

/// A plan without jobs that need not go: those that cost nothing and, if the plan may not be the cheapest, any.
fn spared(
    search: &RoomSearch<'_>,
    best: FoundRoom,
    least: f64,
    asking: &mut Asking<'_>,
) -> FoundRoom {
    let is_proven = is_best(Some(&best), least);
    let mut order: Vec<usize> = best.gone.iter().collect();
    order.retain(|&job| !is_proven || search.jobs[job].cost == 0.0);
    order.sort_by(|&a, &b| search.jobs[b].cost.total_cmp(&search.jobs[a].cost).then(b.cmp(&a)));
    let mut gone = best.gone;
    for job in order {
        let mut fewer = gone.clone();
        fewer.remove(job);
        if asking.works(&fewer) == Some(true) {
            gone = fewer;
        }
    }
    search.found(gone)
}

/// Where parts of the request must lie.
fn homes(policy: &dyn Policy, request: &Request, occupancy: &Occupancy) -> Option<Homes> {
    match request.within {
        Within::Required(level) => Homes::of_level(occupancy.fabric(), level, request.nodes),
        _ if is_asked_itself(policy, request) => policy.homes(request, occupancy),
        _ => None,
    }
}
