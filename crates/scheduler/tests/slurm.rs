//! The queue `slurm`: its two schedulers, the order of its jobs, and what holds a job back. The machine has 24 nodes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

mod common;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use common::{Job, jobs, machine, no_core_twice, rule};
use proptest::prelude::*;
use topolane_placement::{Attributes, Request, Share};
use topolane_scheduler::queues::Slurm;
use topolane_scheduler::queues::slurm::{
    Because, By, RecordedStart, Retrace, RetraceAnswer, RetraceQuestion, SlurmConfig,
};
use topolane_scheduler::{EndedEarly, Scheduler};

fn scheduler(config: &str) -> Scheduler {
    let config = SlurmConfig::parse(config).unwrap();
    let queue = Slurm::new(config, &machine()).unwrap();
    Scheduler::new(machine(), rule("first-fit"), Box::new(queue))
}

/// A request of this partition, user and QOS for a job that runs for its whole walltime.
fn ask(id: u64, nodes: u32, walltime: f64, (part, user, qos): (&str, &str, &str)) -> Request {
    let attributes = Attributes {
        partition: part.into(),
        user: user.into(),
        account: "all".into(),
        qos: qos.into(),
        ..Attributes::default()
    };
    let attributes = Some(Arc::new(attributes));
    Request { attributes, ..Request::whole_nodes(id, nodes, walltime) }
}

const DEFAULT: (&str, &str, &str) = ("", "", "");

/// Submits the jobs at their times and runs the scheduler up to `until`. Returns the last start of each job.
fn started(scheduler: &mut Scheduler, jobs: &[(f64, Request)], until: f64) -> BTreeMap<u64, f64> {
    followed(scheduler, jobs, until).0
}

/// Returns what [`started`] does, and each preempted job with its time.
fn followed(
    scheduler: &mut Scheduler,
    jobs: &[(f64, Request)],
    until: f64,
) -> (BTreeMap<u64, f64>, Vec<(u64, f64)>) {
    let (mut starts, mut victims) = (BTreeMap::new(), Vec::new());
    let mut ends: Vec<(f64, u64)> = Vec::new();
    let mut timed = None;
    let mut next = 0;
    loop {
        let arrival = jobs.get(next).map(|job| job.0);
        let end = ends.iter().map(|end| end.0).min_by(f64::total_cmp);
        let due = [arrival, end, timed].into_iter().flatten().min_by(f64::total_cmp);
        let Some(now) = due.filter(|&now| now <= until) else { return (starts, victims) };
        for (_, id) in ends.iter().filter(|end| end.0 <= now) {
            scheduler.complete(*id);
        }
        ends.retain(|end| end.0 > now);
        while let Some((_, request)) = jobs.get(next).filter(|job| job.0 <= now) {
            scheduler.submit(request.clone(), 0.0).unwrap();
            next += 1;
        }
        for start in scheduler.pass(now) {
            starts.insert(start.request.id, now);
            ends.push((now + start.request.walltime, start.request.id));
        }
        for EndedEarly { request, again, .. } in scheduler.last_ended_early().to_vec() {
            victims.push((request.id, now));
            ends.retain(|&(_, id)| id != request.id);
            if let Some(begin) = again {
                scheduler.submit(Request { begin, ..(*request).clone() }, 0.0).unwrap();
            }
        }
        let next_due = [scheduler.next_pass(now), scheduler.next_begin(now)];
        timed = next_due.into_iter().flatten().min_by(f64::total_cmp);
        assert!(timed.is_none_or(|time| time > now), "a pass at {now} wants another one then");
    }
}

/// The main scheduler runs in the second after a submission or an end, but no sooner than 3 s after its last run.
#[test]
fn the_main_scheduler_runs_after_events() {
    let jobs = [
        (0.0, ask(1, 24, 10.0, DEFAULT)),
        (1.0, ask(2, 1, 5.0, DEFAULT)),
        (20.0, ask(3, 1, 5.0, DEFAULT)),
        (21.0, ask(4, 1, 5.0, DEFAULT)),
    ];
    let starts = started(&mut scheduler("{}"), &jobs, 100.0);
    assert_eq!(starts, BTreeMap::from([(1, 1.0), (2, 12.0), (3, 21.0), (4, 24.0)]));
}

/// A job with a begin time is eligible as soon as a scheduler looks at it after that time. It need not wait for the
/// next second, unlike a job that is submitted at that time.
#[test]
fn a_job_with_a_begin_time_is_seen_at_that_time() {
    let later = Request { begin: 30.0, ..ask(1, 1, 5.0, DEFAULT) };
    let jobs = [(0.0, later), (30.0, ask(2, 1, 5.0, DEFAULT))];
    let starts = started(&mut scheduler("{}"), &jobs, 100.0);
    assert_eq!((starts[&1], starts[&2]), (30.0, 31.0), "backfill runs at 30");
}

/// An epilogue keeps the nodes of a job that has ended. The main scheduler runs when the epilogue is over.
#[test]
fn an_epilogue_keeps_the_nodes() {
    let config = r#"{"schedulers": {"epilog": 7, "backfill_interval": 1000}}"#;
    let jobs = [(0.0, ask(1, 24, 10.0, DEFAULT)), (1.0, ask(2, 24, 10.0, DEFAULT))];
    let starts = started(&mut scheduler(config), &jobs, 50.0);
    assert_eq!(starts, BTreeMap::from([(1, 1.0), (2, 18.0)]));
}

/// Jobs of a higher tier go first, then those of higher priority, then those submitted first.
#[test]
fn tier_goes_before_priority_and_priority_before_submission() {
    let config = r#"{"priority": {"weight_qos": 1000},
        "qos": [{"name": "low"}, {"name": "high", "priority": 5}],
        "partitions": [{"name": "batch", "tier": 1}, {"name": "debug", "tier": 2}]}"#;
    let jobs = [
        (0.0, ask(1, 24, 10.0, ("batch", "u", "low"))),
        (1.0, ask(2, 24, 10.0, ("batch", "u", "low"))),
        (2.0, ask(3, 24, 10.0, ("batch", "u", "high"))),
        (3.0, ask(4, 24, 10.0, ("debug", "u", "low"))),
        (4.0, ask(5, 24, 10.0, ("batch", "u", "low"))),
    ];
    let starts = started(&mut scheduler(config), &jobs, 100.0);
    let mut order: Vec<u64> = starts.keys().copied().collect();
    order.sort_by(|a, b| starts[a].total_cmp(&starts[b]));
    assert_eq!(order, [1, 4, 3, 2, 5]);
}

/// The first job of a partition that cannot start closes it, with all its nodes, to the main scheduler. Jobs of other
/// partitions still start on nodes that the closed one does not have.
#[test]
fn the_first_job_that_cannot_start_closes_its_partition() {
    let config = r#"{"schedulers": {"backfill_interval": 1000},
        "partitions": [{"name": "left", "nodes": "n[1-16]"}, {"name": "right", "nodes": "n[9-24]"}]}"#;
    let jobs = [
        (0.0, ask(1, 4, 50.0, ("left", "u", ""))),
        (0.0, ask(2, 16, 50.0, ("left", "u", ""))),
        (0.0, ask(3, 1, 50.0, ("left", "u", ""))),
        (0.0, ask(4, 8, 500.0, ("right", "u", ""))),
        (0.0, ask(5, 1, 50.0, ("right", "u", ""))),
    ];
    let starts = started(&mut scheduler(config), &jobs, 100.0);
    assert_eq!(starts[&1], 1.0);
    assert_eq!(starts[&2], 52.0, "when job 1 has ended");
    assert_eq!(starts[&4], 1.0, "on nodes that partition left does not have");
    assert!(!starts.contains_key(&3) && !starts.contains_key(&5));
}

/// A limit of a QOS holds a job back, and only this job, until enough of the limit is left.
#[test]
fn a_limit_of_a_qos_holds_a_job() {
    for limits in
        [r#""jobs_per_user": 1"#, r#""nodes_per_user": 5"#, r#""nodes": 5"#, r#""jobs": 1"#]
    {
        let config = format!(r#"{{"qos": [{{"name": "few", "limits": {{{limits}}}}}]}}"#);
        let jobs = [
            (0.0, ask(1, 4, 50.0, ("", "u", "few"))),
            (0.0, ask(2, 4, 50.0, ("", "u", "few"))),
            (0.0, ask(3, 4, 50.0, ("", "u", "other"))),
        ];
        let starts = started(&mut scheduler(&config), &jobs, 100.0);
        assert_eq!(starts, BTreeMap::from([(1, 1.0), (2, 52.0), (3, 1.0)]), "{limits}");
    }
}

/// A limit per user holds back no job of another user. A limit of an account holds back the jobs of all its users.
#[test]
fn limits_count_those_they_are_for() {
    let others =
        [(0.0, ask(1, 4, 50.0, ("", "u", "few"))), (0.0, ask(2, 4, 50.0, ("", "v", "few")))];
    let of_user = r#"{"qos": [{"name": "few", "limits": {"jobs_per_user": 1}}]}"#;
    assert_eq!(started(&mut scheduler(of_user), &others, 10.0).len(), 2);
    let of_account =
        r#"{"associations": [{"account": "all", "shares": 1, "limits": {"nodes": 6}}]}"#;
    assert_eq!(started(&mut scheduler(of_account), &others, 10.0).len(), 1);
}

/// A job wider than a limit per job never starts, and keeps no other job waiting. A job just as wide starts.
#[test]
fn a_job_wider_than_its_limit_never_starts() {
    let config = r#"{"qos": [{"name": "few", "limits": {"nodes_per_job": 4}}]}"#;
    let jobs = [
        (0.0, ask(1, 5, 50.0, ("", "u", "few"))),
        (0.0, ask(2, 4, 50.0, ("", "u", "few"))),
        (0.0, ask(3, 5, 50.0, ("", "u", "other"))),
    ];
    let starts = started(&mut scheduler(config), &jobs, 1_000.0);
    assert_eq!(starts, BTreeMap::from([(2, 1.0), (3, 1.0)]));
}

/// Backfill starts a job that ends before the promise of every job ahead of it, and no other.
#[test]
fn backfill_delays_no_promise() {
    let jobs = [
        (0.0, ask(1, 20, 600.0, DEFAULT)),
        (1.0, ask(2, 24, 600.0, DEFAULT)),
        (2.0, ask(3, 4, 300.0, DEFAULT)),
        (3.0, ask(4, 4, 900.0, DEFAULT)),
    ];
    let starts = started(&mut scheduler("{}"), &jobs, 3_000.0);
    assert_eq!(starts[&3], 30.0, "in the first turn of backfill");
    assert_eq!(starts[&2], 603.0, "job 1 ends at 601, and the main scheduler ran at 600");
    assert!(starts[&4] > 1_200.0, "after job 2, which it would delay");
}

/// Once its interval is over, backfill looks every second whether anything changed (`backfill_agent` in
/// src/plugins/sched/backfill/backfill.c). Nothing changes from 30 to 75, so job 3 starts in the second after its
/// submission, and job 4 an interval later.
#[test]
fn backfill_looks_every_second_once_its_interval_is_over() {
    let jobs = [
        (0.0, ask(1, 20, 600.0, DEFAULT)),
        (1.0, ask(2, 24, 600.0, DEFAULT)),
        (75.0, ask(3, 2, 300.0, DEFAULT)),
        (80.0, ask(4, 2, 300.0, DEFAULT)),
    ];
    let mut scheduler = scheduler(r#"{"schedulers": {"interval": 1000}}"#);
    let starts = started(&mut scheduler, &jobs, 500.0);
    assert_eq!((starts[&3], starts[&4]), (76.0, 106.0));
}

/// A job that takes `cores` of the 16 cores of each node, in a partition of one node.
fn part(id: u64, cores: u32, walltime: f64) -> Request {
    Request { share: Share::part(cores, 0), ..ask(id, 1, walltime, ("one", "", "")) }
}

const ONE_NODE: &str = r#"{"partitions": [{"name": "one", "nodes": "n[1]"}]}"#;

/// A job that shares nodes is promised whole nodes, as in Slurm. Later jobs start there if they end before, although their cores would
/// be free together with those of the promise.
#[test]
fn a_job_that_shares_nodes_is_promised_whole_nodes() {
    let jobs = [
        (0.0, part(1, 12, 600.0)),
        (1.0, part(2, 8, 600.0)),
        (2.0, part(3, 2, 300.0)),
        (3.0, part(4, 2, 900.0)),
    ];
    let starts = started(&mut scheduler(ONE_NODE), &jobs, 5_000.0);
    assert_eq!((starts[&1], starts[&3]), (1.0, 30.0), "job 3 ends before the promise: {starts:?}");
    assert!((600.0..700.0).contains(&starts[&2]), "{starts:?}");
    assert!(starts[&2] <= starts[&4] && starts[&4] < 1_000.0, "while job 2 runs: {starts:?}");
}

/// A job of whole nodes waits until all jobs that share them have ended, and is promised nodes like any other.
#[test]
fn a_job_of_whole_nodes_waits_for_those_that_share_them() {
    let whole = ask(3, 1, 100.0, ("one", "", ""));
    let jobs = [
        (0.0, part(1, 2, 600.0)),
        (0.0, part(2, 2, 900.0)),
        (1.0, whole),
        (2.0, part(4, 2, 600.0)),
        (3.0, part(5, 2, 1_200.0)),
    ];
    let starts = started(&mut scheduler(ONE_NODE), &jobs, 5_000.0);
    assert_eq!((starts[&1], starts[&2], starts[&4]), (1.0, 1.0, 30.0), "{starts:?}");
    assert!((900.0..1_000.0).contains(&starts[&3]), "{starts:?}");
    assert!(starts[&5] >= starts[&3] + 100.0, "{starts:?}");
}

/// A job that backfill starts on a part of a node keeps its licences for its time, rounded up to the resolution, and no nodes. So a job that
/// waits for the licences is promised the node from 420 s on if they are kept up to 370 s, and one that ends at 410 s starts at once. If they
/// are kept up to 360 s, it is promised from then on, and the other one waits.
#[test]
fn a_start_on_a_part_of_a_node_keeps_its_licences() {
    let config = r#"{"licenses": {"solver": 1}, "schedulers": {"backfill_licenses": true},
        "partitions": [{"name": "one", "nodes": "n[1]"}]}"#;
    for (walltime, waits) in [(340.0, false), (330.0, true)] {
        let jobs = [
            (0.0, part(1, 8, 1_000.0)),
            (1.0, part(2, 16, 600.0)),
            (2.0, licensed(part(3, 2, walltime), &[("solver", 1)])),
            (2.0, licensed(part(4, 2, 340.0), &[("solver", 1)])),
            (2.0, part(5, 2, 380.0)),
        ];
        let starts = started(&mut scheduler(config), &jobs, 5_000.0);
        assert_eq!(starts[&3], 30.0, "{starts:?}");
        assert!(starts[&4] >= 30.0 + walltime && starts[&4] < starts[&2], "{starts:?}");
        assert_eq!(starts[&5] >= starts[&4], waits, "{starts:?}");
        assert!(waits || starts[&5] == 30.0, "{starts:?}");
    }
}

/// The usage of a job that shares nodes is that of its processors. A user with little usage goes before one with much,
/// also where usage never decays (a half-life of 0).
#[test]
fn usage_counts_the_processors_of_a_part() {
    let config = |half_life: f64| {
        format!(
            r#"{{"processors_per_node": 16, "priority": {{"weight_fair_share": 1000, "period": 60, "half_life": {half_life}}},
        "partitions": [{{"name": "one", "nodes": "n[1]"}}],
        "associations": [{{"account": "root", "shares": 1}}, {{"account": "all", "parent": "root", "shares": 1}},
            {{"account": "all", "user": "few", "shares": 1}}, {{"account": "all", "user": "many", "shares": 1}}]}}"#
        )
    };
    let of = |user: &str, request: Request| {
        let whose = request.attributes.as_deref().cloned().unwrap_or_default();
        let attributes = Some(Arc::new(Attributes { user: user.into(), ..whose }));
        Request { attributes, ..request }
    };
    let jobs = [
        (0.0, of("few", part(1, 2, 200.0))),
        (0.0, of("many", part(2, 6, 190.0))),
        (1.0, of("many", part(3, 16, 100.0))),
        (2.0, of("few", part(4, 16, 100.0))),
    ];
    for half_life in [604_800.0, 0.0] {
        let starts = started(&mut scheduler(&config(half_life)), &jobs, 2_000.0);
        assert!(starts[&4] < starts[&3], "{half_life}: {starts:?}");
    }
}

/// While a reservation holds, a job outside of it does not run on its nodes, and a job inside runs nowhere else.
#[test]
fn a_reservation_keeps_its_nodes() {
    let config =
        r#"{"reservations": [{"name": "course", "nodes": "n[1-20]", "from": 100, "until": 200}]}"#;
    let course = {
        let request = ask(3, 8, 50.0, DEFAULT);
        let attributes = Attributes { reservation: "course".into(), ..Attributes::default() };
        Request { attributes: Some(Arc::new(attributes)), ..request }
    };
    let jobs = [(0.0, ask(1, 8, 90.0, DEFAULT)), (1.0, ask(2, 8, 150.0, DEFAULT)), (2.0, course)];
    let starts = started(&mut scheduler(config), &jobs, 400.0);
    assert_eq!(starts[&1], 1.0, "it ends before the reservation begins");
    assert!(starts[&2] >= 200.0, "it would run into the reservation");
    assert!((100.0..200.0).contains(&starts[&3]));
}

/// A job that would run into a reservation is promised nodes for the time after it, and no later job may delay that.
#[test]
fn backfill_promises_nodes_after_a_reservation() {
    let config = r#"{"schedulers": {"depth": 1, "interval": 10000},
        "reservations": [{"name": "course", "nodes": "n[1-20]", "from": 100, "until": 1000}]}"#;
    let jobs = [
        (0.0, ask(1, 24, 600.0, DEFAULT)),
        (1.0, ask(2, 4, 2_000.0, DEFAULT)),
        (2.0, ask(3, 4, 900.0, DEFAULT)),
    ];
    let starts = started(&mut scheduler(config), &jobs, 5_000.0);
    assert_eq!(starts[&3], 30.0, "it ends before the promise: {starts:?}");
    assert!(starts[&1] >= 1_000.0, "{starts:?}");
    assert!(starts[&2] >= starts[&1] + 600.0, "it would delay job 1: {starts:?}");
}

/// The request with these licences.
fn licensed(request: Request, licenses: &[(&str, u64)]) -> Request {
    let licenses = licenses.iter().map(|&(name, asked)| (name.into(), asked)).collect();
    let whose = request.attributes.as_deref().cloned().unwrap_or_default();
    Request { attributes: Some(Arc::new(Attributes { licenses, ..whose })), ..request }
}

/// A job whose licences are in use waits, and closes no partition. It has no promise, so later jobs start on its nodes.
#[test]
fn a_job_without_licences_is_passed_over() {
    let config = r#"{"licenses": {"solver": 3}}"#;
    let jobs = [
        (0.0, licensed(ask(1, 4, 100.0, DEFAULT), &[("solver", 2)])),
        (0.0, licensed(ask(2, 20, 100.0, DEFAULT), &[("solver", 2)])),
        (0.0, ask(3, 20, 300.0, DEFAULT)),
        (0.0, licensed(ask(4, 1, 50.0, DEFAULT), &[("solver", 1), ("unknown", 7)])),
    ];
    let starts = started(&mut scheduler(config), &jobs, 1_000.0);
    assert_eq!((starts[&1], starts[&3]), (1.0, 1.0), "job 2 closes nothing: {starts:?}");
    assert_eq!(starts[&4], 102.0, "by backfill: job 2 has licences now, and closes its partition");
    assert_eq!(starts[&2], 303.0, "job 3 has ended by then");
}

/// With backfill of licences a job that waits for them ends the run of the main scheduler. It is promised them, with nodes, for when
/// they are free, and no later job may delay that.
#[test]
fn backfill_promises_licences_if_asked_to() {
    let jobs = [
        (0.0, licensed(ask(1, 2, 600.0, DEFAULT), &[("solver", 3)])),
        (1.0, licensed(ask(2, 2, 600.0, DEFAULT), &[("solver", 4)])),
        (2.0, licensed(ask(3, 2, 1_200.0, DEFAULT), &[("solver", 1)])),
        (3.0, licensed(ask(4, 2, 300.0, DEFAULT), &[("solver", 1)])),
        (4.0, ask(5, 2, 1_200.0, DEFAULT)),
    ];
    let run = |licenses: u64, promises: bool| {
        let config = format!(
            r#"{{"licenses": {{"solver": {licenses}}}, "schedulers": {{"backfill_licenses": {promises}}}}}"#
        );
        started(&mut scheduler(&config), &jobs, 5_000.0)
    };
    let plain = run(4, false);
    assert_eq!((plain[&3], plain[&5]), (4.0, 7.0), "nothing is promised to job 2: {plain:?}");
    assert!(plain[&2] > 1_200.0, "{plain:?}");
    let promised = run(4, true);
    assert_eq!((promised[&4], promised[&5]), (30.0, 30.0), "by backfill: {promised:?}");
    assert!((601.0..=720.0).contains(&promised[&2]), "when job 1 has ended: {promised:?}");
    assert!(promised[&3] >= promised[&2], "{promised:?}");
}

/// The request in the reservation of that name.
fn reserved(request: Request, name: &str) -> Request {
    let whose = request.attributes.as_deref().cloned().unwrap_or_default();
    let attributes = Attributes { reservation: name.into(), ..whose };
    Request { attributes: Some(Arc::new(attributes)), ..request }
}

/// A scheduler with four licences, of which a reservation without nodes keeps three for a time.
fn keeping_licences((from, until): (u32, u32), promises: bool) -> Scheduler {
    scheduler(&format!(
        r#"{{"licenses": {{"solver": 4}}, "schedulers": {{"backfill_licenses": {promises}}},
            "partitions": [{{"name": "one", "nodes": "n[1]"}}], "reservations": [{{"name": "kept", "nodes": "", "licenses": {{"solver": 3}}, "from": {from}, "until": {until}}}]}}"#
    ))
}

/// A job starts if its licences, those in use and those that other reservations keep during its time are no more than there are. For
/// its own reservation it needs no others.
#[test]
fn a_reservation_keeps_its_licences() {
    let jobs = [
        (0.0, licensed(ask(1, 1, 400.0, DEFAULT), &[("solver", 1)])),
        (0.0, licensed(ask(2, 1, 400.0, DEFAULT), &[("solver", 2)])),
        (1.0, licensed(reserved(ask(3, 1, 100.0, DEFAULT), "kept"), &[("solver", 3)])),
        (500.0, licensed(ask(4, 1, 400.0, DEFAULT), &[("solver", 4)])),
    ];
    let starts = started(&mut keeping_licences((0, 1_000), false), &jobs, 5_000.0);
    assert_eq!((starts[&1], starts[&3]), (1.0, 4.0), "{starts:?}");
    assert!(starts[&2] >= 1_000.0 && starts[&4] >= 1_000.0, "{starts:?}");

    let jobs = [
        (0.0, licensed(ask(1, 1, 400.0, DEFAULT), &[("solver", 4)])),
        (450.0, licensed(ask(2, 1, 100.0, DEFAULT), &[("solver", 2)])),
    ];
    let starts = started(&mut keeping_licences((500, 1_000), false), &jobs, 5_000.0);
    assert_eq!(starts[&1], 1.0, "it ends before the reservation begins");
    assert!(starts[&2] >= 1_000.0, "it would run into the reservation: {starts:?}");
}

/// With backfill of licences, a job that would run into the licences of a reservation is promised them after its end. Slurm looks at its
/// walltime from now on too: once this meets the reservation, the job has no promise, and others start.
#[test]
fn backfill_promises_licences_after_a_reservation() {
    let jobs = [
        (0.0, part(1, 12, 500.0)),
        (1.0, licensed(part(2, 8, 450.0), &[("solver", 2)])),
        (2.0, part(3, 2, 2_000.0)),
        (3.0, part(4, 2, 1_400.0)),
    ];
    let starts = started(&mut keeping_licences((900, 1_500), true), &jobs, 9_000.0);
    assert_eq!((starts[&1], starts[&4]), (1.0, 30.0), "it ends before the promise: {starts:?}");
    assert!((450.0..600.0).contains(&starts[&3]), "{starts:?}");
    assert!(starts[&2] >= 1_500.0, "{starts:?}");
}

/// In the plan, jobs of a reservation take its licences first. So the second job of the reservation is promised these
/// licences as soon as the first has ended.
#[test]
fn backfill_promises_licences_within_a_reservation() {
    let jobs = [
        (0.0, licensed(reserved(ask(1, 1, 1_000.0, DEFAULT), "kept"), &[("solver", 3)])),
        (1.0, licensed(reserved(ask(2, 24, 300.0, DEFAULT), "kept"), &[("solver", 3)])),
        (2.0, ask(3, 1, 1_500.0, DEFAULT)),
        (3.0, ask(4, 1, 600.0, DEFAULT)),
    ];
    let starts = started(&mut keeping_licences((0, 2_000), true), &jobs, 9_000.0);
    assert_eq!((starts[&1], starts[&4]), (1.0, 30.0), "{starts:?}");
    assert!((1_000.0..1_100.0).contains(&starts[&2]), "{starts:?}");
    assert!(starts[&3] > starts[&2], "it would delay job 2: {starts:?}");
}

/// As long as there is any reservation, a job without one whose licences are in use is promised nothing: Slurm finds no later time for
/// it (`job_test_resv`).
#[test]
fn with_a_reservation_no_job_is_promised_licences_in_use() {
    let jobs = [
        (0.0, licensed(ask(1, 2, 600.0, DEFAULT), &[("solver", 3)])),
        (1.0, licensed(ask(2, 24, 600.0, DEFAULT), &[("solver", 4)])),
        (2.0, ask(3, 2, 1_200.0, DEFAULT)),
    ];
    let run = |reservations: &str| {
        let config = format!(
            r#"{{"licenses": {{"solver": 4}}, "schedulers": {{"backfill_licenses": true}}, "reservations": [{reservations}]}}"#
        );
        started(&mut scheduler(&config), &jobs, 9_000.0)
    };
    assert!(run("")[&3] > 600.0, "job 2 is promised the nodes");
    let other = r#"{"name": "other", "nodes": "n[24]", "from": 100000, "until": 200000}"#;
    assert_eq!(run(other)[&3], 30.0);
}

/// A scheduler with three QOS, of which `high` preempts `low`.
fn preempting(more: &str) -> Scheduler {
    let config = format!(
        r#"{{"preemption": {{"by": "qos"{more}}},
            "qos": [{{"name": "low"}}, {{"name": "high", "preempts": ["low"]}}, {{"name": "other"}}]}}"#
    );
    scheduler(&config)
}

const LOW: (&str, &str, &str) = ("", "u", "low");
const HIGH: (&str, &str, &str) = ("", "u", "high");
const OTHER: (&str, &str, &str) = ("", "u", "other");

/// The smallest job of a QOS that may be preempted gives way. The job that preempts it starts when the nodes are
/// cleaned up. The victim starts again for its full time, at the earliest after `requeue_after`.
#[test]
fn a_job_of_a_low_qos_makes_room_and_starts_again() {
    let jobs = [
        (0.0, ask(1, 12, 500.0, LOW)),
        (0.0, ask(2, 8, 500.0, LOW)),
        (0.0, ask(3, 4, 1_000.0, OTHER)),
        (20.0, ask(4, 6, 50.0, HIGH)),
    ];
    let (starts, victims) = followed(&mut preempting(""), &jobs, 1_000.0);
    assert_eq!(victims, [(2, 21.0)]);
    assert_eq!((starts[&1], starts[&4]), (1.0, 24.0), "{starts:?}");
    assert!((142.0..=150.0).contains(&starts[&2]), "{starts:?}");
    let (starts, victims) = followed(&mut preempting(r#", "mode": "cancel""#), &jobs, 1_000.0);
    assert_eq!((victims, starts[&2]), (vec![(2, 21.0)], 1.0), "it is lost");
}

/// Slurm sorts the victims again: the one without which the job did not fit goes first, and then this one may be
/// enough.
#[test]
fn no_more_jobs_than_needed_make_room() {
    let jobs = [
        (0.0, ask(1, 2, 500.0, LOW)),
        (0.0, ask(2, 4, 500.0, LOW)),
        (0.0, ask(3, 12, 500.0, LOW)),
        (0.0, ask(4, 6, 500.0, OTHER)),
        (20.0, ask(5, 12, 50.0, HIGH)),
    ];
    assert_eq!(followed(&mut preempting(""), &jobs, 100.0).1, [(3, 21.0)]);
    let one = (20.0, ask(5, 2, 50.0, HIGH));
    let jobs = [jobs[0].clone(), jobs[1].clone(), jobs[2].clone(), jobs[3].clone(), one];
    assert_eq!(followed(&mut preempting(""), &jobs, 100.0).1, [(1, 21.0)]);
    let (_, youngest) = followed(&mut preempting(r#", "youngest_first": true"#), &jobs, 100.0);
    assert_eq!(youngest.len(), 1);
}

/// No job gives way before its exempt time is over, or if too few jobs may give way.
#[test]
fn a_job_gives_way_after_its_exempt_time() {
    let high = (20.0, ask(2, 24, 50.0, HIGH));
    let jobs = [(0.0, ask(1, 24, 500.0, LOW)), high.clone()];
    let (_, victims) = followed(&mut preempting(r#", "exempt": 90"#), &jobs, 400.0);
    assert!(matches!(victims[..], [(1, at)] if (91.0..=121.0).contains(&at)), "{victims:?}");
    let jobs = [(0.0, ask(1, 20, 500.0, LOW)), (0.0, ask(3, 4, 500.0, OTHER)), high];
    assert_eq!(followed(&mut preempting(""), &jobs, 400.0).1, []);
}

/// Jobs of a lower tier make room, unless their partition keeps them.
#[test]
fn a_higher_tier_preempts() {
    let config = r#"{"preemption": {"by": "partition"}, "partitions": [{"name": "high", "tier": 3},
        {"name": "kept", "tier": 1, "preempt_mode": "off"}, {"name": "lost", "tier": 2, "preempt_mode": "cancel"}]}"#;
    let jobs = [
        (0.0, ask(1, 12, 500.0, ("kept", "u", ""))),
        (0.0, ask(2, 12, 500.0, ("lost", "u", ""))),
        (20.0, ask(3, 2, 50.0, ("high", "u", ""))),
    ];
    let (starts, victims) = followed(&mut scheduler(config), &jobs, 1_000.0);
    assert_eq!(victims, [(2, 21.0)]);
    assert_eq!((starts[&2], starts[&3]), (1.0, 24.0));
}

/// Where partitions preempt by tier, waiting jobs of a higher tier also go first.
#[test]
fn of_waiting_jobs_the_higher_tier_goes_first_where_tiers_preempt() {
    let config = r#"{"preemption": {"by": "partition"}, "partitions": [
        {"name": "kept", "tier": 1, "preempt_mode": "off"}, {"name": "low", "tier": 2, "preempt_mode": "off"},
        {"name": "high", "tier": 3, "preempt_mode": "off"}]}"#;
    let jobs = [
        (0.0, ask(1, 24, 100.0, ("kept", "u", ""))),
        (5.0, ask(2, 24, 100.0, ("low", "u", ""))),
        (10.0, ask(3, 24, 100.0, ("high", "u", ""))),
    ];
    let starts = started(&mut scheduler(config), &jobs, 1_000.0);
    assert!(starts[&3] < starts[&2], "{starts:?}");
}

/// A job that gives way keeps its nodes for the grace time of its QOS or partition. Slurm looks every 30 s whether this
/// time is over.
#[test]
fn a_job_that_gives_way_keeps_its_nodes_for_its_grace_time() {
    let by_qos = r#"{"preemption": {"by": "qos"},
        "qos": [{"name": "low", "grace": 50}, {"name": "high", "preempts": ["low"]}]}"#;
    let by_partition = r#"{"preemption": {"by": "partition"}, "partitions": [
        {"name": "low", "tier": 1, "grace": 50}, {"name": "high", "tier": 2}]}"#;
    for config in [by_qos, by_partition] {
        let jobs = |run: f64| {
            [
                (0.0, ask(1, 24, run, ("low", "u", "low"))),
                (20.0, ask(2, 4, 50.0, ("high", "u", "high"))),
            ]
        };
        let (starts, victims) = followed(&mut scheduler(config), &jobs(5_000.0), 1_000.0);
        assert_eq!(victims, [(1, 90.0)], "the first look at or after 21 + 50");
        assert!((91.0..=95.0).contains(&starts[&2]), "{starts:?}");
        assert!(starts[&1] >= 211.0, "it starts again: {starts:?}");
        let (starts, victims) = followed(&mut scheduler(config), &jobs(40.0), 1_000.0);
        assert_eq!((victims, starts[&1]), (vec![], 1.0), "it ends before its grace time does");
        assert!((42.0..=45.0).contains(&starts[&2]), "{starts:?}");
    }
    let error = SlurmConfig::parse(r#"{"qos": [{"name": "low", "grace": -1}]}"#).unwrap_err();
    assert!(error.to_string().contains("grace -1 is not 0 seconds or more"), "{error}");
}

/// Backfill also preempts jobs, for a job that the main scheduler does not look at.
#[test]
fn backfill_preempts() {
    let config = r#"{"preemption": {"by": "qos"}, "schedulers": {"depth": 1, "interval": 10000},
        "qos": [{"name": "low"}, {"name": "high", "preempts": ["low"]}]}"#;
    let jobs = [
        (0.0, ask(1, 16, 600.0, OTHER)),
        (5.0, ask(2, 8, 3_000.0, LOW)),
        (10.0, ask(3, 24, 600.0, HIGH)),
        (12.0, ask(4, 4, 300.0, HIGH)),
    ];
    let (starts, victims) = followed(&mut scheduler(config), &jobs, 620.0);
    assert_eq!(victims, [(2, 30.0)]);
    assert!(starts[&4] <= 60.0, "{starts:?}");
    assert!(starts[&3] <= 620.0, "its promise holds: {starts:?}");
}

/// Backfill removes jobs that would be preempted first, so they are in no group of ends that are tried together
/// (`_build_cr_job_list`, `_future_run_test` in `src/plugins/select/cons_tres/job_test.c`). Job 4 fits when job 2 ends: its
/// group goes up to 150, job 3 gives way anyway, and job 1 ends later. So job 5 gets none of the free nodes.
#[test]
fn a_job_that_would_give_way_joins_no_ends_of_others() {
    let config = r#"{"preemption": {"by": "qos"},
        "qos": [{"name": "low"}, {"name": "high", "preempts": ["low"]}]}"#;
    let jobs = [
        (0.0, ask(1, 8, 200.0, HIGH)),
        (4.0, ask(2, 8, 100.0, HIGH)),
        (8.0, ask(3, 4, 115.0, LOW)),
        (12.0, ask(4, 16, 600.0, HIGH)),
        (13.0, ask(5, 4, 600.0, OTHER)),
    ];
    let starts = started(&mut scheduler(config), &jobs, 400.0);
    assert!((105.0..115.0).contains(&starts[&4]), "{starts:?}");
    assert!(starts[&5] > 200.0, "on nodes of job 1: {starts:?}");
}

/// A job whose walltime is just over is expected to end `KillWait` and `OverTimeLimit` later (`_guess_job_end` in
/// `src/plugins/select/cons_tres/job_test.c`). Job 3 ends before that, so it may start before job 2.
#[test]
fn a_job_at_its_walltime_is_expected_to_run_on() {
    let starts = |over_time: u32| {
        let mut scheduler = scheduler(&format!(
            r#"{{"schedulers": {{"backfill_resolution": 1, "over_time": {over_time}}}}}"#
        ));
        scheduler.adopt(&ask(1, 20, 30.0, DEFAULT), (0..20).collect(), 0.0).unwrap();
        scheduler.submit(ask(2, 24, 10.0, DEFAULT), 0.0).unwrap();
        scheduler.submit(ask(3, 4, 15.0, DEFAULT), 0.0).unwrap();
        let passes = [1.0, 5.0, 30.0].map(|now| scheduler.pass(now).len());
        passes.into_iter().sum::<usize>()
    };
    assert_eq!(starts(30), 1, "job 2 is promised nodes at 60");
    assert_eq!(starts(2), 0, "job 2 is promised nodes at 32");
    let error = SlurmConfig::parse(r#"{"schedulers": {"over_time": -1}}"#).unwrap_err();
    assert!(error.to_string().contains("schedulers.over_time -1 is not 0 seconds"), "{error}");
}

/// Backfill checks the limits of a job before it ends others for it.
#[test]
fn a_job_over_a_limit_preempts_none() {
    let config = r#"{"preemption": {"by": "qos"}, "schedulers": {"depth": 1, "interval": 10000},
        "qos": [{"name": "low"}, {"name": "high", "preempts": ["low"], "limits": {"nodes": 8}}]}"#;
    let jobs = [
        (0.0, ask(1, 8, 3_000.0, HIGH)),
        (5.0, ask(2, 16, 3_000.0, LOW)),
        (10.0, ask(3, 8, 600.0, HIGH)),
    ];
    let (_, victims) = followed(&mut scheduler(config), &jobs, 300.0);
    assert_eq!(victims, []);
}

/// "May preempt" is no consistent order, so what is sorted matters: the jobs in the order of their numbers, whenever they
/// became eligible. Here 1 goes before 2, and 2 before 3, by priority; 3 may preempt 1.
#[test]
fn jobs_are_sorted_from_the_order_of_their_numbers() {
    let config = r#"{"preemption": {"by": "qos"},
        "qos": [{"name": "low"}, {"name": "normal"}, {"name": "high", "preempts": ["low"]}]}"#;
    let job = |id: u64, qos: &str| {
        let request = ask(id, 24, 100.0, ("", "", qos));
        let whose = request.attributes.as_ref().unwrap();
        let nice = [-300, -200, -100][id as usize - 1];
        let attributes = Attributes { nice, queued: Some(id as f64), ..(**whose).clone() };
        Request { attributes: Some(Arc::new(attributes)), ..request }
    };
    let jobs = [
        (0.0, ask(9, 24, 20.0, ("", "", "normal"))),
        (3.0, job(3, "high")),
        (4.0, job(1, "low")),
        (5.0, job(2, "normal")),
    ];
    let starts = started(&mut scheduler(config), &jobs, 22.0);
    assert_eq!(starts.keys().copied().collect::<Vec<_>>(), [1, 9], "{starts:?}");
}

/// Nodes out of service get no job until they are back.
#[test]
fn nodes_out_of_service_get_no_job() {
    let config = r#"{"out_of_service": [{"nodes": "n[1-4]", "from": 0, "until": 70}]}"#;
    let jobs = [(0.0, ask(1, 24, 10.0, DEFAULT)), (1.0, ask(2, 20, 10.0, DEFAULT))];
    let starts = started(&mut scheduler(config), &jobs, 400.0);
    assert!(starts[&1] >= 70.0 && starts[&2] < 70.0, "{starts:?}");
}

/// When nodes fail, the jobs on them end. These start again for their full time, at the earliest after `requeue_after`
/// and on other nodes, unless they may not be requeued. Jobs on other nodes run on, and draining a node ends no job.
#[test]
fn a_job_whose_node_fails_starts_again() {
    let config = r#"{"schedulers": {"requeue_after": 11}, "out_of_service": [
        {"nodes": "n[1-4]", "from": 100, "until": 10000, "ends_jobs": true},
        {"nodes": "n24", "from": 50, "until": 60}]}"#;
    let may_not = Attributes { no_requeue: true, ..Attributes::default() };
    let may_not = Some(Arc::new(may_not));
    let jobs = [
        (0.0, ask(1, 2, 500.0, DEFAULT)),
        (0.0, Request { attributes: may_not, ..ask(2, 2, 500.0, DEFAULT) }),
        (0.0, ask(3, 20, 300.0, DEFAULT)),
    ];
    let (starts, ended) = followed(&mut scheduler(config), &jobs, 1_000.0);
    assert_eq!(ended, [(1, 100.0), (2, 100.0)]);
    assert_eq!((starts[&2], starts[&3]), (1.0, 1.0), "{starts:?}");
    assert!((301.0..=310.0).contains(&starts[&1]), "when job 3 leaves its nodes: {starts:?}");
}

/// A job of the records that never started keeps its place in the order, but is never started itself.
#[test]
fn a_job_that_never_started_keeps_others_waiting() {
    let config = r#"{"never_started":
        [{"id": 9, "submit": 1, "until": 300, "nodes": 24, "walltime": 600}]}"#;
    let jobs = [(0.0, ask(1, 20, 100.0, DEFAULT)), (2.0, ask(2, 4, 400.0, DEFAULT))];
    let starts = started(&mut scheduler(config), &jobs, 900.0);
    assert!(starts[&2] > 100.0, "before that, it would have delayed job 9: {starts:?}");
}

/// A wrong configuration is an error that names the line, the key or the value.
#[test]
fn a_wrong_configuration_is_an_error() {
    let error = |text: &str| {
        let parsed = SlurmConfig::parse(text);
        parsed.and_then(|config| Slurm::new(config, &machine())).unwrap_err().to_string()
    };
    assert!(error("{\n\"colour\": 1}").contains("line 2"), "{}", error("{\n\"colour\": 1}"));
    assert!(error(r#"{"schedulers": {"interval": 0}}"#).contains("interval 0 is not 1"));
    assert!(error(r#"{"partitions": [{"name": "p", "nodes": "x1"}]}"#).contains("partition p"));
    assert!(error(r#"{"qos": [{"name": "a"}, {"name": "a"}]}"#).contains("two QOS"));
    let orphan = r#"{"associations": [{"account": "a", "user": "u", "shares": 1}]}"#;
    assert!(error(orphan).contains("no association of account a"));
}

/// The size factor counts the processors that a job asked for. Once backfill has found nodes for it, it counts all of these nodes.
#[test]
fn size_counts_all_processors_once_backfill_has_found_nodes() {
    let asks = |id, nodes, processors| {
        let request = ask(id, nodes, 50.0, DEFAULT);
        let attributes = Attributes { processors: Some(processors), ..Attributes::default() };
        Request { attributes: Some(Arc::new(attributes)), ..request }
    };
    let jobs = [(0.0, ask(1, 24, 400.0, DEFAULT)), (1.0, asks(2, 20, 20)), (2.0, asks(3, 12, 192))];
    let first = |interval: u32| {
        let config = format!(
            r#"{{"processors_per_node": 16, "priority": {{"weight_job_size": 1000, "period": 60}},
                "schedulers": {{"backfill_interval": {interval}}}}}"#
        );
        let starts = started(&mut scheduler(&config), &jobs, 800.0);
        if starts[&2] < starts[&3] { 2 } else { 3 }
    };
    assert_eq!(first(10_000), 3, "(12/24 + 192/384) / 2 is more than (20/24 + 20/384) / 2");
    assert_eq!(first(30), 2, "it is less than (20/24 + 320/384) / 2");
}

/// A promise under a limit of nodes counts a node once if other jobs under the limit run on it. So a job that must wait
/// for its limit has a promise, which no later job may delay.
#[test]
fn a_promise_on_nodes_under_the_limit_counts_them_once() {
    let config = |nodes: u32| {
        format!(
            r#"{{"schedulers": {{"depth": 1, "interval": 10000}},
                "qos": [{{"name": "few", "limits": {{"nodes": {nodes}}}}}]}}"#
        )
    };
    let jobs = [
        (0.0, ask(1, 16, 1_000.0, DEFAULT)),
        (5.0, ask(2, 4, 100.0, ("", "u", "few"))),
        (10.0, ask(3, 8, 500.0, ("", "u", "few"))),
        (12.0, ask(4, 1, 900.0, DEFAULT)),
    ];
    let starts = started(&mut scheduler(&config(8)), &jobs, 3_000.0);
    assert!(starts[&4] > starts[&3], "job 4 would delay the promise of job 3: {starts:?}");
    let starts = started(&mut scheduler(&config(7)), &jobs, 3_000.0);
    assert!(!starts.contains_key(&3) && starts[&4] < 100.0, "without a promise: {starts:?}");
}

/// A job in a reservation that cannot start closes this reservation to the main scheduler, and nothing else.
#[test]
fn the_first_job_that_cannot_start_closes_its_reservation() {
    let config = r#"{"schedulers": {"backfill_interval": 10000},
        "reservations": [{"name": "course", "nodes": "n[1-8]", "from": 0, "until": 5000}]}"#;
    let reserved = |id, nodes| {
        let attributes = Attributes { reservation: "course".into(), ..Attributes::default() };
        Request { attributes: Some(Arc::new(attributes)), ..ask(id, nodes, 100.0, DEFAULT) }
    };
    let jobs = [
        (0.0, reserved(1, 4)),
        (5.0, reserved(2, 8)),
        (10.0, reserved(3, 2)),
        (15.0, ask(4, 16, 100.0, DEFAULT)),
    ];
    let starts = started(&mut scheduler(config), &jobs, 1_000.0);
    assert!(starts[&1] < starts[&2] && starts[&2] < starts[&3], "{starts:?}");
    assert!(starts[&4] < 20.0, "outside of the reservation: {starts:?}");
}

/// Jobs of one priority that became eligible at the same time go in order of submission.
#[test]
fn ties_go_in_order_of_submission() {
    let jobs: Vec<(f64, Request)> = [7, 3, 9, 1].map(|id| (0.0, ask(id, 24, 10.0, DEFAULT))).into();
    let starts = started(&mut scheduler("{}"), &jobs, 500.0);
    let mut order: Vec<u64> = starts.keys().copied().collect();
    order.sort_by(|a, b| starts[a].total_cmp(&starts[b]));
    assert_eq!(order, [7, 3, 9, 1]);
}

/// Jobs of one priority go in order of submission (`sort_job_queue2`), though a hold or a dependency made some of them
/// eligible later; a job that is queued again goes behind them.
#[test]
fn ties_go_in_order_of_submission_though_jobs_become_eligible_later() {
    let job = |eligible: f64, id, queued| {
        let attributes = Attributes { queued: Some(queued), ..Attributes::default() };
        (eligible, Request { attributes: Some(Arc::new(attributes)), ..ask(id, 24, 10.0, DEFAULT) })
    };
    let first = (0.0, ask(1, 24, 100.0, DEFAULT));
    let jobs =
        [first, job(20.0, 2, 20.0), job(30.0, 3, 30.0), job(60.0, 4, -5.0), job(70.0, 5, 25.0)];
    let starts = started(&mut scheduler("{}"), &jobs, 1_000.0);
    let mut order: Vec<u64> = starts.keys().copied().collect();
    order.sort_by(|a, b| starts[a].total_cmp(&starts[b]));
    assert_eq!(order, [1, 4, 2, 5, 3]);
    let again = Attributes { queued: Some(20.0), ..Attributes::default() }.queued_again(90.0);
    assert_eq!(again.queued, Some(90.0));
    assert_eq!(Attributes::default().queued_again(90.0).queued, None);
}

proptest! {
    /// Every submitted job starts once, on nodes of its own, and a second run gives the same.
    #[test]
    fn every_job_starts_and_no_node_is_given_twice(jobs in jobs(30)) {
        let once = run(&jobs);
        prop_assert!(once.start.iter().all(Option::is_some));
        no_core_twice(&jobs, &once);
        prop_assert_eq!(&once, &run(&jobs));
    }
}

fn run(jobs: &[Job]) -> common::Run {
    let longest: Vec<Job> =
        jobs.iter().map(|job| Job { run: job.walltime, ..job.clone() }).collect();
    let requests: Vec<(f64, Request)> =
        longest.iter().enumerate().map(|(id, job)| (job.submit, job.request(id as u64))).collect();
    let mut scheduler = scheduler("{}");
    let starts = started(&mut scheduler, &requests, 1e6);
    common::Run {
        start: (0..jobs.len()).map(|id| starts.get(&(id as u64)).copied()).collect(),
        nodes: vec![Vec::new(); jobs.len()],
        reservations: Vec::new(),
    }
}

/// A recorded start: the job, the second, its first node and its number of nodes.
type Start = (u64, f64, u32, u32);

/// What the queue answers about recorded starts by the main scheduler.
fn retraced(config: &str, jobs: &[(f64, Request)], starts: &[Start]) -> Vec<RetraceQuestion> {
    retraced_by(config, jobs, starts, |_| By::Main)
}

/// What the queue answers about recorded starts by either scheduler.
fn retraced_by(
    config: &str,
    jobs: &[(f64, Request)],
    starts: &[Start],
    by: impl Fn(u64) -> By,
) -> Vec<RetraceQuestion> {
    let slurm = Slurm::new(SlurmConfig::parse(config).unwrap(), &machine()).unwrap();
    let start = |&(id, at, first, count): &Start| {
        (id, RecordedStart { at, nodes: (first..first + count).collect(), by: Some(by(id)) })
    };
    let recorded: HashMap<u64, RecordedStart> = starts.iter().map(start).collect();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let queue = Box::new(Retrace::new(slurm, recorded, Arc::clone(&asked)));
    let mut scheduler = Scheduler::new(machine(), rule("first-fit"), queue);
    let followed = started(&mut scheduler, jobs, 200.0);
    assert_eq!(followed, starts.iter().map(|&(id, at, ..)| (id, at)).collect());
    let asked = asked.lock().unwrap();
    asked.clone()
}

/// If the queue itself would make a recorded start, it answers so, and says whether it would take the same nodes.
#[test]
fn a_start_is_decided_alike_if_the_queue_makes_it_in_the_recorded_state() {
    let jobs = [(0.0, ask(1, 24, 10.0, DEFAULT)), (1.0, ask(2, 8, 5.0, DEFAULT))];
    let asked = retraced("{}", &jobs, &[(1, 1.0, 0, 24), (2, 12.0, 0, 8)]);
    let answers: Vec<_> = asked.iter().flat_map(|asked| asked.recorded.clone()).collect();
    assert_eq!(answers, [(1, RetraceAnswer::Same(true)), (2, RetraceAnswer::Same(true))]);
    assert!(asked.iter().all(|asked| asked.more.is_empty()));
    let asked = retraced("{}", &jobs, &[(1, 1.0, 0, 24), (2, 12.0, 8, 8)]);
    assert_eq!(asked[1].recorded, [(2, RetraceAnswer::Same(false))]);
}

/// A start that the queue does not make has its reason: another job goes before it, a limit holds it back, or there are
/// no nodes for it. The queue goes on from the recorded state, so one such start does not make the next ones differ.
#[test]
fn a_start_that_the_queue_does_not_make_has_its_reason() {
    let jobs = [
        (0.0, ask(1, 24, 10.0, DEFAULT)),
        (1.0, ask(2, 24, 10.0, DEFAULT)),
        (2.0, ask(3, 24, 10.0, DEFAULT)),
    ];
    let asked = retraced("{}", &jobs, &[(1, 1.0, 0, 24), (3, 12.0, 0, 24), (2, 23.0, 0, 24)]);
    assert_eq!(asked[1].recorded, [(3, RetraceAnswer::Not(Because::Others))]);
    assert_eq!(asked[1].more, [2]);
    assert_eq!(asked[2].recorded, [(2, RetraceAnswer::Same(true))]);

    let limit = r#"{"qos": [{"name": "one", "limits": {"jobs": 1}}]}"#;
    let of_one = ("", "", "one");
    let jobs = [(0.0, ask(1, 1, 50.0, of_one)), (1.0, ask(2, 1, 50.0, of_one))];
    let asked = retraced(limit, &jobs, &[(1, 1.0, 0, 1), (2, 4.0, 1, 1)]);
    assert_eq!(asked[1].recorded, [(2, RetraceAnswer::Not(Because::Limit))]);

    let kept = r#"{"reservations": [{"name": "kept", "nodes": "n[1-24]", "from": 0}]}"#;
    let jobs = [(0.0, ask(1, 1, 50.0, DEFAULT))];
    let asked = retraced(kept, &jobs, &[(1, 1.0, 0, 1)]);
    assert_eq!(asked[0].recorded, [(1, RetraceAnswer::Not(Because::Nodes))]);
}

/// A job goes before those that it may preempt, also while the queue follows records.
#[test]
fn a_recorded_start_is_asked_in_the_order_of_preemption() {
    let config = r#"{"preemption": {"by": "qos"},
        "qos": [{"name": "low"}, {"name": "high", "preempts": ["low"]}]}"#;
    let jobs = [
        (0.0, ask(1, 24, 10.0, HIGH)),
        (1.0, ask(2, 24, 10.0, LOW)),
        (2.0, ask(3, 24, 10.0, HIGH)),
    ];
    let asked = retraced(config, &jobs, &[(1, 1.0, 0, 24), (3, 12.0, 0, 24), (2, 23.0, 0, 24)]);
    let answers: Vec<_> = asked.iter().flat_map(|asked| asked.recorded.clone()).collect();
    assert!(answers.iter().all(|(_, answer)| *answer == RetraceAnswer::Same(true)), "{answers:?}");
}

/// Records have whole seconds. If both schedulers start jobs in the same second, each is also asked in the state after
/// the starts of the other one. Here backfill starts job 3 on a node that job 2 is too wide for, then job 1 ends and the
/// main scheduler starts job 2: alone in its second, it would have started job 3 as well.
#[test]
fn starts_of_both_schedulers_in_a_second_are_asked_in_each_order() {
    let jobs = [
        (0.0, ask(1, 23, 10.0, DEFAULT)),
        (1.0, ask(2, 23, 10.0, DEFAULT)),
        (2.0, ask(3, 1, 5.0, DEFAULT)),
    ];
    let starts = [(1, 1.0, 0, 23), (2, 12.0, 0, 23), (3, 12.0, 23, 1)];
    let by = |id| if id == 3 { By::Backfill } else { By::Main };
    let asked = retraced_by("{}", &jobs, &starts, by);
    let answers: Vec<_> = asked.iter().flat_map(|asked| asked.recorded.clone()).collect();
    assert!(answers.iter().all(|(_, answer)| *answer == RetraceAnswer::Same(true)), "{answers:?}");
    assert!(asked.iter().all(|asked| asked.more.is_empty()), "{asked:?}");
}

/// Slurm computes priorities up to a second later than its start says, so a start then is also asked about with the
/// priorities before. From 60 on job 3 goes before job 2, because only its user has no usage.
#[test]
fn a_start_when_priorities_are_due_is_asked_with_those_before_too() {
    let config = r#"{"processors_per_node": 1, "schedulers": {"interval": 1000},
        "priority": {"weight_fair_share": 1000, "period": 60, "max_age": 60},
        "associations": [{"account": "all", "shares": 1}, {"account": "all", "user": "u", "shares": 1},
            {"account": "all", "user": "v", "shares": 1}]}"#;
    let jobs = [
        (0.0, ask(1, 24, 60.0, ("", "u", ""))),
        (10.0, ask(2, 24, 10.0, ("", "u", ""))),
        (11.0, ask(3, 24, 10.0, ("", "v", ""))),
    ];
    let starts = |late: f64| [(1, 1.0, 0, 24), (2, 61.0 + late, 0, 24), (3, 72.0 + late, 0, 24)];
    let same = |late: f64| {
        let asked = retraced(config, &jobs, &starts(late));
        asked.iter().all(|asked| asked.recorded[0].1 == RetraceAnswer::Same(true))
    };
    assert!(same(0.0), "within a second of 60");
    assert!(!same(2.0));
}

/// A cancelled job is forgotten. If it is submitted again, it stands behind the jobs that came in the meantime.
#[test]
fn a_cancelled_job_that_comes_again_stands_at_the_end() {
    let mut scheduler = scheduler("{}");
    scheduler.adopt(&ask(1, 24, 20.0, DEFAULT), (0..24).collect(), 0.0).unwrap();
    scheduler.submit(ask(2, 24, 10.0, DEFAULT), 0.0).unwrap();
    scheduler.pass(1.0);
    assert!(scheduler.cancel(2));
    scheduler.submit(ask(3, 24, 10.0, DEFAULT), 0.0).unwrap();
    scheduler.pass(5.0);
    scheduler.submit(ask(2, 24, 10.0, DEFAULT), 0.0).unwrap();
    scheduler.pass(9.0);
    scheduler.complete(1);
    let mut now = 20.0;
    let first = loop {
        let starts = scheduler.pass(now);
        if let Some(start) = starts.first() {
            break start.request.id;
        }
        now = scheduler.next_pass(now).unwrap();
    };
    assert_eq!(first, 3);
}
