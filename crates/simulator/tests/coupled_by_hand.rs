//! Runs on a network small enough to be worked out by hand.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

mod simulation_support;

use std::sync::Arc;

use simulation_support::network::{
    PATTERNS, by_hand, on, one_cable, options, tapered, with_walltime,
};
use simulation_support::{job, logged, times, try_run, workload};
use topolane_fabric::{Fabric, preset};
use topolane_traffic::pattern;

/// Two jobs need one cable whenever they communicate, so each is slowed to S = 2 while both do. If they communicate all
/// the time (f = 1), the pace is 1 + f f (S - 1) = 2. The first job has 50 s left when the second comes at 50, and ends
/// at 50 + 50 * 2. The second job then has 50 s left and the cable to itself. If they communicate half of the time, the
/// pace is 1.25. The cable is busy for f of what both jobs need alone.
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

/// A job that others keep beyond its walltime goes on and is counted, and delays the head that was promised its end. If
/// asked for, the job is ended at its walltime, and what it has done by then counts as load. A job without a walltime
/// is never ended. A job that the log ended at its walltime ends there in any case.
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
    // By 120 the first job has done 50 + 70 / 2 s. The second has done 35 s, and does the other 65 s alone.
    let second = (185.0, false, false);
    assert_eq!(ends([Some(120.0), Some(900.0)], true), (vec![killed, second], 185.0));
    assert_eq!(ends([None, Some(900.0)], true), (vec![over, done], 200.0));
    let ended = by_hand("congestion", 1.0, [Some(120.0), Some(900.0)], true);
    assert_eq!(ended.jobs[0].contention(), 120.0 / 85.0);
    let in_the_log = (100.0, true, false);
    // By 100 the first job has done 50 + 50 / 2 s. The second has done 25 s, and does the other 75 s alone.
    let second = (175.0, false, false);
    assert_eq!(ends([Some(100.0), Some(900.0)], false), (vec![in_the_log, second], 175.0));
}

/// The third job wants all nodes, and is promised 160, the end of the second by its walltime. The second job runs until
/// 200, so the head is late. The head is not late if walltimes leave room, or if it starts in the very moment it was
/// promised.
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

/// Every job has the same pattern in every run of a seed, every pattern has jobs, and another seed draws other
/// patterns.
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

/// On a dragonfly, a job under `dedicated` communicates over its own cables alone. 16 of its nodes fill one group, four on each
/// switch, and two are in the other. So it owns one of the four cables, and all its ways lead over the switch at its end.
/// Each node sends one unit to each other one. Over all cables, most units cross a link from one switch of the full group
/// to another: 4 x 4 inside the group, and 2 x 4 / 4 each of those that leave and arrive. Over its own cable go 16 x 2.
#[test]
fn own_cables_by_hand() {
    let name = "slingshot(nodes=32, groups=2, switches=4, cables=4)";
    let fabric = Arc::new(Fabric::build(&preset(name).unwrap().unwrap()).unwrap());
    let jobs = workload(vec![job(1, 0.0, 100.0, None, 18)]);
    for (policy, finish) in [("isolated", 100.0), ("dedicated", 100.0 * 32.0 / 20.0)] {
        let mut network = on(&fabric, "congestion", "minimal", 1.0);
        network.patterns = vec![pattern("alltoall").unwrap()];
        let outcome = try_run(&jobs, &fabric, policy, "fcfs", &options(network)).unwrap();
        assert!((outcome.jobs[0].finish - finish).abs() < 1e-6, "{policy}: {:?}", outcome.jobs[0]);
    }
}
