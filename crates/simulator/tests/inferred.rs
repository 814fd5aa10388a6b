//! What a replay may take from a log: until when jobs were held, their order, and nodes that take no jobs for a time.

#![allow(clippy::unwrap_used, clippy::float_cmp)] // Helpers may fail; values are exact.

mod simulation_support;

use simulation_support::{PLAIN, job, run, times, tree, try_run, workload};
use topolane_simulator::workload::Job;
use topolane_simulator::{Failure, RunOptions};

#[test]
fn a_held_job_starts_when_its_hold_ends_and_waits_from_its_submission() {
    // Job 2 came first, but is held until 50, and others overtake it. No job arrives or ends at 50.
    let held = Job { held_until: Some(50.0), ..job(2, 0.0, 10.0, None, 2) };
    let jobs = workload(vec![held, job(3, 5.0, 20.0, None, 2)]);
    for queue in ["fcfs", "easy", "conservative"] {
        let outcome = run(&jobs, &tree(&[2]), "first-fit", queue);
        assert_eq!(times(&outcome), [(0, 50.0, 60.0), (1, 5.0, 25.0)], "{queue}");
        let first = outcome.jobs.iter().find(|found| found.job == 0).unwrap();
        assert_eq!(first.submitted, 0.0);
    }
}

#[test]
fn a_held_job_keeps_its_place_in_the_queue() {
    // All jobs want the whole machine, which is free from 100 on. Job 1 was submitted before job 2, and its hold ends
    // before 100.
    let held = Job { held_until: Some(90.0), ..job(1, 10.0, 10.0, None, 2) };
    let jobs = workload(vec![job(0, 0.0, 100.0, None, 2), held, job(2, 20.0, 10.0, None, 2)]);
    let outcome = run(&jobs, &tree(&[2]), "first-fit", "easy");
    assert_eq!(times(&outcome), [(0, 0.0, 100.0), (1, 100.0, 110.0), (2, 110.0, 120.0)]);
}

#[test]
fn jobs_of_higher_priority_come_first() {
    let with = |priority, job: Job| Job { priority, ..job };
    let jobs = workload(vec![
        job(0, 0.0, 100.0, None, 2),
        with(-2.0, job(1, 10.0, 10.0, None, 2)),
        with(-1.0, job(2, 20.0, 10.0, None, 2)),
    ]);
    let outcome = run(&jobs, &tree(&[2]), "first-fit", "fcfs");
    assert_eq!(times(&outcome), [(0, 0.0, 100.0), (1, 110.0, 120.0), (2, 100.0, 110.0)]);
}

#[test]
fn nodes_out_of_service_end_their_jobs_and_take_no_new_ones() {
    // Node 0 is out of service from 10 to 60. Job 0 runs on it until 30 and job 1 on the other node until 20. Job 2
    // waits until node 0 is back.
    let jobs = workload(vec![
        job(0, 0.0, 30.0, None, 1),
        job(1, 0.0, 20.0, None, 1),
        job(2, 5.0, 10.0, None, 2),
    ]);
    let out_of_service = vec![Failure { node: 0, from: 10.0, until: 60.0 }];
    let options = RunOptions { out_of_service, ..PLAIN };
    for queue in ["fcfs", "easy", "conservative"] {
        let outcome = try_run(&jobs, &tree(&[2]), "first-fit", queue, &options).unwrap();
        assert_eq!(times(&outcome), [(0, 0.0, 30.0), (1, 0.0, 20.0), (2, 60.0, 70.0)], "{queue}");
        assert!(outcome.failures.is_none());
    }
}
