//! Takes links out of service for a time.

use std::collections::HashMap;

use topolane_fabric::CableId;
use topolane_scheduler::Scheduler;

/// An outage: cables that fail together. Times are in seconds since the workload's epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct Outage {
    /// The cables.
    pub cables: Vec<CableId>,
    /// When the cables fail.
    pub from: f64,
    /// When the cables are back; infinite for never.
    pub until: f64,
}

/// Failing and returning cables, in order of time.
pub(crate) struct Outages<'a> {
    /// Changes as (time, whether the cables fail, cables).
    changes: Vec<(f64, bool, &'a [CableId])>,
    next: usize,
    /// For each cable, the number of outages that keep it out.
    out: HashMap<CableId, u32>,
}

impl<'a> Outages<'a> {
    /// Returns the outages of a run that begins at `first`.
    pub fn new(outages: &'a [Outage], first: f64) -> Self {
        let mut changes: Vec<(f64, bool, &[CableId])> = Vec::new();
        for Outage { cables, from, until } in outages.iter().filter(|outage| outage.until > first) {
            changes.push((from.max(first), true, cables));
            if until.is_finite() {
                changes.push((*until, false, cables));
            }
        }
        // At the same time, failures come first: a link between two outages does not come back in between.
        changes.sort_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)));
        Outages { changes, next: 0, out: HashMap::new() }
    }

    /// The time at which cables next fail or come back.
    pub fn next(&self) -> Option<f64> {
        self.changes.get(self.next).map(|change| change.0)
    }

    /// Applies the changes that are due by `now`. Returns the running jobs that may use failing cables.
    pub fn follow(&mut self, now: f64, scheduler: &mut Scheduler) -> Vec<u64> {
        let mut affected = Vec::new();
        while let Some(&(time, fails, cables)) = self.changes.get(self.next)
            && time <= now
        {
            self.next += 1;
            let changing = |&cable: &CableId| {
                let count = self.out.entry(cable).or_default();
                *count = if fails { *count + 1 } else { *count - 1 };
                *count == u32::from(fails)
            };
            let changing: Vec<CableId> = cables.iter().copied().filter(changing).collect();
            affected.extend(scheduler.set_links_in_service(&changing, !fails));
        }
        affected
    }
}
