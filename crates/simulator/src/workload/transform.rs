//! Transforms a workload: wider jobs, fewer days, shorter intervals, another load.

use std::sync::Arc;

use topolane_fabric::{InputError, scramble};
use topolane_placement::Attributes;

use super::job::Workload;

const DAY: f64 = 86_400.0;

/// The changes to make; `None` leaves a property as it is.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Shape {
    /// Keep the jobs submitted in the first days of the log; this number of days.
    pub days: Option<f64>,
    /// Multiply the nodes of every job; the result is rounded and at least 1.
    pub nodes_x: Option<f64>,
    /// Keep at most this number of the remaining jobs, the first ones.
    pub limit: Option<usize>,
    /// Scale the interarrival times by this factor: below 1, jobs arrive faster.
    pub squeeze: Option<f64>,
    /// Scale the interarrival times by the factor that gives this load.
    pub load: Option<f64>,
    /// Shorten the run time of every job by a random share, uniform up to this one: a minimal change that gives other
    /// runs of the same workload.
    pub jitter: Option<f64>,
    /// The seed of these draws.
    pub seed: u64,
}

impl Shape {
    /// Whether a workload stays as it is on a machine of `machine_nodes` nodes.
    pub fn changes_nothing(&self, workload: &Workload, machine_nodes: u32) -> bool {
        let unchanged = Shape { seed: self.seed, ..Shape::default() };
        *self == unchanged && workload.jobs.iter().all(|job| job.nodes <= machine_nodes)
    }
}

/// Jobs that are wider than the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TooWide {
    /// The number of such jobs.
    pub jobs: u64,
    /// The nodes of the widest; 0 if there is none.
    pub widest: u32,
}

/// Changes a workload for a machine of `machine_nodes` nodes.
///
/// The order is: keep the first days of the original log; make jobs wider; skip those wider than the machine; keep the
/// first jobs up to the limit; scale the interarrival times, by the factor or to the load; jitter the run times, so
/// that submissions do not depend on the seed. So the load is that of the remaining jobs before jitter. Recorded starts
/// are dropped as soon as widths or times change, because they belong to another workload.
///
/// # Errors
/// A factor that is not a number above 0, a jitter of 1 or more, `squeeze` together with `load`, or a load that scaling
/// cannot reach.
pub fn apply(
    workload: &mut Workload,
    shape: &Shape,
    machine_nodes: u32,
) -> Result<TooWide, InputError> {
    for (name, value) in [
        ("days", shape.days),
        ("nodes-x", shape.nodes_x),
        ("squeeze", shape.squeeze),
        ("load", shape.load),
        ("jitter", shape.jitter),
    ] {
        if let Some(value) = value.filter(|value| !(value.is_finite() && *value > 0.0)) {
            let message = format!("{value} is not a number above 0");
            return Err(InputError::whole(message).in_file(name));
        }
    }
    if shape.squeeze.is_some() && shape.load.is_some() {
        return Err(InputError::whole(
            "squeeze and load both set the distances between submissions: give one of them",
        ));
    }
    if let Some(jitter) = shape.jitter.filter(|&jitter| jitter >= 1.0) {
        let message = format!("{jitter} is a part of the run times: under 1");
        return Err(InputError::whole(message).in_file("jitter"));
    }
    if let Some(days) = shape.days {
        keep_days(workload, days);
    }
    if let Some(factor) = shape.nodes_x {
        for job in &mut workload.jobs {
            job.nodes = (f64::from(job.nodes) * factor).round().max(1.0) as u32;
            job.recorded = None;
        }
    }
    let too_wide = skip_too_wide(workload, machine_nodes);
    let over = workload.jobs.len().saturating_sub(shape.limit.unwrap_or(usize::MAX));
    workload.jobs.truncate(workload.jobs.len() - over);
    skip(workload, "beyond the limit", over as u64);
    if let Some(factor) = shape.squeeze {
        spread(workload, factor);
    }
    if let Some(load) = shape.load {
        let now = workload.load(machine_nodes);
        if !(now.is_finite() && now > 0.0) {
            return Err(InputError::whole(
                "no load can be set: the jobs are submitted all at once, or need no time",
            )
            .in_file("load"));
        }
        spread(workload, now / load);
    }
    if let Some(jitter) = shape.jitter {
        for job in &mut workload.jobs {
            job.run *= 1.0 - jitter * draw(shape.seed, job.id);
            job.recorded = None;
        }
    }
    Ok(too_wide)
}

/// A number from 0 to below 1 that depends only on the seed and the job.
fn draw(seed: u64, job: u64) -> f64 {
    let bits = scramble(scramble(seed) ^ job) >> 11;
    bits as f64 / (1u64 << 53) as f64
}

fn keep_days(workload: &mut Workload, days: f64) {
    let Some(first) = workload.jobs.first().map(|job| job.submit) else { return };
    let before = workload.jobs.len();
    workload.jobs.retain(|job| job.submit < first + days * DAY);
    skip(workload, "after the days asked for", (before - workload.jobs.len()) as u64);
}

fn skip_too_wide(workload: &mut Workload, machine_nodes: u32) -> TooWide {
    let mut too_wide = TooWide::default();
    workload.jobs.retain(|job| {
        let fits = job.nodes <= machine_nodes;
        if !fits {
            too_wide.jobs += 1;
            too_wide.widest = too_wide.widest.max(job.nodes);
        }
        fits
    });
    skip(workload, "wider than the machine", too_wide.jobs);
    too_wide
}

fn skip(workload: &mut Workload, reason: &str, jobs: u64) {
    if jobs > 0 {
        *workload.left_out.entry(reason.to_string()).or_default() += jobs;
    }
}

/// Scales the interarrival times; the first submission stays the same.
fn spread(workload: &mut Workload, factor: f64) {
    let Some(first) = workload.jobs.first().map(|job| job.submit) else { return };
    for job in &mut workload.jobs {
        job.submit = first + (job.submit - first) * factor;
        job.recorded = None;
        if let Some(attributes) = &mut job.attributes
            && let Some(queued) = attributes.queued
        {
            let queued = Some(first + (queued - first) * factor);
            *attributes = Arc::new(Attributes { queued, ..Attributes::clone(attributes) });
        }
    }
}
