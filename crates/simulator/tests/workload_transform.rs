//! A workload changes as asked, and no job is dropped without being counted.

#![allow(clippy::float_cmp)] // The values compared are exact.

use proptest::prelude::*;
use topolane_placement::Share;
use topolane_simulator::workload::{Job, RecordedRun, Shape, TooWide, Workload, apply};

/// A workload of jobs of (submit, run, nodes), recorded as started at their submission.
fn workload(jobs: &[(f64, f64, u32)]) -> Workload {
    let jobs = jobs.iter().zip(1..).map(|(&(submit, run, nodes), id)| Job {
        id,
        submit,
        run,
        walltime: None,
        nodes,
        share: Share::Whole,
        recorded: Some(RecordedRun { start: submit, ..RecordedRun::default() }),
        ..Job::default()
    });
    Workload { jobs: jobs.collect(), ..Workload::default() }
}

fn submits(workload: &Workload) -> Vec<f64> {
    workload.jobs.iter().map(|job| job.submit).collect()
}

fn nodes(workload: &Workload) -> Vec<u32> {
    workload.jobs.iter().map(|job| job.nodes).collect()
}

#[test]
fn nothing_asked_changes_nothing() {
    let before = workload(&[(10.0, 1.0, 1), (20.0, 1.0, 8)]);
    let mut after = before.clone();
    assert_eq!(apply(&mut after, &Shape::default(), 8), Ok(TooWide::default()));
    assert_eq!(after, before);
}

#[test]
fn nodes_are_multiplied_and_rounded_but_stay_one_at_least() {
    let mut workload = workload(&[(0.0, 1.0, 1), (1.0, 1.0, 2), (2.0, 1.0, 5)]);
    apply(&mut workload, &Shape { nodes_x: Some(0.3), ..Shape::default() }, 8).unwrap();
    assert_eq!(nodes(&workload), [1, 1, 2]);
    apply(&mut workload, &Shape { nodes_x: Some(3.0), ..Shape::default() }, 8).unwrap();
    assert_eq!(nodes(&workload), [3, 3, 6]);
    assert!(workload.jobs.iter().all(|job| job.recorded.is_none()), "it never ran like this");
}

#[test]
fn days_count_from_the_first_submission() {
    let mut workload = workload(&[(500.0, 1.0, 1), (86_899.0, 1.0, 1), (86_900.0, 1.0, 1)]);
    apply(&mut workload, &Shape { days: Some(1.0), ..Shape::default() }, 8).unwrap();
    assert_eq!(submits(&workload), [500.0, 86_899.0]);
    assert_eq!(workload.left_out["after the days asked for"], 1);
    assert!(workload.jobs[0].recorded.is_some(), "what is left did happen");
}

/// The limit counts the jobs that the limits of days, widths and machine have left, and is applied before the load.
#[test]
fn the_limit_counts_what_is_left() {
    let jobs = [(0.0, 9.0, 8), (1.0, 9.0, 1), (2.0, 9.0, 5), (3.0, 9.0, 2), (4.0, 9.0, 1)];
    let mut limited = workload(&jobs);
    let shape = Shape { limit: Some(2), nodes_x: Some(2.0), ..Shape::default() };
    assert_eq!(apply(&mut limited, &shape, 8), Ok(TooWide { jobs: 2, widest: 16 }));
    assert_eq!(submits(&limited), [1.0, 3.0]);
    assert_eq!(limited.left_out["beyond the limit"], 1);
    let mut enough = workload(&jobs);
    apply(&mut enough, &Shape { limit: Some(5), ..Shape::default() }, 8).unwrap();
    assert_eq!((enough.jobs.len(), enough.left_out.len()), (5, 0));
    let mut loaded = workload(&jobs);
    apply(&mut loaded, &Shape { limit: Some(2), load: Some(0.5), ..Shape::default() }, 8).unwrap();
    assert!((loaded.load(8) - 0.5).abs() < 1e-9, "of the two jobs that are left");
}

/// Jitter cuts run times by up to its part, evenly, each job's by a draw of its own from the seed. All else stays, as
/// does the order of submission.
#[test]
fn jitter_cuts_run_times_alone() {
    let jobs: Vec<(f64, f64, u32)> = (0..2_000).map(|at| (f64::from(at), 100.0, 1)).collect();
    let before = workload(&jobs);
    let cuts = |seed| {
        let mut after = before.clone();
        let shape = Shape { jitter: Some(0.02), seed, ..Shape::default() };
        assert_eq!(apply(&mut after, &shape, 8), Ok(TooWide::default()));
        assert_eq!((submits(&after), nodes(&after)), (submits(&before), nodes(&before)));
        assert!(after.jobs.iter().all(|job| job.recorded.is_none()), "it never ran like this");
        after.jobs.iter().map(|job| 1.0 - job.run / 100.0).collect::<Vec<f64>>()
    };
    let first = cuts(1);
    assert_eq!(first, cuts(1));
    assert!(first.iter().all(|cut| (0.0..0.02).contains(cut)));
    let mean = first.iter().sum::<f64>() / 2_000.0;
    assert!((mean - 0.01).abs() < 0.000_7, "five standard deviations of an even draw: {mean}");
    let second = cuts(2);
    assert!(first.iter().zip(&second).all(|(one, other)| one != other));
}

#[test]
fn squeezing_moves_submissions_towards_the_first() {
    let mut workload = workload(&[(100.0, 1.0, 1), (200.0, 1.0, 1), (400.0, 1.0, 1)]);
    apply(&mut workload, &Shape { squeeze: Some(0.6), ..Shape::default() }, 8).unwrap();
    assert_eq!(submits(&workload), [100.0, 160.0, 280.0]);
}

#[test]
fn jobs_wider_than_the_machine_are_counted_and_the_widest_named() {
    let mut workload = workload(&[(0.0, 9.0, 4), (1.0, 9.0, 5), (2.0, 9.0, 8), (3.0, 9.0, 1)]);
    let shape = Shape { nodes_x: Some(2.0), load: Some(0.5), ..Shape::default() };
    assert_eq!(apply(&mut workload, &shape, 8), Ok(TooWide { jobs: 2, widest: 16 }));
    assert_eq!(workload.left_out["wider than the machine"], 2);
    assert_eq!(nodes(&workload), [8, 2]);
    // The load is that of the jobs that are left: (8 + 2) x 9 s on 8 nodes over 22.5 s.
    assert_eq!(workload.span(), 22.5);
}

#[test]
fn a_factor_out_of_range_is_refused_by_name() {
    for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        for (name, shape) in [
            ("days", Shape { days: Some(value), ..Shape::default() }),
            ("nodes-x", Shape { nodes_x: Some(value), ..Shape::default() }),
            ("squeeze", Shape { squeeze: Some(value), ..Shape::default() }),
            ("load", Shape { load: Some(value), ..Shape::default() }),
            ("jitter", Shape { jitter: Some(value), ..Shape::default() }),
        ] {
            let before = workload(&[(0.0, 1.0, 1), (1.0, 1.0, 1)]);
            let mut after = before.clone();
            let error = apply(&mut after, &shape, 8).unwrap_err();
            assert_eq!(error.to_string(), format!("{name}: {value} is not a number above 0"));
            assert_eq!(after, before);
        }
    }
    let all = Shape { jitter: Some(1.0), ..Shape::default() };
    let error = apply(&mut workload(&[]), &all, 8).unwrap_err();
    assert_eq!(error.to_string(), "jitter: 1 is a part of the run times: under 1");
    let both = Shape { load: Some(1.0), squeeze: Some(0.6), ..Shape::default() };
    assert!(apply(&mut workload(&[]), &both, 8).is_err());
    let at_once = &mut workload(&[(5.0, 1.0, 1), (5.0, 1.0, 1)]);
    assert!(apply(at_once, &Shape { load: Some(1.0), ..Shape::default() }, 8).is_err());
}

proptest! {
    /// Multiplying all distances by one factor gives the load asked for; the first job stays in place.
    #[test]
    fn the_load_is_what_was_asked_for(
        mut jobs in prop::collection::vec((0.0..1e6, 1.0..1e5, 1..=16_u32), 2..40),
        load in 0.01..10.0,
    ) {
        jobs.sort_by(|a: &(f64, f64, u32), b| a.0.total_cmp(&b.0));
        let before = workload(&jobs);
        prop_assume!(before.span() > 1.0);
        let mut after = before.clone();
        apply(&mut after, &Shape { load: Some(load), ..Shape::default() }, 16).unwrap();
        prop_assert!((after.load(16) / load - 1.0).abs() < 1e-6);
        let factor = after.span() / before.span();
        for (a, b) in before.jobs.iter().zip(&after.jobs) {
            let moved = (a.submit - before.jobs[0].submit) * factor;
            prop_assert!((b.submit - after.jobs[0].submit - moved).abs() <= 1e-6 * moved.max(1.0));
        }
    }
}
