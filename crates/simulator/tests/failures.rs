//! Nodes that fail: their jobs go on with a spare node of the domain, or are submitted again.

#![allow(clippy::unwrap_used, clippy::float_cmp)] // Helpers may fail; values are exact.

use std::sync::Arc;

use proptest::prelude::*;
use topolane_fabric::{Fabric, InputError, preset};
use topolane_placement::policy;
use topolane_simulator::workload::{Job, Workload};
use topolane_simulator::{Failure, FailureRate, Metrics, Outcome, RunOptions, Summary, simulate};

const HOUR: f64 = 3_600.0;

/// A unit of eight racks of 18 nodes.
fn racks() -> Arc<Fabric> {
    Arc::new(Fabric::build(&preset("nvl72(units=1)").unwrap().unwrap()).unwrap())
}

fn job(id: u64, submit: f64, run: f64, nodes: u32) -> Job {
    Job { id, submit, run, nodes, ..Job::default() }
}

fn run(jobs: &[Job], failures: &[Failure], spares: u32, rule: &str) -> Outcome {
    let fabric = racks();
    let workload = Workload { jobs: jobs.to_vec(), ..Workload::default() };
    let options = RunOptions {
        failures: failures.to_vec(),
        spares,
        checkpoint: HOUR,
        ..RunOptions::default()
    };
    let rule = Arc::from(policy(rule, 0).unwrap());
    let queue = topolane_scheduler::queue("easy").unwrap();
    let outcome =
        simulate::<InputError>(&workload, &fabric, &rule, queue, &options, &mut |_| Ok(()))
            .unwrap();
    // The figures can be computed for every outcome.
    let metrics = Metrics::of(&workload, &fabric, &outcome);
    let summary = Summary::of(&workload, fabric.nodes(), &outcome, &metrics, &options);
    let waiting = summary.left_out.get("still waiting at the end").copied().unwrap_or(0);
    assert_eq!(summary.jobs as u64 + waiting, jobs.len() as u64);
    outcome
}

#[test]
fn without_a_spare_node_a_job_starts_again_elsewhere_from_its_last_checkpoint() {
    // The job has run for 2.5 of its 4 hours when node 1 fails. It loses half an hour, and works again 10 minutes
    // later.
    let failure = Failure { node: 1, from: 2.5 * HOUR, until: 100.0 * HOUR };
    let outcome = run(&[job(7, 0.0, 4.0 * HOUR, 4)], &[failure], 0, "first-fit");
    let [first, second] = &outcome.jobs[..] else { unreachable!("two runs") };
    assert_eq!(
        (first.finish, first.is_interrupted(), first.placement.nodes()),
        (2.5 * HOUR, true, &[0, 1, 2, 3][..])
    );
    assert_eq!(
        (second.submitted, second.start, second.is_interrupted()),
        (2.5 * HOUR, 2.5 * HOUR, false)
    );
    assert_eq!(second.placement.nodes(), [0, 2, 3, 4]);
    assert_eq!(second.finish, 2.5 * HOUR + 2.0 * HOUR + 600.0);
    let count = outcome.failures.unwrap();
    assert_eq!((count.failures, count.interruptions, count.absorbed), (1, 1, 0));
    assert_eq!(count.node_seconds_lost, 4.0 * (1_800.0 + 600.0));
}

#[test]
fn with_a_spare_node_of_its_domain_a_job_goes_on_at_once() {
    let failure = Failure { node: 1, from: 2.5 * HOUR, until: 3.0 * HOUR };
    for rule in ["first-fit", "isolated"] {
        let outcome = run(&[job(7, 0.0, 4.0 * HOUR, 4)], &[failure], 1, rule);
        let [only] = &outcome.jobs[..] else { unreachable!("one run") };
        // The highest node of each rack is the spare one.
        assert_eq!(only.placement.nodes(), [0, 17, 2, 3], "{rule}");
        assert_eq!(only.moves[0].from.nodes(), [0, 1, 2, 3]);
        assert_eq!((only.finish, only.affected), (4.0 * HOUR + 1_800.0 + 600.0, true));
        let count = outcome.failures.unwrap();
        assert_eq!((count.interruptions, count.absorbed), (1, 1));
        // Eight spare nodes stand by; only seven between the failure and the return of node 1, which takes the place of
        // node 17.
        assert_eq!(count.node_seconds_spare, 8.0 * only.finish - 0.5 * HOUR);
    }
}

#[test]
fn jobs_do_not_get_spare_nodes_and_an_interrupted_job_goes_before_others() {
    let failure = Failure { node: 0, from: HOUR, until: 50.0 * HOUR };
    // Each of two jobs wants the whole machine less the spare nodes.
    let jobs = [job(1, 0.0, 3.0 * HOUR, 128), job(2, 60.0, 3.0 * HOUR, 128)];
    let outcome = run(&jobs, &[failure], 2, "first-fit");
    assert_eq!(outcome.failures.unwrap().absorbed, 1);
    let kept: Vec<u32> = (0..8).flat_map(|rack| [18 * rack + 16, 18 * rack + 17]).collect();
    let second = &outcome.jobs[1];
    assert!(second.placement.nodes().iter().all(|node| *node == 16 || !kept.contains(node)));
    // Without spare nodes the first job is interrupted. It stands before the second again, and only one has room.
    let outcome = run(&jobs, &[failure], 0, "first-fit");
    let order: Vec<usize> = outcome.jobs.iter().map(|run| run.job).collect();
    assert_eq!(order, [0, 0, 1]);
}

#[test]
fn a_failed_node_gets_no_job_until_it_is_back() {
    let failure = Failure { node: 3, from: 10.0, until: 20.0 * HOUR };
    let outcome =
        run(&[job(1, 60.0, HOUR, 144), job(2, 61.0, HOUR, 143)], &[failure], 0, "first-fit");
    let start = |id: usize| outcome.jobs.iter().find(|run| run.job == id).unwrap().start;
    assert_eq!((start(0), outcome.failures.unwrap().interruptions), (20.0 * HOUR, 0));
}

#[test]
fn failures_are_as_frequent_as_they_are_said_to_be_and_the_same_for_a_seed() {
    let fabric = Fabric::build(&preset("nvl72-5000").unwrap().unwrap()).unwrap();
    let rate = FailureRate { per_node_day: 0.01, repair: 6.0 * HOUR };
    let month = 30.0 * 24.0 * HOUR;
    let drawn = rate.draw(&fabric, 0.0, month, 1);
    let wanted = 0.01 * 30.0 * 5_040.0;
    assert!((drawn.len() as f64 / wanted - 1.0).abs() < 0.08, "{}", drawn.len());
    let repair: f64 =
        drawn.iter().map(|one| one.until - one.from).sum::<f64>() / drawn.len() as f64;
    assert!((repair / (6.0 * HOUR) - 1.0).abs() < 0.08, "{repair}");
    assert_eq!(drawn, rate.draw(&fabric, 0.0, month, 1));
    assert_ne!(drawn, rate.draw(&fabric, 0.0, month, 2));
    assert!(FailureRate { per_node_day: 0.0, ..rate }.draw(&fabric, 0.0, month, 1).is_empty());
}

proptest! {
    /// Every job does all of its work, whatever fails. The seconds of its runs are its own run time, the work it lost,
    /// and the pauses.
    #[test]
    fn no_work_is_lost_twice_and_none_is_left(
        sizes in prop::collection::vec((1..40_u32, 1..20_u32), 1..30),
        failures in prop::collection::vec((0..144_u32, 0..200_u32, 1..50_u32), 0..40),
        spares in 0..3_u32,
    ) {
        let jobs: Vec<Job> = (0..).zip(&sizes)
            .map(|(id, &(nodes, hours))| job(id, 0.0, f64::from(hours) * HOUR, nodes)).collect();
        let failures: Vec<Failure> = failures.iter().map(|&(node, from, hours)| {
            let from = f64::from(from) * 617.0;
            Failure { node, from, until: from + f64::from(hours) * HOUR }
        }).collect();
        let outcome = run(&jobs, &failures, spares, "first-fit");
        let held: f64 = outcome.jobs.iter()
            .map(|run| run.placement.nodes().len() as f64 * (run.finish - run.start)).sum();
        let own: f64 = jobs.iter().map(|job| f64::from(job.nodes) * job.run).sum();
        let count = outcome.failures.unwrap_or_default();
        prop_assert!((held - own - count.node_seconds_lost).abs() < 1e-3 * own);
        prop_assert_eq!(outcome.jobs.iter().filter(|run| !run.is_interrupted()).count(), jobs.len());
        let unabsorbed = count.interruptions - count.absorbed;
        prop_assert_eq!(outcome.jobs.len() as u64, jobs.len() as u64 + unabsorbed);
        // Two jobs that run at the same time share no node. Jobs that went on with a spare node are skipped here.
        for (index, one) in outcome.jobs.iter().enumerate() {
            for other in &outcome.jobs[..index] {
                let meet = one.start < other.finish && other.start < one.finish;
                let all_along = one.moves.is_empty() && other.moves.is_empty();
                let share = one.placement.nodes().iter().any(|node| other.placement.nodes().contains(node));
                prop_assert!(!(meet && all_along && share));
            }
        }
    }
}
