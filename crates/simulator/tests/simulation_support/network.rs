//! Small networks for the tests of coupled runs.

use std::sync::Arc;

use topolane_fabric::{Fabric, MissingCable, pgft, routing};
use topolane_simulator::workload::Workload;
use topolane_simulator::{Network, Outcome, RunOptions};
use topolane_traffic::{MODELS, pattern};

use super::{PLAIN, logged, try_run, workload};

pub const PATTERNS: [&str; 3] = ["ring", "alltoall", "pairs"];

/// A tapered machine of 36 nodes under 9 leaves and 3 pods, with parallel switches and cables, of which some are
/// missing.
pub fn tapered() -> Arc<Fabric> {
    let mut description = pgft("n", &[4, 3, 3], &[1, 2, 1], &[1, 1, 2]);
    for (level, group) in [(1, 0), (2, 1)] {
        let missing = MissingCable { level, group, switch: 0, parent: 0, cable: 0 };
        description.sites[0].missing.push(missing);
    }
    Arc::new(Fabric::build(&description).unwrap())
}

/// Two leaves of two nodes, n1 to n4, joined by one cable each.
pub fn one_cable() -> Arc<Fabric> {
    Arc::new(Fabric::build(&pgft("n", &[2, 2], &[1, 1], &[1, 1])).unwrap())
}

pub fn on(fabric: &Arc<Fabric>, model: &str, ways: &str, communication: f64) -> Network {
    Network {
        routing: Arc::from(routing(ways, fabric, 5).unwrap()),
        model: MODELS.iter().find(|info| info.name == model).unwrap(),
        communication,
        patterns: PATTERNS.iter().map(|name| pattern(name).unwrap()).collect(),
        kill_at_walltime: false,
        cores_per_node: None,
    }
}

pub fn options(network: Network) -> RunOptions {
    RunOptions { network: Some(network), ..PLAIN }
}

pub fn coupled(jobs: &Workload, fabric: &Arc<Fabric>, policy: &str, network: Network) -> Outcome {
    try_run(jobs, fabric, policy, "easy", &options(network)).unwrap()
}

/// Runs two jobs of two nodes and 100 s, from 0 and from 50, both over the one cable between two leaves.
pub fn by_hand(
    model: &str,
    communication: f64,
    walltimes: [Option<f64>; 2],
    kill_at_walltime: bool,
) -> Outcome {
    let jobs = workload(vec![
        logged(1, 0.0, 100.0, 0.0, 2, "n[1,3]"),
        logged(2, 50.0, 100.0, 50.0, 2, "n[2,4]"),
    ]);
    let mut walltimes = walltimes.into_iter();
    let jobs = with_walltime(jobs, |_, _| walltimes.next().flatten());
    let fabric = one_cable();
    let network = Network { kill_at_walltime, ..on(&fabric, model, "d-mod-k", communication) };
    try_run(&jobs, &fabric, "recorded", "fcfs", &options(network)).unwrap()
}

/// The jobs with new walltimes: `walltime` of their run time and of the number of jobs.
pub fn with_walltime(
    mut jobs: Workload,
    mut walltime: impl FnMut(f64, f64) -> Option<f64>,
) -> Workload {
    let all = jobs.jobs.len() as f64;
    jobs.jobs.iter_mut().for_each(|job| job.walltime = walltime(job.run, all));
    jobs
}

/// The jobs with all times divided by seven, so that no float holds them exactly.
pub fn sevenths(mut jobs: Workload) -> Workload {
    for job in &mut jobs.jobs {
        job.submit /= 7.0;
        job.run /= 7.0;
        job.walltime = job.walltime.map(|walltime| walltime / 7.0);
    }
    jobs
}
