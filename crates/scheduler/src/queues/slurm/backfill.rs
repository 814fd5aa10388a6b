//! Backfill: a promise for every job in order, and a start for each that delays no promise.

use std::collections::HashMap;
use std::sync::Arc;

use topolane_fabric::NodeSet;
use topolane_placement::{Occupancy, Placement, Request};

use super::plan::Plan;
use super::{Slurm, Turn, limited};
use crate::running::RunningJob;
use crate::view::View;

/// Ends of running jobs that are tried together at first, seconds. Each time after that twice as many.
const TOGETHER: f64 = 30.0;

/// What can be done for a job.
enum Found {
    Now(NodeSet),
    Later(NodeSet, f64),
}

impl Slurm {
    /// Goes through the jobs in order. Each starts, or is promised nodes at a time, or neither.
    pub(super) fn run_backfill(&mut self, view: &mut View<'_>) {
        let mut plan = self.empty_plan(view);
        let schedulers = self.config.schedulers.clone();
        let (mut of_user, mut of_part) = (HashMap::new(), HashMap::new());
        for turn in self.turns(view).into_iter().take(schedulers.backfill_depth) {
            let seen = of_part.entry(turn.part).or_insert(0);
            *seen += 1;
            let too_many_of_part = is_over(*seen, schedulers.backfill_depth_partition);
            let seen = of_user.entry(Arc::clone(&turn.whose.user)).or_insert(0);
            *seen += 1;
            let too_many_of_user = is_over(*seen, schedulers.backfill_depth_user);
            if too_many_of_part
                || too_many_of_user
                || !self.held.admits(&turn.whose, turn.request.nodes)
            {
                continue;
            }
            match self.find(view, &plan, &turn) {
                Some(Found::Now(nodes)) => {
                    // The policy has just placed it on some of these nodes.
                    let _ = self.start(view, &turn, nodes);
                }
                Some(Found::Later(nodes, start)) => {
                    let (start, end) = self.slot(start, turn.request.walltime);
                    plan.promise(&nodes, start, end);
                }
                None => {}
            }
        }
    }

    fn empty_plan(&self, view: &View<'_>) -> Plan {
        let window = self.config.schedulers.backfill_window;
        let (begin, end) = (self.down(view.now), self.down(view.now + window));
        Plan::new(begin, end, self.usable(view))
    }

    /// Down to the resolution, in times of the day.
    fn down(&self, time: f64) -> f64 {
        let (step, epoch) = (self.config.schedulers.backfill_resolution, self.config.epoch);
        ((time + epoch) / step).floor() * step - epoch
    }

    /// From when to when a job that starts then is promised nodes.
    fn slot(&self, start: f64, walltime: f64) -> (f64, f64) {
        let step = self.config.schedulers.backfill_resolution;
        let begin = self.down(start);
        (begin, self.down(start + walltime + step - 1.0).max(begin + step))
    }

    /// When and where a job can start without delaying a promise, as Slurm looks for it: from now on, and then again from each
    /// time at which a promise ends.
    fn find(&self, view: &View<'_>, plan: &Plan, turn: &Turn) -> Option<Found> {
        let (now, walltime) = (view.now, turn.request.walltime);
        let step = self.config.schedulers.backfill_resolution;
        let last = now + self.config.schedulers.backfill_window;
        let mut from = now;
        while from <= last {
            let mut nodes = self.usable(view);
            let is_reduced = self.keep_allowed(&mut nodes, turn, (from, from + walltime))?;
            let mut later = plan.keep_free(&mut nodes, from, from + walltime);
            if is_reduced {
                let ends = self.reservations.iter().map(|kept| kept.until);
                let end = ends.filter(|&end| end > from).min_by(f64::total_cmp);
                later =
                    [later, end.map(|end| end + 1.0)].into_iter().flatten().min_by(f64::total_cmp);
            }
            let found = self.will_run(view, &turn.request, &nodes, (from, later));
            let Some((start, placement)) = found else {
                from = later?;
                continue;
            };
            let chosen = NodeSet::of(nodes.capacity(), placement.held());
            let completes = self.completing.iter().any(|(_, left)| left.intersects(&chosen));
            let start = if start <= now && completes { now + 1.0 } else { start };
            if start <= now {
                return Some(Found::Now(nodes));
            }
            let (begin, end) = self.slot(start, walltime);
            if !plan.is_free(&chosen, begin, end) {
                from = if start > from { start } else { start + step };
            } else if let Some(later) = later.filter(|&later| start > later) {
                from = later;
            } else {
                return (start <= last).then_some(Found::Later(chosen, start));
            }
        }
        None
    }

    /// When a job can start on some of these nodes as running jobs end: at once, at `from`, or at one of the ends up to `until`.
    /// Ends that lie close together count as one.
    fn will_run(
        &self,
        view: &View<'_>,
        request: &Request,
        nodes: &NodeSet,
        (from, until): (f64, Option<f64>),
    ) -> Option<(f64, Placement)> {
        if nodes.count() < request.nodes {
            return None;
        }
        let request = limited(request, nodes.clone());
        let fits = |occupancy: &Occupancy| {
            let mut free = occupancy.idle().clone();
            free.intersect(nodes);
            if request.share.is_whole() && free.count() < request.nodes {
                return None;
            }
            view.policy.place(&request, occupancy).ok()
        };
        if from <= view.now
            && let Some(placement) = fits(view.occupancy)
        {
            return Some((view.now, placement));
        }
        let mut state = view.occupancy.clone();
        // One that is over its time ends at any moment.
        let overdue = view.now + 1.0;
        let end_of = |job: &RunningJob| {
            if job.expected_end <= view.now { overdue } else { job.expected_end }
        };
        let holds_some = |job: &&RunningJob| job.placement.held().any(|node| nodes.contains(node));
        let ends = |job: &&RunningJob| job.expected_end.is_finite();
        let jobs = view.running.jobs().iter();
        let running: Vec<&RunningJob> = jobs.filter(ends).filter(holds_some).collect();
        let mut next = 0;
        if from > view.now {
            while let Some(job) = running.get(next).filter(|job| end_of(job) <= from) {
                state.release(&job.placement);
                next += 1;
            }
            if let Some(placement) = fits(&state) {
                return Some((from, placement));
            }
        }
        let limit = until.unwrap_or(f64::INFINITY);
        let first = running.get(next).map(|job| end_of(job))?;
        let epoch = self.config.epoch;
        let base = ((first + epoch) / TOGETHER).floor() * TOGETHER + TOGETHER - epoch;
        let mut together = TOGETHER;
        loop {
            let mut last = None;
            while let Some(job) = running.get(next).filter(|job| end_of(job) <= limit) {
                if last.is_some() && end_of(job) > base + together {
                    break;
                }
                state.release(&job.placement);
                last = Some(end_of(job));
                next += 1;
            }
            let end = last?;
            if let Some(placement) = fits(&state) {
                return Some((end, placement));
            }
            let upcoming = end_of(running.get(next)?);
            together *= 2.0;
            while upcoming > base + together {
                together *= 2.0;
            }
        }
    }
}

fn is_over(count: usize, most: usize) -> bool {
    most > 0 && count > most
}
