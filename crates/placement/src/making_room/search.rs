//! What the parts of the search share.

use super::cover::Cover;
use super::jobs::Jobs;
use super::plan::{RoomEffort, Touchable};

/// Sums of the same costs in another order differ by no more than this part.
const ROUNDING: f64 = 1e-9;

/// The jobs, the bound and the limits of a search.
pub struct RoomSearch<'a> {
    pub jobs: &'a [Touchable<'a>],
    pub cover: &'a Cover<'a>,
    pub effort: &'a RoomEffort,
    /// Whether what finds a place still finds one when more jobs are gone.
    pub room_helps: bool,
}

/// Jobs without which the policy places the request.
#[derive(Debug, Clone)]
pub struct FoundRoom {
    pub gone: Jobs,
    pub cost: f64,
}

impl RoomSearch<'_> {
    pub fn found(&self, gone: Jobs) -> FoundRoom {
        let cost = gone.iter().map(|job| self.jobs[job].cost).sum();
        FoundRoom { gone, cost }
    }

    /// How much of each budget the jobs of a set use up.
    pub fn used(&self, set: &Jobs) -> Vec<u32> {
        let mut used = vec![0u32; self.effort.budgets.len()];
        for job in set.iter().map(|job| &self.jobs[job]) {
            if let Some(group) = job.group {
                used[group] = used[group].saturating_add(job.uses);
            }
        }
        used
    }

    pub fn keeps_to_budgets(&self, set: &Jobs) -> bool {
        self.used(set).iter().zip(&self.effort.budgets).all(|(used, most)| used <= most)
    }
}

/// Whether nothing can be better than the best plan, but for rounding.
pub fn is_best(best: Option<&FoundRoom>, least: f64) -> bool {
    best.is_some_and(|best| best.cost <= least * (1.0 + ROUNDING))
}
