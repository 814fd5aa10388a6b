//! Links that are out of service for a time.

use std::collections::HashMap;

use topolane_fabric::CableId;
use topolane_scheduler::Scheduler;

/// Cables that fail together. Times in seconds since the workload's epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct Outage {
    /// The cables.
    pub cables: Vec<CableId>,
    /// When they fail.
    pub from: f64,
    /// When they are there again; infinite for never.
    pub until: f64,
}

/// What fails and comes back, in order of time.
pub(crate) struct Outages<'a> {
    /// Time, whether they fail, cables.
    changes: Vec<(f64, bool, &'a [CableId])>,
    next: usize,
    /// By how many outages a cable is out.
    out: HashMap<CableId, u32>,
}

impl<'a> Outages<'a> {
    /// Those of a run that begins at `first`.
    pub fn new(outages: &'a [Outage], first: f64) -> Self {
        let mut changes: Vec<(f64, bool, &[CableId])> = Vec::new();
        for Outage { cables, from, until } in outages.iter().filter(|outage| outage.until > first) {
            changes.push((from.max(first), true, cables));
            if until.is_finite() {
                changes.push((*until, false, cables));
            }
        }
        // At one time what fails first: a link between two outages does not come back.
        changes.sort_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)));
        Outages { changes, next: 0, out: HashMap::new() }
    }

    /// When something fails or comes back next.
    pub fn next(&self) -> Option<f64> {
        self.changes.get(self.next).map(|change| change.0)
    }

    /// Lets fail and come back what is due by `now`; answers the running jobs that may use what fails.
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
