//! What the simulated hypervisor does in cases that can be worked out by hand.
#![allow(missing_docs, clippy::unwrap_used)]

mod hypervisor_support;

use hypervisor_support::{barrier, endless, run, setup, task};
use topolane_gang::hypervisor::{Length, Setup, SwitchCosts, Task, ThreadWorkload, simulate};
use topolane_gang::{SliceLimits, gang_policy};

const FREE_OF_COST: SwitchCosts =
    SwitchCosts { context_switch: 0.0, slice_switch: 0.0, wake_up: 0.0 };
const BUSY: ThreadWorkload = ThreadWorkload::Independent { iteration: 0.1 };

/// Under credit alone, equal jobs get equal shares of cores that are all busy, and a job of twice the weight gets twice
/// the share of one. This holds within 5 %: debts over a turn are forgiven, so small jobs get a little more.
#[test]
fn credits_share_by_weight() {
    for cores in [1, 2, 5, 16] {
        for weights in [vec![1.0, 1.0], vec![1.0, 1.0, 1.0], vec![2.0, 1.0], vec![1.0, 2.0, 1.0]] {
            let job = |weight: &f64| Task { weight: *weight, ..endless(cores, BUSY) };
            let jobs = weights.iter().map(job).collect();
            let outcome = run(&Setup { costs: FREE_OF_COST, ..setup(jobs, cores, 60.0) }, "free");
            let sum: f64 = weights.iter().sum();
            for (job, weight) in outcome.jobs.iter().zip(&weights) {
                let fair = 60.0 * cores as f64 * weight / sum;
                let share = job.ran / fair;
                assert!((share - 1.0).abs() < 0.05, "{cores} {weights:?}: {share} of a fair share");
            }
        }
    }
}

/// A thread that blocks often and wakes with credits left is boosted: it does not wait behind threads that compute.
#[test]
fn who_wakes_with_credits_goes_first() {
    let coevp =
        ThreadWorkload::Coevp { coarse: 0.0, tasks: 1, fine: 1e-3, spread: 0.0, wait: 9e-3 };
    let jobs = vec![endless(1, coevp), endless(2, BUSY)];
    let outcome = run(&Setup { costs: FREE_OF_COST, ..setup(jobs, 1, 10.0) }, "free");
    let latency = outcome.jobs[0].ready / outcome.jobs[0].ends[0].len() as f64;
    assert!(latency < 1e-3, "waits {latency} s each time");
}

/// A barrier job that is alone takes its iterations times the interval, under every policy.
#[test]
fn a_barrier_job_alone_takes_what_it_computes() {
    for policy in ["batch", "free", "gang", "adaptive"] {
        for (spin, cores) in [(true, 4), (false, 4), (true, 64), (false, 64)] {
            let job = task(cores, barrier(2e-3, spin), Length::Iterations(1000));
            let outcome =
                run(&Setup { costs: FREE_OF_COST, ..setup(vec![job], cores, 10.0) }, policy);
            let finished = outcome.jobs[0].finished.unwrap();
            assert!((finished - 2.0).abs() < 1e-3, "{policy} {spin}: {finished}");
        }
    }
}

/// Threads begin after their delays, whatever other threads do.
#[test]
fn threads_begin_after_their_delays() {
    let job = Task { delays: vec![0.0, 0.5], ..task(2, BUSY, Length::Iterations(2)) };
    let outcome = run(&Setup { costs: FREE_OF_COST, ..setup(vec![job], 2, 10.0) }, "free");
    for (ends, expected) in outcome.jobs[0].ends.iter().zip([[0.1, 0.2], [0.6, 0.7]]) {
        for (end, expected) in ends.iter().zip(expected) {
            assert!((end - expected).abs() < 1e-6, "{end} {expected}");
        }
    }
}

/// A thread that waits at a spin barrier keeps its core busy. A thread that waits at a blocking barrier does not.
#[test]
fn spinning_is_running_and_blocking_is_not() {
    let uneven = |spin| ThreadWorkload::Barrier { interval: 1e-3, spin, imbalance: 1.0 };
    let share = |spin| {
        let outcome = run(&setup(vec![endless(4, uneven(spin))], 4, 2.0), "free");
        outcome.jobs[0].blocked / outcome.jobs[0].lifetime
    };
    assert!(share(true) < 1e-9);
    assert!(share(false) > 0.2);
}

/// The time of a switch between slices is lost to the jobs.
#[test]
fn switching_slices_costs() {
    let jobs = || vec![endless(2, BUSY), endless(2, BUSY)];
    let limits = SliceLimits { slice: Some(0.02), ..SliceLimits::default() };
    let did = |slice_switch: f64| {
        let costs = SwitchCosts { slice_switch, ..FREE_OF_COST };
        let outcome = run(&Setup { limits, costs, ..setup(jobs(), 2, 100.0) }, "gang");
        outcome.jobs.iter().map(|job| job.ends[0].len() as f64).sum::<f64>()
    };
    let share = did(0.002) / did(0.0);
    assert!((share - 0.9).abs() < 0.005, "{share}");
}

/// A value that makes no sense is refused in a sentence that names it.
#[test]
fn errors_name_the_value() {
    let refused = |setup: Setup| {
        simulate(&setup, gang_policy("gang").unwrap().as_mut()).unwrap_err().to_string()
    };
    let good = || setup(vec![endless(1, BUSY)], 4, 1.0);
    assert_eq!(
        refused(Setup { cores: 257, ..good() }),
        "cores must be a number from 1 to 256, not 257"
    );
    assert_eq!(
        refused(Setup { seconds: f64::NAN, ..good() }),
        "seconds must be a number from 0.000001 to 1000000, not NaN"
    );
    let job = endless(1, barrier(-1.0, true));
    assert_eq!(
        refused(Setup { jobs: vec![endless(1, BUSY), job], ..good() }),
        "job 1: interval must be a number from 0.000001 to 1000000, not -1"
    );
}
