//! Jobs that the queue `slurm` ends: they make room for others, or their nodes fail.

#![allow(clippy::unwrap_used, clippy::float_cmp)] // Helpers may fail; values are exact.

use std::sync::Arc;

use topolane_fabric::{Fabric, InputError, preset};
use topolane_placement::{Attributes, policy};
use topolane_scheduler::queues::Slurm;
use topolane_scheduler::queues::slurm::SlurmConfig;
use topolane_simulator::workload::{Job, Workload};
use topolane_simulator::{CutShort, Metrics, Outcome, RunOptions, Summary, simulate};

fn job(id: u64, submit: f64, run: f64, nodes: u32, qos: &str) -> Job {
    let attributes = Some(Arc::new(Attributes { qos: qos.into(), ..Attributes::default() }));
    let walltime = Some(2.0 * run);
    Job { id, submit, run, walltime, nodes, attributes, ..Job::default() }
}

/// Runs jobs on 16 nodes with the QOS `high` and `low`. `high` preempts `low`, whose jobs are requeued or cancelled.
fn run(jobs: &[Job], mode: &str) -> (Outcome, Summary) {
    let config = format!(
        r#"{{"preemption": {{"by": "qos", "mode": "{mode}"}},
            "qos": [{{"name": "low"}}, {{"name": "high", "preempts": ["low"]}}]}}"#
    );
    run_under(&config, jobs)
}

/// Runs jobs on 16 nodes, n0 to n15.
fn run_under(config: &str, jobs: &[Job]) -> (Outcome, Summary) {
    let fabric = Arc::new(Fabric::build(&preset("fat-tree(radix=4)").unwrap().unwrap()).unwrap());
    let queue = Slurm::new(SlurmConfig::parse(config).unwrap(), &fabric).unwrap();
    let workload = Workload { jobs: jobs.to_vec(), ..Workload::default() };
    let rule = Arc::from(policy("first-fit", 0).unwrap());
    let options = RunOptions::default();
    let queue = Box::new(queue);
    let outcome =
        simulate::<InputError>(&workload, &fabric, &rule, queue, &options, &mut |_| Ok(()))
            .unwrap();
    let metrics = Metrics::of(&workload, &fabric, &outcome);
    let summary = Summary::of(&workload, fabric.nodes(), &outcome, &metrics, &options);
    (outcome, summary)
}

fn jobs() -> [Job; 2] {
    [job(1, 0.0, 500.0, 16, "low"), job(2, 100.0, 50.0, 4, "high")]
}

/// The first run of a requeued job is lost. The second run begins at least two minutes later, and takes all of the
/// job's time. The wait for it begins where the first run ended.
#[test]
fn a_requeued_job_does_all_of_its_work_again() {
    let (outcome, summary) = run(&jobs(), "requeue");
    let [first, urgent, second] = &outcome.jobs[..] else { unreachable!("three runs") };
    assert_eq!((first.start, first.finish, first.interruption), (1.0, 101.0, Some(100.0)));
    assert!(first.is_interrupted() && second.cut_short.is_none());
    assert_eq!(first.cut_short, Some(CutShort::Requeued));
    assert_eq!((urgent.start, urgent.finish), (103.0, 153.0));
    assert!((222.0..=240.0).contains(&second.start), "{}", second.start);
    assert_eq!((second.submitted, second.finish - second.start), (101.0, 500.0));
    let facts = summary.preemption.unwrap();
    assert_eq!((facts.requeued, facts.cancelled, facts.node_seconds_lost), (1, 0, 1_600.0));
    assert_eq!((summary.jobs, summary.left_out.len()), (2, 0));
}

/// A cancelled job has one run, which ends when the job makes room.
#[test]
fn a_cancelled_job_ends_when_it_makes_room() {
    let (outcome, summary) = run(&jobs(), "cancel");
    let [lost, _] = &outcome.jobs[..] else { unreachable!("two runs") };
    assert_eq!(
        (lost.finish, lost.cut_short, lost.is_interrupted()),
        (101.0, Some(CutShort::Cancelled), false)
    );
    assert_eq!(summary.preemption.unwrap().cancelled, 1);
    assert_eq!((summary.jobs, summary.left_out.len()), (2, 0));
}

/// Without preemption, the summary has no figures of it.
#[test]
fn without_preemption_every_job_runs_once() {
    let (outcome, summary) = run(&jobs(), "off");
    assert!(summary.preemption.is_none() && outcome.jobs.iter().all(|job| job.cut_short.is_none()));
}

/// A job whose node fails does all of its work again, and its first run counts as an interruption by a failure. A job
/// that may not be requeued has one run, which failed.
#[test]
fn a_job_whose_node_fails_does_all_of_its_work_again() {
    let config =
        r#"{"out_of_service": [{"nodes": "NODE", "from": 100, "until": 200, "ends_jobs": true}]}"#;
    let fabric = Fabric::build(&preset("fat-tree(radix=4)").unwrap().unwrap()).unwrap();
    let config = config.replace("NODE", fabric.node_name(0));
    let (outcome, summary) = run_under(&config, &[job(1, 0.0, 500.0, 16, "")]);
    let [first, second] = &outcome.jobs[..] else { unreachable!("two runs") };
    assert_eq!((first.start, first.finish, first.interruption), (1.0, 100.0, Some(99.0)));
    assert!(first.cut_short.is_none() && summary.preemption.is_none());
    assert!(second.start >= 221.0 && second.finish - second.start == 500.0);
    let facts = summary.failures.unwrap();
    assert_eq!((facts.interruptions, facts.node_seconds_lost), (1, 1_584.0));
    let may_not = Attributes { no_requeue: true, ..Attributes::default() };
    let lost = Job { attributes: Some(Arc::new(may_not)), ..job(1, 0.0, 500.0, 16, "") };
    let (outcome, summary) = run_under(&config, &[lost]);
    let [only] = &outcome.jobs[..] else { unreachable!("one run") };
    assert_eq!((only.finish, only.cut_short), (100.0, Some(CutShort::Failed)));
    assert!(summary.preemption.is_none() && !only.is_interrupted());
    assert_eq!((summary.jobs, summary.left_out.len()), (1, 0));
}
