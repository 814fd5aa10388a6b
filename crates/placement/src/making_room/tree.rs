//! The search for the cheapest plan: best first, with a bound.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::asking::Asking;
use super::first::keep;
use super::jobs::Jobs;
use super::search::{FoundRoom, RoomSearch, is_best};

/// Jobs of a cut that are looked for one by one; the others come along.
const OF_A_CUT: usize = 16;

/// Some jobs are gone, some stay, and about others nothing is decided.
struct SearchState {
    gone: Jobs,
    kept: Jobs,
    /// What the jobs that are gone cost.
    cost: f64,
    /// What any plan from here costs at least.
    bound: f64,
    /// Whether it is known that these jobs alone make no room.
    refused: bool,
    /// The order among states with the same bound.
    number: u32,
}

impl PartialEq for SearchState {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for SearchState {}

impl PartialOrd for SearchState {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SearchState {
    /// The greatest is the one to go on with: the least bound, then the one with most paid, then the latest.
    fn cmp(&self, other: &Self) -> Ordering {
        let bounds = other.bound.total_cmp(&self.bound);
        bounds.then(self.cost.total_cmp(&other.cost)).then(self.number.cmp(&other.number))
    }
}

/// Looks for a plan that is cheaper than `best`. Returns a lower bound for the cost of any plan: the cost of the best if it is
/// proven to be the cheapest, infinite if there is no plan at all.
///
/// Branch and bound, best first. If more room never is in the way of the policy, each refusal is made as large as possible:
/// jobs are added to those that are gone as long as the policy still refuses. One of the others, the *cut*, must go in every
/// plan. Cuts hold in all states of the search, as in implicit hitting sets (Moreno-Centeno, Karp: The implicit hitting set approach, 2013).
/// Otherwise, and where the request fits but not the jobs that move, all sets of jobs are tried in the order of their bounds.
pub(super) fn improve(
    search: &RoomSearch<'_>,
    least: f64,
    best: &mut Option<FoundRoom>,
    asking: &mut Asking<'_>,
) -> f64 {
    let none = Jobs::none(search.jobs.len());
    let root = SearchState {
        gone: none.clone(),
        kept: none,
        cost: 0.0,
        bound: least,
        refused: true,
        number: 0,
    };
    let mut tree =
        RoomTree { search, cuts: Vec::new(), states: BinaryHeap::from([root]), number: 0 };
    loop {
        let Some(state) = tree.states.pop() else {
            return best.as_ref().map_or(f64::INFINITY, |best| best.cost);
        };
        if is_best(best.as_ref(), state.bound) {
            return state.bound;
        }
        let bound = state.bound;
        if tree.number / 2 >= search.effort.states {
            return bound;
        }
        match tree.step(state, asking) {
            Some(SearchStep::Plan(found)) => keep(best, found),
            Some(SearchStep::On) => {}
            None => return bound,
        }
    }
}

struct RoomTree<'a> {
    search: &'a RoomSearch<'a>,
    /// Of each of these sets one job must go.
    cuts: Vec<Jobs>,
    states: BinaryHeap<SearchState>,
    number: u32,
}

enum SearchStep {
    Plan(FoundRoom),
    On,
}

impl RoomTree<'_> {
    /// Goes on from a state; `None` if enough was asked.
    fn step(&mut self, mut state: SearchState, asking: &mut Asking<'_>) -> Option<SearchStep> {
        let mut job = None;
        if self.open_cut(&state).is_none() {
            job = self.search.cover.needs(&state.gone, &state.kept).last;
            if job.is_none() {
                if !state.refused && asking.works(&state.gone)? {
                    return Some(SearchStep::Plan(self.search.found(state.gone)));
                }
                state.refused = true;
                if self.search.room_helps && !asking.fits(&state.gone)? {
                    let cut = self.cut(&state, asking)?;
                    self.cuts.push(cut);
                } else {
                    job = self.cheapest(&state, |_| true);
                }
            }
        }
        if let Some(cut) = self.open_cut(&state) {
            job = self.cheapest(&state, |job| cut.contains(job));
        }
        if let Some(job) = job {
            self.branch(state, job);
        }
        Some(SearchStep::On)
    }

    /// Of the cuts of which no job is gone the one with the fewest jobs that may go.
    fn open_cut(&self, state: &SearchState) -> Option<&Jobs> {
        let open = self.cuts.iter().filter(|cut| !cut.meets(&state.gone));
        open.min_by_key(|cut| cut.iter().filter(|&job| !state.kept.contains(job)).count())
    }

    fn cheapest(&self, state: &SearchState, may: impl Fn(usize) -> bool) -> Option<usize> {
        let jobs = &self.search.jobs;
        let open =
            |&job: &usize| may(job) && !state.kept.contains(job) && !state.gone.contains(job);
        (0..jobs.len()).filter(open).min_by(|&a, &b| jobs[a].cost.total_cmp(&jobs[b].cost))
    }

    /// With this job gone, and with it kept.
    fn branch(&mut self, state: SearchState, job: usize) {
        let mut kept = state.kept.clone();
        kept.insert(job);
        let mut gone = state.gone.clone();
        gone.insert(job);
        let cost = state.cost + self.search.jobs[job].cost;
        let mut others = state.kept;
        self.keep_those_over_budget(&gone, &mut others);
        self.push(gone, others, cost, state.bound, false);
        self.push(state.gone, kept, state.cost, state.bound, state.refused);
    }

    /// Jobs stay for which too little is left of their budget.
    fn keep_those_over_budget(&self, gone: &Jobs, kept: &mut Jobs) {
        let (jobs, budgets) = (self.search.jobs, &self.search.effort.budgets);
        let used = self.search.used(gone);
        let is_over = |job: usize| {
            let uses = jobs[job].uses;
            jobs[job].group.is_some_and(|group| used[group].saturating_add(uses) > budgets[group])
        };
        if !budgets.is_empty() {
            let over = (0..jobs.len()).filter(|&job| !gone.contains(job) && is_over(job));
            over.for_each(|job| kept.insert(job));
        }
    }

    fn push(&mut self, gone: Jobs, kept: Jobs, cost: f64, bound: f64, refused: bool) {
        let more = self.search.cover.needs(&gone, &kept).cost.max(self.cuts_cost(&gone, &kept));
        let bound = bound.max(cost + more);
        if bound.is_finite() {
            self.number += 1;
            self.states.push(SearchState { gone, kept, cost, bound, refused, number: self.number });
        }
    }

    /// What the cuts cost at least of which no job is gone: the cheapest job of each of some cuts that have none in common.
    fn cuts_cost(&self, gone: &Jobs, kept: &Jobs) -> f64 {
        let mut used = Jobs::none(self.search.jobs.len());
        let mut sum = 0.0;
        for cut in self.cuts.iter().filter(|cut| !cut.meets(gone)) {
            if !cut.meets(&used) {
                let open = cut.iter().filter(|&job| !kept.contains(job));
                sum += open.map(|job| self.search.jobs[job].cost).fold(f64::INFINITY, f64::min);
                used.add(cut);
            }
        }
        sum
    }

    /// A cut that a refused state does not meet: as many jobs as possible are gone and the policy still refuses; the others
    /// are the cut. Jobs that stay in this state go first, then the cheap ones, so that those of the cut are dear.
    fn cut(&mut self, state: &SearchState, asking: &mut Asking<'_>) -> Option<Jobs> {
        let jobs = self.search.jobs;
        let mut order: Vec<usize> =
            (0..jobs.len()).filter(|&job| !state.gone.contains(job)).collect();
        order.sort_by(|&a, &b| {
            let kept = state.kept.contains(b).cmp(&state.kept.contains(a));
            kept.then(jobs[a].cost.total_cmp(&jobs[b].cost)).then(a.cmp(&b))
        });
        let mut gone = state.gone.clone();
        let mut cut = Jobs::none(jobs.len());
        let mut rest = &order[..];
        for _ in 0..OF_A_CUT {
            // The most jobs of the rest that may go.
            let with = |count: usize| {
                let mut set = gone.clone();
                rest[..count].iter().for_each(|&job| set.insert(job));
                set
            };
            let (mut low, mut high) = (0, rest.len());
            while low < high {
                let middle = (low + high).div_ceil(2);
                if asking.fits(&with(middle))? {
                    high = middle - 1;
                } else {
                    low = middle;
                }
            }
            gone = with(low);
            rest = &rest[low..];
            let Some((&first, others)) = rest.split_first() else { break };
            cut.insert(first);
            rest = others;
        }
        for &job in rest {
            cut.insert(job);
        }
        Some(cut)
    }
}
