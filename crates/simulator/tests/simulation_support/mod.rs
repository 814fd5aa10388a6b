//! Small machines and workloads for the tests of the event loop.
#![allow(dead_code)]

pub mod network;

use std::sync::Arc;

use proptest::prelude::*;
use topolane_fabric::{Description, Fabric, InputError, pgft};
use topolane_placement::{Policy, Share, Within, policy};
use topolane_scheduler::queue;
use topolane_simulator::workload::{Job, RecordedRun, Workload};
use topolane_simulator::{Outcome, RunOptions, Scenario, simulate};

pub const PLAIN: RunOptions = RunOptions {
    scenario: Scenario::None,
    seed: 0,
    default_walltime: None,
    min_bandwidth: None,
    within: Within::Unsaid,
    segment: None,
    moving: None,
    network: None,
    outages: Vec::new(),
    failures: Vec::new(),
    out_of_service: Vec::new(),
    spares: 0,
    checkpoint: 3_600.0,
};

/// A regular tree of nodes n1, n2, ...
pub fn description(children: &[u32]) -> Description {
    let parents: Vec<u32> = (0..children.len()).map(|level| 1 + u32::from(level > 0)).collect();
    pgft("n", children, &parents, &vec![1; children.len()])
}

pub fn tree(children: &[u32]) -> Arc<Fabric> {
    Arc::new(Fabric::build(&description(children)).unwrap())
}

pub fn rule(name: &str) -> Arc<dyn Policy> {
    Arc::from(policy(name, 3).unwrap())
}

pub fn job(id: u64, submit: f64, run: f64, walltime: Option<f64>, nodes: u32) -> Job {
    Job { id, submit, run, walltime, nodes, ..Job::default() }
}

/// A job that ran, by its log, on these nodes from `start` on.
pub fn logged(id: u64, submit: f64, run: f64, start: f64, nodes: u32, hosts: &str) -> Job {
    let recorded = Some(RecordedRun { start, hosts: hosts.to_owned(), ..RecordedRun::default() });
    Job { recorded, ..job(id, submit, run, None, nodes) }
}

pub fn workload(jobs: Vec<Job>) -> Workload {
    Workload { name: "synthetic".to_owned(), cores_per_node: 1, jobs, ..Workload::default() }
}

pub fn try_run(
    jobs: &Workload,
    fabric: &Arc<Fabric>,
    policy: &str,
    discipline: &str,
    options: &RunOptions,
) -> Result<Outcome, InputError> {
    simulate(jobs, fabric, &rule(policy), queue(discipline).unwrap(), options, &mut |_| Ok(()))
}

pub fn run(jobs: &Workload, fabric: &Arc<Fabric>, policy: &str, discipline: &str) -> Outcome {
    try_run(jobs, fabric, policy, discipline, &PLAIN).unwrap()
}

/// The job, start and finish of every run, in the order of the workload.
pub fn times(outcome: &Outcome) -> Vec<(usize, f64, f64)> {
    let mut times: Vec<_> =
        outcome.jobs.iter().map(|job| (job.job, job.start, job.finish)).collect();
    times.sort_by_key(|time| time.0);
    times
}

/// Jobs of up to `widest` nodes whose times often coincide. If `sharing`, some of them share nodes.
pub fn jobs(widest: u32, sharing: bool) -> impl Strategy<Value = Workload> {
    let walltime = prop::option::weighted(0.8, 0u32..40);
    let cores = prop::option::of(1u32..17).prop_map(move |cores| cores.filter(|_| sharing));
    let drawn =
        (0u32..400, prop_oneof![1 => Just(0u32), 8 => 1u32..200], walltime, 1..=widest, cores);
    prop::collection::vec(drawn, 1..40).prop_map(|drawn| {
        let mut jobs: Vec<Job> = drawn
            .into_iter()
            .map(|(submit, run, extra, nodes, cores)| {
                // About one job in ten is ended at its walltime.
                let walltime = extra.map(|extra| f64::from((run + extra).saturating_sub(4)));
                let share = cores.map_or(Share::Whole, |cores| Share::part(cores, 1 << 20));
                Job { share, ..job(0, f64::from(submit), f64::from(run), walltime, nodes) }
            })
            .collect();
        jobs.sort_by(|a, b| a.submit.total_cmp(&b.submit));
        jobs.iter_mut().zip(1..).for_each(|(job, id)| job.id = id);
        workload(jobs)
    })
}
