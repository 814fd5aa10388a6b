//! Generates a month of jobs after Lublin and Feitelson (2003), fitted to a published log.
//!
//! `docs/explanation/sc18-paper.md` gives the source of every parameter.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Gamma};

use super::arrivals::arrivals;
use super::parameters::{HyperGamma, Month};
use crate::workload::job::{Job, Workload};

/// Walltimes that users ask for, in minutes (Tsafrir, Etsion and Feitelson 2005; we added whole days).
const WALLTIMES: [f64; 24] = [
    5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 150.0, 180.0, 240.0, 300.0, 360.0, 480.0,
    600.0, 720.0, 960.0, 1_080.0, 1_440.0, 2_880.0, 4_320.0, 5_760.0, 7_200.0,
];

/// log2 of the lower limit for sizes of several nodes, so that size 2 is drawn often enough (Lublin and Feitelson
/// 2003).
const LOWEST_EXPONENT: f64 = 0.8;

/// Generates a month; the same parameters and seed give the same jobs.
pub fn generate(month: &Month, seed: u64) -> Workload {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let gammas = [gamma(month.run.short), gamma(month.run.long)];
    let drawn: Vec<(u32, f64)> = (0..month.jobs)
        .map(|_| {
            let nodes = size(month, &mut random);
            (nodes, run_time(&month.run, &gammas, nodes, &mut random))
        })
        .collect();
    let span = f64::from(month.days) * 86_400.0;
    let work = month.load * f64::from(month.machine_nodes) * span;
    let factor = factor(&drawn, month.longest, work);
    let sizes_and_runs: Vec<(u32, f64)> =
        drawn.iter().map(|&(nodes, run)| (nodes, scaled(run, factor, month.longest))).collect();
    let submits = arrivals(month, &sizes_and_runs, span, &mut random);
    let mut jobs: Vec<Job> = sizes_and_runs
        .iter()
        .zip(submits)
        .map(|(&(nodes, run), submit)| Job {
            id: 0,
            submit,
            run,
            walltime: Some(walltime(month.killed_share, month.longest, run, &mut random)),
            nodes,
            ..Job::default()
        })
        .collect();
    jobs.sort_by(|a, b| a.submit.total_cmp(&b.submit));
    for (job, id) in jobs.iter_mut().zip(1..) {
        job.id = id;
    }
    Workload {
        name: month.name.clone(),
        epoch: month.epoch,
        utc_offset: month.utc_offset,
        cores_per_node: 1,
        jobs,
        ..Workload::default()
    }
}

/// Draws the nodes of a job: one, or two-stage log-uniform with a preference for powers of two.
fn size(month: &Month, random: &mut ChaCha8Rng) -> u32 {
    let draw: f64 = random.random();
    if draw < month.serial_share {
        return 1;
    }
    let wide_from = month.narrow_below.max(3);
    let widest = month.widest.max(wide_from);
    let boundary = (f64::from(wide_from) - 0.5).log2();
    let (least, most, low, high) = if draw < month.narrow_share {
        (2, wide_from - 1, LOWEST_EXPONENT, boundary)
    } else {
        (wide_from, widest, boundary, f64::from(widest).log2())
    };
    let exponent = low + (high - low) * random.random::<f64>();
    let (first_power, last_power) = (least.next_power_of_two(), 1 << most.ilog2());
    if random.random::<f64>() < month.power_of_two_share && first_power <= last_power {
        (exponent.round().exp2() as u32).clamp(first_power, last_power)
    } else {
        (exponent.exp2().round() as u32).clamp(least, most)
    }
}

fn gamma((shape, scale): (f64, f64)) -> Option<Gamma<f64>> {
    Gamma::new(shape, scale).ok()
}

/// Draws the run time of a job in seconds, before scaling to the load.
fn run_time(
    run: &HyperGamma,
    gammas: &[Option<Gamma<f64>>; 2],
    nodes: u32,
    random: &mut ChaCha8Rng,
) -> f64 {
    let short_share = run.short_share - run.short_share_per_node * f64::from(nodes);
    let which = usize::from(random.random::<f64>() >= short_share);
    gammas[which].map_or(1.0, |gamma| gamma.sample(random).exp())
}

fn scaled(run: f64, factor: f64, longest: f64) -> f64 {
    (run * factor).round().clamp(1.0, longest)
}

/// The factor on all run times that gives this amount of work in node-seconds; found by bisection.
fn factor(drawn: &[(u32, f64)], longest: f64, work: f64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 64.0_f64);
    for _ in 0..40 {
        let middle = low.midpoint(high);
        let sum: f64 = drawn
            .iter()
            .map(|&(nodes, run)| f64::from(nodes) * (run * middle).clamp(1.0, longest))
            .sum();
        if sum < work {
            low = middle;
        } else {
            high = middle;
        }
    }
    low.midpoint(high)
}

/// Draws the walltime that a user asks for, in seconds: the run time divided by a uniform accuracy, rounded up to a
/// usual value. A share `exact_share` of users know the run time.
pub(super) fn walltime(exact_share: f64, longest: f64, run: f64, random: &mut ChaCha8Rng) -> f64 {
    let accuracy =
        if random.random::<f64>() < exact_share { 1.0 } else { 1.0 - random.random::<f64>() };
    let wanted = run / accuracy / 60.0;
    let usual = WALLTIMES.iter().find(|&&value| value >= wanted);
    usual.map_or(longest, |minutes| (minutes * 60.0).min(longest))
}
