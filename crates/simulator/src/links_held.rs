//! Records the links of each job over time, and its share of full bandwidth on them.

use std::collections::HashMap;
use std::sync::Arc;

use topolane_fabric::CableId;
use topolane_placement::Placement;

/// The links of a job from one time until the next entry, or until its end.
#[derive(Debug, Clone)]
pub struct LinksHeld {
    /// The beginning, in seconds.
    pub from: f64,
    /// The placement whose links the job owns.
    pub placement: Arc<Placement>,
    /// Links lent to the job, ascending.
    pub lent: Box<[CableId]>,
    /// The job's share of full bandwidth on all these links.
    pub bandwidth_share: f64,
}

/// The running jobs that own links, or owned some before they were moved.
#[derive(Debug, Default)]
pub(crate) struct LinkLog {
    running: HashMap<u64, LinkHolder>,
}

#[derive(Debug)]
struct LinkHolder {
    begin: f64,
    since: f64,
    /// The integral of the share until `since`, in seconds.
    had: f64,
    /// One entry for each change; never empty.
    held: Vec<LinksHeld>,
}

impl LinkLog {
    /// Records that a job is now on this placement. Links lent to it on the old one are gone.
    pub fn place(&mut self, id: u64, placement: &Arc<Placement>, start: f64, now: f64) {
        if placement.links().is_empty() && !self.running.contains_key(&id) {
            return;
        }
        let entry = LinksHeld {
            from: now,
            placement: Arc::clone(placement),
            lent: Box::default(),
            bandwidth_share: placement.bandwidth_share(),
        };
        let holder = self.running.entry(id).or_insert_with(|| LinkHolder {
            begin: start,
            since: now,
            // Inside one leaf it had full bandwidth and needed no links.
            had: now - start,
            held: Vec::new(),
        });
        holder.change(entry, now);
    }

    /// Records that a job is now lent these links and has this share.
    pub fn lend(&mut self, id: u64, lent: &[CableId], bandwidth_share: f64, now: f64) {
        let Some(holder) = self.running.get_mut(&id) else { return };
        let Some(last) = holder.held.last() else { return };
        let changed =
            last.bandwidth_share.total_cmp(&bandwidth_share).is_ne() || *last.lent != *lent;
        let placement = Arc::clone(&last.placement);
        if changed {
            holder.change(
                LinksHeld { from: now, placement, lent: lent.into(), bandwidth_share },
                now,
            );
        } else {
            holder.count(now);
        }
    }

    /// Removes a job that ends. Returns its links over time and the mean of its share; `None` if it owned no links.
    pub fn end(&mut self, id: u64, now: f64) -> Option<(Vec<LinksHeld>, f64)> {
        let mut holder = self.running.remove(&id)?;
        holder.count(now);
        let placed = |held: &LinksHeld| held.placement.bandwidth_share();
        let mean = if holder.held.iter().all(|held| placed(held) >= 1.0) {
            1.0
        } else if now > holder.begin {
            holder.had / (now - holder.begin)
        } else {
            holder.held.last().map_or(1.0, placed)
        };
        Some((holder.held, mean))
    }
}

impl LinkHolder {
    /// Adds the share up to now to the integral.
    fn count(&mut self, now: f64) {
        let bandwidth_share = self.held.last().map_or(1.0, |held| held.bandwidth_share);
        self.had += bandwidth_share * (now - self.since);
        self.since = now;
    }

    /// Adds an entry. It replaces an entry of the same time.
    fn change(&mut self, entry: LinksHeld, now: f64) {
        self.count(now);
        if self.held.last().is_some_and(|last| last.from >= now) {
            self.held.pop();
        }
        self.held.push(entry);
    }
}
