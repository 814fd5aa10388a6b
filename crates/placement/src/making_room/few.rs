//! Plans where only a few jobs may be disturbed: all sets of them, as far as the policy needs to be asked about them.

use super::asking::Asking;
use super::first::{has_asked_enough, keep};
use super::jobs::Jobs;
use super::search::{FoundRoom, RoomSearch};

/// The most jobs that count as few.
const FEW: u32 = 3;

/// How many jobs may be disturbed in all, if these are few.
pub(super) fn few(search: &RoomSearch<'_>) -> Option<u32> {
    let all_count = search.jobs.iter().all(|job| job.group.is_some());
    let most = search.effort.budgets.iter().copied().fold(0, u32::saturating_add);
    (all_count && most <= FEW).then_some(most)
}

/// The cheapest plan of up to `most` jobs. Single jobs come first, then pairs that are cheaper than the best plan, and so on.
///
/// The dearest job of a set is chosen first. If the request does not fit without that job and all cheaper ones, no set of these makes
/// room. So the policy is asked about few sets, if more room is never in its way.
pub(super) fn plans_of_few(
    search: &RoomSearch<'_>,
    most: u32,
    asking: &mut Asking<'_>,
) -> Option<FoundRoom> {
    let mut order: Vec<usize> = (0..search.jobs.len()).collect();
    let cost = |job: usize| search.jobs[job].cost;
    order.sort_by(|&a, &b| cost(a).total_cmp(&cost(b)).then(a.cmp(&b)));
    let mut few = Few { search, order, best: None };
    for count in 1..=most {
        let chosen = Jobs::none(search.jobs.len());
        if few.extend(&chosen, few.order.len(), count, asking).is_none() {
            break;
        }
    }
    few.best
}

struct Few<'a> {
    search: &'a RoomSearch<'a>,
    /// The jobs by cost.
    order: Vec<usize>,
    best: Option<FoundRoom>,
}

impl Few<'_> {
    /// Looks for plans of the chosen jobs and `count` of the first `limit`; `None` once the policy was asked often enough.
    fn extend(
        &mut self,
        chosen: &Jobs,
        limit: usize,
        count: u32,
        asking: &mut Asking<'_>,
    ) -> Option<()> {
        let limit = self.cheaper(chosen, limit);
        // The fewest of the first jobs that are enough, all together.
        let (mut low, mut high) = (0, limit);
        if !self.fits(chosen, 0..high, asking)? {
            return Some(());
        }
        while low < high {
            let middle = low.midpoint(high);
            if self.fits(chosen, 0..middle, asking)? {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        for dearest in high.saturating_sub(1)..limit {
            if dearest >= self.cheaper(chosen, limit) {
                break;
            }
            let mut with = chosen.clone();
            with.insert(self.order[dearest]);
            if count > 1 {
                self.extend(&with, dearest, count - 1, asking)?;
            } else if self.fits(&with, 0..0, asking)?
                && self.search.keeps_to_budgets(&with)
                && asking.works(&with)?
            {
                keep(&mut self.best, self.search.found(with));
                break;
            }
        }
        Some(())
    }

    /// How many of the first jobs, each together with the chosen ones, cost less than the best plan.
    fn cheaper(&self, chosen: &Jobs, limit: usize) -> usize {
        let Some(best) = &self.best else { return limit };
        let paid = self.search.found(chosen.clone()).cost;
        let is_cheaper = |&job: &usize| paid + self.search.jobs[job].cost < best.cost;
        self.order[..limit].partition_point(is_cheaper)
    }

    fn fits(
        &self,
        chosen: &Jobs,
        more: std::ops::Range<usize>,
        asking: &mut Asking<'_>,
    ) -> Option<bool> {
        if has_asked_enough(self.search, asking) {
            return None;
        }
        let mut gone = chosen.clone();
        self.order[more].iter().for_each(|&job| gone.insert(job));
        asking.fits(&gone)
    }
}
