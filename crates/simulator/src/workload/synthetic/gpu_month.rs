//! Generates a synthetic month of a GPU centre, fitted to published traces.
//!
//! `docs/reference/workloads.md` gives the source of every parameter.

mod tables;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use topolane_fabric::resources::Resources;
use topolane_placement::{Amounts, Share};

use super::month::walltime;
use crate::failures::FailureRate;
use crate::workload::job::{Job, Workload};
use tables::{DAILY, DEMANDS, LARGE, POSITIONS, SMALL, WEEKEND};

/// A class of jobs of similar size.
struct SizeClass {
    /// Numbers of GPUs, each with the number of jobs in the trace that ask for it.
    sizes: &'static [(u32, u32)],
    /// Run times at [`POSITIONS`], seconds.
    runs: [f64; POSITIONS.len()],
}

/// The nodes of the machine that the month is for: `nvl72-5000`.
const NODES: u32 = 5_040;
const GPUS: u32 = 4;
const CORES: u32 = 144;
const MEMORY: u64 = 960 << 30;

const DAYS: u32 = 30;
/// The offered load of GPUs. The machine is empty at first, so jobs hold 90 to 95 % of it while jobs are submitted.
const LOAD: f64 = 0.98;
/// The share of the work done by jobs of up to one node.
const SMALL_WORK: f64 = 0.05;
/// The longest run time and longest walltime, in seconds.
const LONGEST: f64 = 7.0 * 86_400.0;
/// Jobs of at least this number of nodes have segments of this size, each of which must lie in one domain: a rack of 18
/// nodes minus two spares.
const SEGMENT: u32 = 16;
/// The share of jobs whose walltime is exactly their run time.
const EXACT_SHARE: f64 = 0.23;
/// The second of the day at which most jobs are submitted.
const BUSIEST: f64 = 14.0 * 3_600.0;

/// Generates the month; the same seed gives the same jobs.
pub fn gpu_month(seed: u64) -> Workload {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let work = LOAD * f64::from(NODES * GPUS) * f64::from(DAYS) * 86_400.0;
    let mut drawn = Vec::new();
    draw(&SMALL, SMALL_WORK * work, &mut random, &mut drawn);
    draw(&LARGE, (1.0 - SMALL_WORK) * work, &mut random, &mut drawn);
    let mut resources = Resources::default();
    let gpu = resources.add("gpu").ok();
    let mut jobs: Vec<Job> = drawn
        .into_iter()
        .map(|(gpus, run)| {
            let nodes = gpus.div_ceil(GPUS);
            let share = match gpu {
                Some(gpu) if gpus < GPUS => part(&resources, gpu, gpus, &mut random),
                _ => Share::Whole,
            };
            let segment = (nodes >= SEGMENT).then_some(SEGMENT);
            let submit = submission(&mut random);
            let walltime = Some(walltime(EXACT_SHARE, LONGEST, run, &mut random));
            Job { submit, run, walltime, nodes, share, segment, ..Job::default() }
        })
        .collect();
    jobs.sort_by(|a, b| a.submit.total_cmp(&b.submit));
    for (job, id) in jobs.iter_mut().zip(1..) {
        job.id = id;
    }
    Workload {
        name: "gpu-month".to_owned(),
        cores_per_node: 1,
        resources,
        failures: Some(FailureRate { per_node_day: 0.0019, repair: 6.0 * 3_600.0 }),
        jobs,
        ..Workload::default()
    }
}

/// Appends the GPUs and run times of jobs that together do `work` GPU-seconds.
fn draw(classes: &[SizeClass], work: f64, random: &mut ChaCha8Rng, drawn: &mut Vec<(u32, f64)>) {
    let sizes: Vec<(usize, u32, u32)> = (0..)
        .zip(classes)
        .flat_map(|(class, of)| of.sizes.iter().map(move |&(gpus, count)| (class, gpus, count)))
        .collect();
    let mut left = work;
    while left > 0.0 {
        let Some(&(class, gpus, _)) = weighted(&sizes, |size| size.2, random) else { return };
        let run = quantile(&classes[class].runs, random.random());
        left -= f64::from(gpus) * run;
        drawn.push((gpus, run));
    }
}

fn weighted<'a, T>(
    of: &'a [T],
    weight: impl Fn(&T) -> u32,
    random: &mut ChaCha8Rng,
) -> Option<&'a T> {
    let mut left = random.random_range(0..of.iter().map(&weight).sum::<u32>().max(1));
    of.iter().find(|one| {
        let is_it = left < weight(one);
        left = left.saturating_sub(weight(one));
        is_it
    })
}

/// The run time at a position from 0 to 1, interpolated logarithmically; whole seconds.
fn quantile(runs: &[f64; POSITIONS.len()], position: f64) -> f64 {
    let after = POSITIONS.partition_point(|&at| at <= position).clamp(1, POSITIONS.len() - 1);
    let (low, high) = (POSITIONS[after - 1], POSITIONS[after]);
    let part = (position - low) / (high - low);
    (runs[after - 1].ln() * (1.0 - part) + runs[after].ln() * part).exp().round()
}

/// Draws a part of a node: GPUs, with the cores and memory that users ask for with them.
fn part(resources: &Resources, gpu: usize, gpus: u32, random: &mut ChaCha8Rng) -> Share {
    let times = weighted(&DEMANDS, |demand| demand.1, random).map_or(1.0, |demand| demand.0);
    let of_node = (times * f64::from(gpus) / f64::from(GPUS)).min(1.0);
    let mut amounts = vec![0; resources.names().len()];
    amounts[topolane_fabric::resources::CORES] = (of_node * f64::from(CORES)) as u64;
    amounts[topolane_fabric::resources::MEMORY] = (of_node * MEMORY as f64) as u64;
    amounts[gpu] = u64::from(gpus);
    Share::Part(Amounts::of(&amounts))
}

/// Draws a submission time in the month: more in the afternoon, fewer at weekends. The first day is a Monday.
fn submission(random: &mut ChaCha8Rng) -> f64 {
    loop {
        let time: f64 = random.random::<f64>() * f64::from(DAYS) * 86_400.0;
        let week = if (time / 86_400.0) as u32 % 7 >= 5 { WEEKEND } else { 1.0 };
        let angle = (time - BUSIEST) / 86_400.0 * std::f64::consts::TAU;
        let rate = week * (1.0 + DAILY * angle.cos());
        if random.random::<f64>() * (1.0 + DAILY) < rate {
            return time.floor();
        }
    }
}
