//! Gang scheduling only for jobs that gain by it.

use std::collections::{BTreeMap, BTreeSet};

use super::gang::{fill, heaviest, longest_interval, with_alternates};
use crate::job::{JobId, ObservedJob};
use crate::limits::SliceLimits;
use crate::matrix::Matrix;
use crate::policy::GangPolicy;
use crate::round::{Round, Slice};
use crate::rows;

/// A job is treated as a gang until it turns out to gain nothing by it: it has one thread, or more threads than cores,
/// or threads that are blocked most of the time, or threads that meet less than once in the time that a gang may have
/// to wait. Such jobs are "loose": they share a slice, in which the operating system places their threads. A job that
/// keeps its cores busy while it waits at a barrier is never seen to block, and stays a gang.
///
/// Idle time in a slice, in empty columns and while threads are blocked, goes to fillers: first to the jobs that can
/// use most of it (those that block least, next to one that blocks most), among equals to those that had least. A
/// filler runs on a core only while no thread of a first job is ready there, so it delays no barrier. The poster "Gang
/// scheduling for predictable performance" asks for such a method.
#[derive(Default)]
pub struct Adaptive {
    matrix: Matrix,
    loose: BTreeSet<JobId>,
    helped: BTreeMap<JobId, f64>,
}

/// A gang whose threads are blocked for a larger share of time becomes loose.
const BLOCKED: f64 = 0.1;
/// A loose job whose threads are blocked for a smaller share of time becomes a gang again.
const BUSY: f64 = 0.05;
/// The smallest share of its time that a row is assumed to use.
const LEAST: f64 = 0.2;
/// The least idle time of a core worth giving to fillers, as a share of the slice.
const WORTH: f64 = 0.05;

impl GangPolicy for Adaptive {
    fn name(&self) -> &'static str {
        "adaptive"
    }

    fn round(&mut self, jobs: &[ObservedJob], cores: usize, limits: &SliceLimits) -> Round {
        self.sort(jobs, cores, limits);
        let loose: Vec<&ObservedJob> =
            jobs.iter().filter(|job| self.loose.contains(&job.id)).collect();
        let gangs: Vec<&ObservedJob> =
            jobs.iter().filter(|job| !self.loose.contains(&job.id)).collect();
        fill(&mut self.matrix, gangs.iter().copied(), cores);
        let mut columns = self.matrix.columns();
        columns.extend(loose.iter().map(|job| (job.id, (0..cores).collect())));

        let mut firsts: Vec<Vec<JobId>> =
            (0..self.matrix.rows().len()).map(|row| with_alternates(&self.matrix, row)).collect();
        let mut weights: Vec<f64> =
            self.matrix.rows().iter().map(|row| heaviest(jobs, row.keys())).collect();
        if !loose.is_empty() {
            firsts.push(loose.iter().map(|job| job.id).collect());
            // The number of rows that the loose jobs would fill.
            let filled: f64 = loose.iter().map(|job| job.weight * job.threads as f64).sum();
            weights
                .push(heaviest(jobs, firsts[firsts.len() - 1].iter()).max(filled / cores as f64));
        }
        let fillers: Vec<Vec<JobId>> = firsts
            .iter()
            .zip(&mut weights)
            .map(|(first, weight)| {
                let mut idle = self.idle(jobs, &columns, first, cores);
                let held = first.iter().flat_map(|job| &columns[job]);
                let left = held.clone().map(|&core| idle[core]).sum::<f64>() / held.count() as f64;
                let fillers = self.fillers(jobs, &columns, first, &mut idle);
                if !fillers.is_empty() {
                    // A row's weight counts the time that it uses; the rest goes to fillers.
                    *weight /= (1.0 - left).max(LEAST);
                }
                fillers
            })
            .collect();
        let seconds = rows::seconds(&weights, longest_interval(jobs, limits), limits);
        let slices = firsts.into_iter().zip(fillers).zip(seconds);
        let slices = slices.map(|((first, fillers), seconds)| Slice { seconds, first, fillers });
        Round {
            slices: slices.collect(),
            cores: columns,
            gangs: gangs.iter().map(|job| job.id).collect(),
        }
    }
}

impl Adaptive {
    /// Updates which jobs are loose, from what was measured of them.
    fn sort(&mut self, jobs: &[ObservedJob], cores: usize, limits: &SliceLimits) {
        let here = |id: &JobId| jobs.iter().any(|job| job.id == *id);
        self.loose.retain(here);
        self.helped.retain(|id, _| here(id));
        for job in jobs {
            if job.threads == 1 || job.threads > cores || self.gains_nothing(job, limits) {
                self.loose.insert(job.id);
            } else {
                self.loose.remove(&job.id);
            }
        }
    }

    fn gains_nothing(&self, job: &ObservedJob, limits: &SliceLimits) -> bool {
        let bound = if self.loose.contains(&job.id) { BUSY } else { BLOCKED };
        let blocked = job.seen.blocked.is_some_and(|blocked| blocked > bound);
        let rare = job.seen.barriers.is_some_and(|barriers| barriers.interval > limits.delay);
        rare || blocked
    }

    /// The fillers for the idle time of a slice's first jobs.
    fn fillers(
        &mut self,
        jobs: &[ObservedJob],
        columns: &BTreeMap<JobId, Vec<usize>>,
        first: &[JobId],
        idle: &mut [f64],
    ) -> Vec<JobId> {
        let waits = |job: &&ObservedJob| job.fills && !first.contains(&job.id);
        let mut waiting: Vec<&ObservedJob> = jobs.iter().filter(waits).collect();
        let mut fillers = Vec::new();
        loop {
            let gain = |job: &ObservedJob| gain(job, &columns[&job.id], idle);
            let worth = waiting
                .iter()
                .enumerate()
                .filter(|(_, job)| gain(job) > WORTH * job.threads as f64);
            let best = worth.max_by(|(_, one), (_, other)| {
                let had = |job: &ObservedJob| {
                    self.helped.get(&job.id).copied().unwrap_or(0.0) / job.weight
                };
                let order = gain(one).total_cmp(&gain(other));
                order.then(had(other).total_cmp(&had(one))).then(other.id.cmp(&one.id))
            });
            let Some((at, job)) = best else { return fillers };
            let gained = gain(job);
            *self.helped.entry(job.id).or_default() += gained;
            take(&columns[&job.id], idle, gained);
            fillers.push(waiting.remove(at).id);
        }
    }

    /// For every core, the share of the slice in which it is idle.
    fn idle(
        &self,
        jobs: &[ObservedJob],
        columns: &BTreeMap<JobId, Vec<usize>>,
        first: &[JobId],
        cores: usize,
    ) -> Vec<f64> {
        let mut idle = vec![1.0; cores];
        let running = || jobs.iter().filter(|job| first.contains(&job.id));
        if running().all(|job| self.loose.contains(&job.id)) {
            let busy: f64 = running().map(demand).sum();
            return vec![(1.0 - busy / cores as f64).max(0.0); cores];
        }
        for job in running() {
            for &core in &columns[&job.id] {
                idle[core] = job.seen.blocked.unwrap_or(0.0);
            }
        }
        idle
    }
}

/// The number of cores that a job could use on average over the slice: the idle time of its cores, without the part in
/// which it is blocked itself.
fn gain(job: &ObservedJob, columns: &[usize], idle: &[f64]) -> f64 {
    let there: f64 = columns.iter().map(|&core| idle[core]).sum();
    let threads = job.threads as f64;
    there.min(threads) * demand(job) / threads
}

/// The number of cores that a job keeps busy if it has them.
fn demand(job: &ObservedJob) -> f64 {
    job.threads as f64 * (1.0 - job.seen.blocked.unwrap_or(0.0))
}

/// Subtracts the time in which a filler uses its cores from the idle time.
fn take(columns: &[usize], idle: &mut [f64], gained: f64) {
    let there: f64 = columns.iter().map(|&core| idle[core]).sum();
    for &core in columns {
        idle[core] *= 1.0 - gained / there;
    }
}
