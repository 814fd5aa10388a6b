//! Runs on a network small enough to be worked out by hand.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

mod simulation_support;

use simulation_support::network::{
    PATTERNS, by_hand, on, one_cable, options, tapered, with_walltime,
};
use simulation_support::{job, logged, times, try_run, workload};

/// Two jobs need one cable all the time they communicate, so each is slowed to S = 2 while both do.
/// With f all of the time the pace is 1 + f f (S - 1) = 2: the first has 50 s left when the second
/// comes at 50 and ends at 50 + 50 * 2; the second then has 50 s left and the cable to itself. With
/// f a half the pace is 1.25. The cable is busy for f of what both need alone.
#[test]
fn two_jobs_on_one_cable_by_hand() {
    for (communication, first, second) in [(1.0, 150.0, 200.0), (0.5, 112.5, 162.5)] {
        for model in ["congestion", "max-min"] {
            let outcome = by_hand(model, communication, [None, None], false);
            assert_eq!(times(&outcome), [(0, 0.0, first), (1, 50.0, second)], "{model}");
            let stretch = [first / 100.0, (second - 50.0) / 100.0];
            assert_eq!([0, 1].map(|job| outcome.jobs[job].contention()), stretch);
            let busiest = outcome.channel_busy.iter().copied().fold(0.0, f64::max);
            assert_eq!(busiest, communication * 200.0);
        }
    }
}

/// A job that others keep beyond its walltime goes on, is counted, and holds up the head that was
/// promised its end; if asked it is ended there, with what it has done by then counted as load, but
/// never at a walltime that was not given. What the log ended at its walltime ends there in any case.
#[test]
fn walltimes_under_contention_by_hand() {
    let ends = |walltimes, kill| {
        let outcome = by_hand("congestion", 1.0, walltimes, kill);
        let busiest = outcome.channel_busy.iter().copied().fold(0.0, f64::max);
        let jobs = outcome.jobs.iter();
        let fates: Vec<_> = jobs.map(|job| (job.finish, job.killed, job.overran)).collect();
        (fates, busiest)
    };
    let (done, killed, over) = ((200.0, false, false), (120.0, true, false), (150.0, false, true));
    assert_eq!(ends([Some(120.0), Some(900.0)], false), (vec![over, done], 200.0));
    // By 120 the first has done 50 + 70 / 2; the second 35, and the other 65 alone.
    let second = (185.0, false, false);
    assert_eq!(ends([Some(120.0), Some(900.0)], true), (vec![killed, second], 185.0));
    assert_eq!(ends([None, Some(900.0)], true), (vec![over, done], 200.0));
    let ended = by_hand("congestion", 1.0, [Some(120.0), Some(900.0)], true);
    assert_eq!(ended.jobs[0].contention(), 120.0 / 85.0);
    let in_the_log = (100.0, true, false);
    // By 100 the first has done 50 + 50 / 2; the second 25, and the other 75 alone.
    let second = (175.0, false, false);
    assert_eq!(ends([Some(100.0), Some(900.0)], false), (vec![in_the_log, second], 175.0));
}

/// The third job wants all nodes and is promised the end of the second, 160 by its walltime; the
/// second runs until 200, so the head is late. Where walltimes leave room it is not, nor where it
/// starts in the very moment it was promised.
#[test]
fn an_overrun_makes_the_head_late() {
    let late = |walltime| {
        let jobs = workload(vec![
            logged(1, 0.0, 100.0, 0.0, 2, "n[1,3]"),
            logged(2, 50.0, 100.0, 50.0, 2, "n[2,4]"),
            logged(3, 60.0, 10.0, 60.0, 4, "n[1-4]"),
        ]);
        let jobs = with_walltime(jobs, |_, _| Some(walltime));
        let fabric = one_cable();
        let options = options(on(&fabric, "congestion", "d-mod-k", 1.0));
        let outcome = try_run(&jobs, &fabric, "recorded", "easy", &options).unwrap();
        (outcome.late_heads, outcome.jobs.iter().filter(|job| job.overran).count())
    };
    assert_eq!(late(110.0), (1, 2));
    assert_eq!(late(150.0), (0, 0));
    assert_eq!(late(200.0), (0, 0));
}

/// Every job has the same pattern in every run of a seed, every pattern has jobs, and another seed
/// draws otherwise.
#[test]
fn patterns_are_drawn_by_job_and_seed() {
    let network = on(&tapered(), "congestion", "d-mod-k", 0.3);
    let drawn = |seed| -> Vec<usize> {
        let of = |id| network.pattern_of(&job(id, 0.0, 1.0, None, 2), seed);
        (0..1000).map(of).collect()
    };
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
    for pattern in 0..PATTERNS.len() {
        let count = drawn(1).iter().filter(|&&own| own == pattern).count();
        assert!((200..500).contains(&count), "{count} of 1,000 jobs have one of 3 patterns");
    }
}
