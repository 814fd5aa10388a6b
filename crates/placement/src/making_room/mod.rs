//! Room for a request: which running jobs must go or move so that a policy places it, at the least cost.
//!
//! The policy itself is asked what it would do once some jobs are gone; nothing here knows its rule. What it needs in any
//! case, enough slots in the right places, is a knapsack problem ([`cover`]). Its solution is a bound, and mostly the answer. Where the
//! policy wants more, links of its own for instance, [`first`] looks for good plans and [`tree`] for better ones, until nothing can
//! be better or enough was asked.

mod asking;
mod cover;
mod few;
mod first;
mod jobs;
mod knapsack;
mod tree;

use std::fmt;
use std::sync::Arc;

use self::asking::Asking;
use self::cover::{Cover, Start};
use self::few::{few, plans_of_few};
use self::first::first_plans;
use self::jobs::Jobs;
use self::tree::improve;
use topolane_fabric::Fabric;

use crate::homes::Homes;
use crate::occupancy::Occupancy;
use crate::placement::Placement;
use crate::policy::{Policy, RoomHelps};
use crate::request::Request;
use crate::within::Within;

/// What may be done to a running job to make room.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Disruption {
    /// Nothing.
    Untouchable,
    /// It may be stopped and queued again. That costs so many node-seconds: what it has done since its last checkpoint, or since it started.
    /// A cost that is negative or no finite number counts as untouchable.
    Requeue(f64),
    /// It may be moved to other nodes, for so many node-seconds: the time it stands still, times its nodes. The same holds for its cost.
    Move(f64),
}

/// A job that runs.
#[derive(Debug, Clone, Copy)]
pub struct Present<'a> {
    /// What it asked for. A job that is moved asks for it again; of a range it keeps the number of nodes that it has.
    pub request: &'a Request,
    /// What it holds.
    pub placement: &'a Arc<Placement>,
    /// What may be done to it.
    pub disruption: Disruption,
    /// Its place in [`Effort::budgets`]; `None` if any number of its like may be disturbed.
    pub group: Option<usize>,
}

/// How much may be disturbed, and how long to search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effort {
    /// How many jobs of each group may be disturbed at most.
    pub budgets: Vec<u32>,
    /// How often the policy is asked at most.
    pub questions: u32,
    /// States of the search that are looked at, at most: 0 if no proof is wanted that a plan is the cheapest.
    pub states: u32,
}

impl Effort {
    /// No budgets, and a search of about the same time on machines of all sizes: the more nodes, the fewer questions.
    pub fn on(fabric: &Fabric) -> Self {
        let questions = (QUESTIONS_TIMES_NODES / fabric.nodes().max(1)).clamp(400, 10_000);
        Effort { budgets: Vec::new(), questions, states: 10 * questions }
    }
}

/// How often a machine of one node would be asked about.
const QUESTIONS_TIMES_NODES: u32 = 1_300_000;

/// Jobs to be requeued or moved, and the place that is then free.
#[derive(Debug, Clone, PartialEq)]
pub struct RoomPlan {
    /// The jobs that must be requeued, by ascending identity.
    pub requeued: Vec<u64>,
    /// The jobs that move, by ascending identity, and their new places. Their old places may be among the new ones.
    pub moved: Vec<(u64, Arc<Placement>)>,
    /// What that costs in all, node-seconds.
    pub cost: f64,
    /// No plan costs less: the plan is the cheapest if this is its cost.
    pub least: f64,
    /// Where the policy places the request once they are gone.
    pub placement: Arc<Placement>,
    /// How often the policy was asked.
    pub questions: u32,
}

/// Why there is no plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoRoom {
    /// No plan that keeps to the budgets makes room.
    Impossible,
    /// None was found before enough was asked.
    NotFound {
        /// How often the policy was asked.
        questions: u32,
    },
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoRoom::Impossible => f.write_str("no jobs that may be disturbed hold what is missing"),
            NoRoom::NotFound { questions } => {
                write!(f, "no room was found with {questions} questions")
            }
        }
    }
}

impl std::error::Error for NoRoom {}

/// Sums of the same costs in another order differ by no more than this part.
const ROUNDING: f64 = 1e-9;

/// A job that may go or move.
#[derive(Debug, Clone, Copy)]
struct Touchable<'a> {
    request: &'a Request,
    placement: &'a Arc<Placement>,
    cost: f64,
    /// Whether it needs another place.
    moves: bool,
    group: Option<usize>,
}

/// The cheapest jobs found that must go or move so that the policy places the request, and then the jobs that move, those with
/// most nodes first. `present` are the jobs that run; what they hold is
/// held in `occupancy`, which is as before when this returns.
///
/// The plan is verified: the policy has placed the request in the state without these jobs. [`RoomPlan::least`] is a proven bound if the
/// policy tells the truth about itself ([`Policy::homes`](crate::Policy::homes), [`Policy::room_helps`](crate::Policy::room_helps)). The
/// answer depends on the arguments alone, and not on the order of `present`.
///
/// # Errors
/// That there is no plan, or that none was found with [`Effort::questions`].
pub fn make_room(
    policy: &dyn Policy,
    request: &Request,
    occupancy: &mut Occupancy,
    present: &[Present<'_>],
    effort: &Effort,
) -> Result<RoomPlan, NoRoom> {
    let jobs = touchable(present, &effort.budgets);
    let homes = homes(policy, request, occupancy);
    let cover = Cover::new(request, occupancy, &jobs, &effort.budgets, homes);
    let none = Jobs::none(jobs.len());
    let fabric = Arc::clone(occupancy.fabric());
    let mut asking = Asking::new(policy, request, occupancy, &jobs, &cover, effort.questions);
    if let Some(places) = asking.place(&none) {
        return Ok(asking.plan(&none, 0.0, places));
    }
    let search = Search {
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
    let places = asking.place(&best.gone);
    let places = places.ok_or(NoRoom::NotFound { questions: asking.questions() })?;
    let least = if is_best(Some(&best), least) { best.cost } else { least };
    Ok(asking.plan(&best.gone, least, places))
}

/// What the parts of the search share.
struct Search<'a> {
    jobs: &'a [Touchable<'a>],
    cover: &'a Cover<'a>,
    effort: &'a Effort,
    /// Whether what finds a place still finds one when more jobs are gone.
    room_helps: bool,
}

/// Jobs without which the policy places the request.
#[derive(Debug, Clone)]
struct Found {
    gone: Jobs,
    cost: f64,
}

impl Search<'_> {
    fn found(&self, gone: Jobs) -> Found {
        let cost = gone.iter().map(|job| self.jobs[job].cost).sum();
        Found { gone, cost }
    }

    /// How many jobs of each group with a budget are in a set.
    fn used(&self, set: &Jobs) -> Vec<u32> {
        let mut used = vec![0; self.effort.budgets.len()];
        for group in set.iter().filter_map(|job| self.jobs[job].group) {
            used[group] += 1;
        }
        used
    }

    fn keeps_to_budgets(&self, set: &Jobs) -> bool {
        self.used(set).iter().zip(&self.effort.budgets).all(|(used, most)| used <= most)
    }
}

/// Whether nothing can be better than the best plan, but for rounding.
fn is_best(best: Option<&Found>, least: f64) -> bool {
    best.is_some_and(|best| best.cost <= least * (1.0 + ROUNDING))
}

/// The jobs that may go, in the order of their identities.
fn touchable<'a>(present: &[Present<'a>], budgets: &[u32]) -> Vec<Touchable<'a>> {
    let touchable = |job: &Present<'a>| {
        let (cost, moves) = match job.disruption {
            Disruption::Untouchable => return None,
            Disruption::Requeue(cost) => (cost, false),
            Disruption::Move(cost) => (cost, true),
        };
        let group = job.group.filter(|&group| group < budgets.len());
        let may_go = group.is_none_or(|group| budgets[group] > 0);
        let is_cost = cost.is_finite() && cost >= 0.0;
        let Present { request, placement, .. } = *job;
        (may_go && is_cost).then_some(Touchable { request, placement, cost, moves, group })
    };
    let mut jobs: Vec<Touchable<'a>> = present.iter().filter_map(touchable).collect();
    jobs.sort_by_key(|job| job.request.id);
    jobs
}

/// Where parts of the request must lie.
fn homes(policy: &dyn Policy, request: &Request, occupancy: &Occupancy) -> Option<Homes> {
    match request.within {
        Within::Required(level) => Homes::of_level(occupancy.fabric(), level, request.nodes),
        _ if is_asked_itself(policy, request) => policy.homes(request, occupancy),
        _ => None,
    }
}

/// Whether the policy is asked about the request itself. A rule that knows no groups is asked about the free nodes of one
/// group after another, and what it says of the request need not hold for these.
fn is_asked_itself(policy: &dyn Policy, request: &Request) -> bool {
    policy.reads_within() || matches!(request.within, Within::Unsaid | Within::Anywhere)
}
