//! What is asked of the planner, and its answer.

use std::fmt;
use std::sync::Arc;

use topolane_fabric::Fabric;

use crate::placement::Placement;
use crate::request::Request;

/// What may be done to a running job to make room.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Disruption {
    /// Nothing.
    Untouchable,
    /// It may be stopped and queued again, at this cost in node-seconds: what it has done since its last checkpoint, or since it started.
    /// A cost that is negative or no finite number counts as untouchable.
    Requeue(f64),
    /// It may be moved to other nodes, at this cost in node-seconds: the time it stands still, times its nodes. The same holds for its cost.
    Move(f64),
}

/// A job that runs.
#[derive(Debug, Clone, Copy)]
pub struct PresentJob<'a> {
    /// What it asked for. A job that is moved asks for it again; of a range it keeps the number of nodes that it has.
    pub request: &'a Request,
    /// What it holds.
    pub placement: &'a Arc<Placement>,
    /// What may be done to it.
    pub disruption: Disruption,
    /// Its place in [`RoomEffort::budgets`]; `None` if any number of its like may be disturbed.
    pub group: Option<usize>,
    /// How much of that budget it uses up.
    pub uses: u32,
    /// Jobs of a higher rank are disturbed only if those of lower ranks make no room.
    pub rank: u32,
}

/// How much may be disturbed, and how long to search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomEffort {
    /// How much of each group may be disturbed at most, as [`PresentJob::uses`] counts.
    pub budgets: Vec<u32>,
    /// How often the policy is asked at most.
    pub questions: u32,
    /// States of the search that are looked at, at most: 0 if no proof is wanted that a plan is the cheapest.
    pub states: u32,
}

impl RoomEffort {
    /// No budgets, and a search of about the same time on machines of all sizes: the more nodes, the fewer questions.
    pub fn on(fabric: &Fabric) -> Self {
        let questions = (QUESTIONS_TIMES_NODES / fabric.nodes().max(1)).clamp(400, 10_000);
        RoomEffort { budgets: Vec::new(), questions, states: 10 * questions }
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
    /// No plan without jobs of higher ranks costs less: the plan is the cheapest if this is its cost.
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

/// A job that may go or move.
#[derive(Debug, Clone, Copy)]
pub struct Touchable<'a> {
    pub request: &'a Request,
    pub placement: &'a Arc<Placement>,
    pub cost: f64,
    /// Whether it needs another place.
    pub moves: bool,
    pub group: Option<usize>,
    /// How much of the budget of its group it uses up, at least 1.
    pub uses: u32,
    /// Its place among the jobs that were given.
    pub place: usize,
}

/// The jobs that may go, in the order of their identities: those up to a rank.
pub fn touchable<'a>(present: &[PresentJob<'a>], budgets: &[u32], rank: u32) -> Vec<Touchable<'a>> {
    let touchable = |(place, job): (usize, &PresentJob<'a>)| {
        let (cost, moves) = match job.disruption {
            Disruption::Untouchable => return None,
            Disruption::Requeue(cost) => (cost, false),
            Disruption::Move(cost) => (cost, true),
        };
        let group = job.group.filter(|&group| group < budgets.len() && job.uses > 0);
        let may_go = group.is_none_or(|group| budgets[group] >= job.uses) && job.rank <= rank;
        let is_cost = cost.is_finite() && cost >= 0.0;
        let PresentJob { request, placement, uses, .. } = *job;
        let found = Touchable { request, placement, cost, moves, group, uses, place };
        (may_go && is_cost).then_some(found)
    };
    let mut jobs: Vec<Touchable<'a>> = present.iter().enumerate().filter_map(touchable).collect();
    jobs.sort_by_key(|job| job.request.id);
    jobs
}
