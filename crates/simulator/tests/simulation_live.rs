//! The code that decides in a simulation is the code that decides live.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

mod simulation_support;

use std::sync::Arc;

use proptest::prelude::*;
use simulation_support::{PLAIN, jobs, rule, run, tree, try_run};
use topolane_fabric::Fabric;
use topolane_placement::Request;
use topolane_scheduler::{Scheduler, queue};
use topolane_simulator::workload::Workload;
use topolane_simulator::{Metrics, RunOptions, Scenario};

/// A live cluster that uses nothing of the simulator. Every second it looks at its clock, reports the jobs that have
/// ended, submits the new ones and asks the scheduler. It repeats this until nothing ends or arrives in that second.
fn live(
    jobs: &Workload,
    fabric: &Arc<Fabric>,
    policy: &str,
    discipline: &str,
) -> Vec<(usize, f64, Vec<u32>)> {
    let mut scheduler =
        Scheduler::new(Arc::clone(fabric), rule(policy), queue(discipline).unwrap());
    let mut ends: Vec<(f64, u64)> = Vec::new();
    let mut submitted = 0;
    let mut started = Vec::new();
    let mut clock = 0.0;
    while submitted < jobs.jobs.len() || !ends.is_empty() {
        loop {
            let mut events = 0;
            for &(_, id) in ends.iter().filter(|end| end.0 <= clock) {
                scheduler.complete(id);
                events += 1;
            }
            ends.retain(|end| end.0 > clock);
            while let Some(job) = jobs.jobs.get(submitted).filter(|job| job.submit <= clock) {
                let walltime = job.walltime.unwrap_or(job.run);
                let request = Request::whole_nodes(submitted as u64, job.nodes, walltime);
                let _ = scheduler.submit(Request { share: job.share.clone(), ..request }, 0.0);
                submitted += 1;
                events += 1;
            }
            if events == 0 {
                break;
            }
            for start in scheduler.pass(clock) {
                let index = start.request.id as usize;
                ends.push((
                    clock + jobs.jobs[index].run.min(start.request.walltime),
                    start.request.id,
                ));
                started.push((index, clock, start.placement.nodes().to_vec()));
            }
        }
        clock += 1.0;
    }
    started
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A live driver with its own clock and cluster starts the same jobs at the same times on the same nodes as the
    /// simulator, for every policy and discipline.
    #[test]
    fn a_live_driver_decides_as_the_simulation_does(jobs in jobs(18, true)) {
        let fabric = tree(&[3, 3, 2]);
        for discipline in ["fcfs", "easy", "conservative"] {
            for policy in ["first-fit", "random", "slurm-tree", "hop-bytes", "isolated"] {
                let simulated: Vec<_> = run(&jobs, &fabric, policy, discipline)
                    .jobs
                    .iter()
                    .map(|job| (job.job, job.start, job.placement.nodes().to_vec()))
                    .collect();
                let got = live(&jobs, &fabric, policy, discipline);
                prop_assert_eq!(got, simulated, "{} over {}", discipline, policy);
            }
        }
    }

    /// The same workload, machine, rules and seed give the same bytes. Another seed of the scenario changes run times
    /// only under isolation.
    #[test]
    fn the_same_seed_gives_the_same_bytes(jobs in jobs(18, false), seed in 0u64..100) {
        let fabric = tree(&[3, 3, 2]);
        let bytes = |policy, seed| {
            let options = RunOptions { scenario: Scenario::V1, seed, ..PLAIN };
            let outcome = try_run(&jobs, &fabric, policy, "easy", &options).unwrap();
            let metrics = Metrics::of(&jobs, &fabric, &outcome);
            let mut bytes = Vec::new();
            topolane_simulator::jobs(&jobs, &outcome, &metrics, &options)
                .write_csv(&mut bytes)
                .unwrap();
            bytes
        };
        prop_assert_eq!(bytes("isolated", seed), bytes("isolated", seed));
        prop_assert_eq!(bytes("first-fit", seed), bytes("first-fit", seed + 1));
    }
}
