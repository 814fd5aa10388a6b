//! Generates jobs with exponential sizes and uniform run times, as in the study of Jigsaw.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp};
use topolane_fabric::InputError;

use crate::workload::job::{Job, Workload};

/// The parameters of an exponential mix of jobs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exponential {
    /// The number of jobs.
    pub jobs: usize,
    /// The mean number of nodes; sizes are exponentially distributed and rounded up.
    pub mean_nodes: f64,
    /// The shortest and longest run time in seconds; whole seconds in between are equally likely.
    pub run: (u32, u32),
    /// The nodes of a machine and the offered load on it. Jobs then arrive at exponential intervals; `None` to submit
    /// all at once.
    pub load: Option<(u32, f64)>,
}

impl Default for Exponential {
    fn default() -> Self {
        Exponential { jobs: 5_000, mean_nodes: 16.0, run: (20, 3_000), load: None }
    }
}

/// Generates the mix; the same parameters and seed give the same jobs.
///
/// # Errors
/// A mean, a load or run times out of range, or a load for fewer than two jobs.
pub fn exponential(mix: &Exponential, seed: u64) -> Result<Workload, InputError> {
    let mean = mix.mean_nodes;
    let sizes = Exp::new(1.0 / mean).ok().filter(|_| mean > 0.0 && mean < 1e9);
    let Some(sizes) = sizes else {
        return Err(InputError::whole(format!("{mean} is no mean number of nodes")));
    };
    let (shortest, longest) = mix.run;
    if shortest > longest {
        return Err(InputError::whole(format!("no run time from {shortest} to {longest} s")));
    }
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let jobs = (0..mix.jobs).zip(1..).map(|(_, id)| Job {
        id,
        submit: 0.0,
        run: f64::from(random.random_range(shortest..=longest)),
        walltime: None,
        nodes: sizes.sample(&mut random).ceil().max(1.0) as u32,
        ..Job::default()
    });
    let mut workload = Workload {
        name: format!("exp-{mean}"),
        cores_per_node: 1,
        jobs: jobs.collect(),
        ..Workload::default()
    };
    if let Some((machine_nodes, load)) = mix.load {
        come_one_by_one(&mut workload, machine_nodes, load, &mut random)?;
    }
    Ok(workload)
}

fn come_one_by_one(
    workload: &mut Workload,
    machine_nodes: u32,
    load: f64,
    random: &mut ChaCha8Rng,
) -> Result<(), InputError> {
    let mut now = 0.0;
    for job in workload.jobs.iter_mut().skip(1) {
        now -= (1.0 - random.random::<f64>()).ln();
        job.submit = now;
    }
    let factor = workload.load(machine_nodes) / load;
    if !(factor.is_finite() && factor > 0.0) {
        let message = format!("no load {load} of {machine_nodes} nodes with these jobs");
        return Err(InputError::whole(message));
    }
    for job in &mut workload.jobs {
        job.submit *= factor;
    }
    Ok(())
}
