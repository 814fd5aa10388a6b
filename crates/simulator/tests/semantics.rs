//! The rules of the event loop, one by one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

mod simulation_support;

use simulation_support::{PLAIN, job, logged, rule, run, times, tree, try_run, workload};
use topolane_fabric::InputError;
use topolane_placement::Refusal;
use topolane_scheduler::queue;
use topolane_simulator::{RunOptions, Scenario, simulate};

/// At one instant completions come first, then arrivals, then one pass. Nodes that are given back at 10 are given out
/// at 10, to all jobs that came by 10, in order of submission.
#[test]
fn completions_then_arrivals_then_one_pass() {
    let jobs = workload(vec![
        job(1, 0.0, 10.0, None, 4),
        job(2, 5.0, 10.0, None, 3),
        job(3, 10.0, 7.0, None, 1),
        job(4, 10.0, 10.0, None, 4),
        job(5, 20.0, 1.0, None, 4),
    ]);
    let outcome = run(&jobs, &tree(&[2, 2]), "first-fit", "fcfs");
    let expected =
        [(0, 0.0, 10.0), (1, 10.0, 20.0), (2, 10.0, 17.0), (3, 20.0, 30.0), (4, 30.0, 31.0)];
    assert_eq!(times(&outcome), expected);
    let order: Vec<usize> = outcome.jobs.iter().map(|job| job.job).collect();
    assert_eq!(order, [0, 1, 2, 3, 4], "in order of start");
}

/// A job without run time starts and ends at once, and its nodes are given out again in the same moment.
#[test]
fn a_job_of_no_time_ends_in_the_moment_it_starts() {
    let jobs = workload((1..5).map(|id| job(id, 3.0, 0.0, None, 4)).collect());
    for discipline in ["fcfs", "easy", "conservative"] {
        let outcome = run(&jobs, &tree(&[2, 2]), "isolated", discipline);
        assert_eq!(times(&outcome), [0, 1, 2, 3].map(|job| (job, 3.0, 3.0)), "{discipline}");
    }
}

/// A time that makes the run longer than any real log is refused, because a row for every minute would not fit in
/// memory.
#[test]
fn a_run_of_ages_is_refused() {
    for (submit, run) in [(1e15, 1.0), (0.0, 1e12)] {
        let jobs = workload(vec![job(1, 0.0, 1.0, None, 4), job(2, submit, run, None, 4)]);
        let error = try_run(&jobs, &tree(&[2, 2]), "first-fit", "easy", &PLAIN).unwrap_err();
        assert!(error.message.contains("more than 20 years"), "{error}");
    }
}

/// A job runs for the shorter of its run time and its walltime. It is killed only if the walltime is shorter, not if
/// both are the same.
#[test]
fn jobs_end_at_their_walltime() {
    let jobs = workload(vec![
        job(1, 0.0, 10.0, Some(6.0), 1),
        job(2, 0.0, 10.0, Some(10.0), 1),
        job(3, 0.0, 10.0, Some(99.0), 1),
        job(4, 0.0, 10.0, None, 1),
    ]);
    let outcome = run(&jobs, &tree(&[2, 2]), "first-fit", "easy");
    let ends: Vec<_> =
        outcome.jobs.iter().map(|job| (job.finish, job.killed, job.walltime)).collect();
    assert_eq!(
        ends,
        [(6.0, true, 6.0), (10.0, false, 10.0), (10.0, false, 99.0), (10.0, false, 10.0)]
    );
}

/// A job without a walltime is planned with the default, which then also ends it. Without a default it is planned with
/// its run time.
#[test]
fn an_absent_walltime_is_the_default_or_the_run_time() {
    // The head waits for 10; the last job is backfilled iff it is planned to end by then.
    let jobs = workload(vec![
        job(1, 0.0, 10.0, Some(10.0), 3),
        job(2, 1.0, 10.0, Some(10.0), 4),
        job(3, 2.0, 5.0, None, 1),
    ]);
    let start_of_3 = |default_walltime| {
        let options = RunOptions { default_walltime, ..PLAIN };
        let outcome = try_run(&jobs, &tree(&[2, 2]), "first-fit", "easy", &options).unwrap();
        let last = outcome.jobs.iter().find(|job| job.job == 2).unwrap();
        (last.start, last.walltime, last.killed)
    };
    assert_eq!(start_of_3(None), (2.0, 5.0, false));
    assert_eq!(start_of_3(Some(8.0)), (2.0, 8.0, false));
    assert_eq!(start_of_3(Some(9.0)), (20.0, 9.0, false));
    assert_eq!(start_of_3(Some(4.0)), (2.0, 4.0, true));
}

/// The scenario shortens run times only under a policy that isolates, by an amount that depends on the job's number in
/// its log. The walltime stays, and a job is killed only if what is left of its run time is longer.
#[test]
fn only_isolation_makes_jobs_faster() {
    let jobs = workload(vec![
        job(7, 0.0, 100.0, Some(200.0), 8),
        job(8, 0.0, 100.0, Some(85.0), 8),
        job(9, 0.0, 100.0, None, 4),
    ]);
    let options = RunOptions { scenario: Scenario::Percent(20.0), ..PLAIN };
    let ends = |policy| {
        let outcome = try_run(&jobs, &tree(&[4, 4, 2]), policy, "easy", &options).unwrap();
        outcome.jobs.iter().map(|job| (job.finish, job.killed, job.walltime)).collect::<Vec<_>>()
    };
    assert_eq!(
        ends("isolated"),
        [(80.0, false, 200.0), (80.0, false, 85.0), (100.0, false, 100.0)]
    );
    for policy in ["first-fit", "hop-bytes", "slurm-tree"] {
        assert_eq!(
            ends(policy),
            [(100.0, false, 200.0), (85.0, true, 85.0), (100.0, false, 100.0)]
        );
    }
}

/// A job that the policy would never place is skipped with its reason, and delays no other job.
#[test]
fn jobs_that_never_fit_are_refused_and_reported() {
    let jobs = workload(vec![job(1, 0.0, 5.0, None, 5), job(2, 0.0, 5.0, None, 4)]);
    for discipline in ["fcfs", "easy", "conservative", "recorded"] {
        let outcome = run(&jobs, &tree(&[2, 2]), "first-fit", discipline);
        assert_eq!(outcome.refused, [(0, Refusal::Never { wanted: 5, most: 4 })]);
        assert_eq!(times(&outcome), [(1, 0.0, 5.0)]);
    }
}

/// A replay starts every job when and where its log says, whichever came first, and no job waits for another. A job of
/// which the log has no start begins as soon as there is room.
#[test]
fn a_replay_is_what_the_log_says() {
    let jobs = workload(vec![
        logged(1, 0.0, 10.0, 8.0, 2, "n[1,3]"),
        logged(2, 1.0, 5.0, 2.5, 3, "n[2-4]"),
        logged(3, 2.0, 5.0, 2.5, 1, "n1"),
    ]);
    let outcome = run(&jobs, &tree(&[2, 2]), "recorded", "recorded");
    assert_eq!(times(&outcome), [(0, 8.0, 18.0), (1, 2.5, 7.5), (2, 2.5, 7.5)]);
    let nodes: Vec<_> = outcome.jobs.iter().map(|job| job.placement.nodes().to_vec()).collect();
    assert_eq!(nodes, [vec![1, 2, 3], vec![0], vec![0, 2]], "node n1 is index 0");
    assert_eq!(outcome.late_against_log, 0);
    let times_only = run(&jobs, &tree(&[2, 2]), "first-fit", "recorded");
    assert_eq!(times(&times_only), times(&outcome), "only the nodes are first fit's");
    let nodes_only = run(&jobs, &tree(&[2, 2]), "recorded", "fcfs");
    assert_eq!(times(&nodes_only), [(0, 0.0, 10.0), (1, 10.0, 15.0), (2, 10.0, 15.0)]);
}

/// If a log gives one node to two jobs at once, the second waits for the first and is counted as late, also at the
/// log's very beginning. A job that was submitted after its recorded start is not late by that.
#[test]
fn an_overlapping_log_makes_jobs_late() {
    let jobs = workload(vec![
        logged(1, 0.0, 10.0, 0.0, 2, "n[1-2]"),
        logged(2, 0.0, 10.0, 0.0, 2, "n[2-3]"),
        logged(3, 1.0, 10.0, 15.0, 1, "n3"),
        logged(4, 5.0, 10.0, 4.0, 1, "n4"),
    ]);
    let outcome = run(&jobs, &tree(&[2, 2]), "recorded", "recorded");
    assert_eq!(times(&outcome), [(0, 0.0, 10.0), (1, 10.0, 20.0), (2, 20.0, 30.0), (3, 5.0, 15.0)]);
    assert_eq!(outcome.late_against_log, 2);
}

/// If a log names nodes that the machine does not have, or has no hostlist, a replay returns an error that says which.
/// Under other policies the names are not looked at. A job whose list has another number of nodes than the job is
/// refused.
#[test]
fn logs_of_another_machine_are_refused() {
    let error = |hosts: &str| {
        let jobs = workload(vec![logged(31, 0.0, 10.0, 0.0, 2, hosts)]);
        assert!(try_run(&jobs, &tree(&[2, 2]), "first-fit", "easy", &PLAIN).is_ok());
        try_run(&jobs, &tree(&[2, 2]), "recorded", "recorded", &PLAIN)
            .map(|outcome| outcome.refused)
    };
    let message = error("n[4-5]").unwrap_err().message;
    assert!(message.contains("job 31") && message.contains("n5"), "{message}");
    assert!(error("n[4-").is_err());
    assert_eq!(error("n[2-4]"), Ok(vec![(0, Refusal::Never { wanted: 2, most: 3 })]));
    assert_eq!(error("n1,n1"), Ok(vec![(0, Refusal::Never { wanted: 2, most: 1 })]));
    assert_eq!(error(""), Ok(vec![(0, Refusal::Never { wanted: 2, most: 0 })]));
}

/// Fragmentation counts the seconds in which the head is refused though enough nodes are idle. It does not count those
/// in which jobs that overtook the head hold the nodes. By hand, on leaves of two nodes: from 10 on one node is idle in
/// each, and the job of two waits for a whole leaf until 30. From 12 to 22 another job has one of the idle nodes.
#[test]
fn fragmentation_is_the_time_enough_idle_nodes_do_not_help() {
    let mut jobs = vec![
        job(1, 0.0, 30.0, None, 1),
        job(2, 0.0, 10.0, None, 1),
        job(3, 0.0, 40.0, None, 1),
        job(4, 5.0, 5.0, None, 2),
    ];
    let outcome = run(&workload(jobs.clone()), &tree(&[2, 2]), "isolated", "easy");
    assert_eq!(times(&outcome)[3], (3, 30.0, 35.0));
    assert_eq!((outcome.fragmented_seconds, outcome.fragmented_jobs), (20.0, 1));
    jobs.push(job(5, 12.0, 10.0, None, 1));
    for discipline in ["easy", "conservative"] {
        let outcome = run(&workload(jobs.clone()), &tree(&[2, 2]), "isolated", discipline);
        assert_eq!(times(&outcome)[3..], [(3, 30.0, 35.0), (4, 12.0, 22.0)], "{discipline}");
        assert_eq!(
            (outcome.fragmented_seconds, outcome.fragmented_jobs),
            (10.0, 1),
            "{discipline}"
        );
    }
    let oblivious = run(&workload(jobs), &tree(&[2, 2]), "first-fit", "easy");
    assert_eq!((oblivious.fragmented_seconds, oblivious.fragmented_jobs), (0.0, 0));
}

/// The progress function gets shares that only grow, from 0 to 1 at the end. An error from it stops the run.
#[test]
fn progress_grows_and_may_stop_the_run() {
    let jobs = workload((0..9).map(|id| job(id, id as f64, 4.0, None, 2)).collect());
    let start = |progress: &mut dyn FnMut(f64) -> Result<(), InputError>| {
        simulate(
            &jobs,
            &tree(&[2, 2]),
            &rule("first-fit"),
            queue("easy").unwrap(),
            &PLAIN,
            progress,
        )
    };
    let mut shares = Vec::new();
    start(&mut |share| {
        shares.push(share);
        Ok(())
    })
    .unwrap();
    assert!(shares.is_sorted() && shares[0] >= 0.0 && shares.last() == Some(&1.0), "{shares:?}");
    let stopped = start(&mut |_| Err(InputError::whole("enough")));
    assert_eq!(stopped.unwrap_err().message, "enough");
}

/// A workload without jobs runs, and its outcome is empty.
#[test]
fn an_empty_workload_runs() {
    let outcome = run(&workload(Vec::new()), &tree(&[2, 2]), "isolated", "easy");
    assert!(outcome.jobs.is_empty() && outcome.refused.is_empty());
}
