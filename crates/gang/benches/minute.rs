//! How long a simulated minute of 64 cores takes.
//!
//! Prints one line of JSON: `benches/gang/minute.py` reads it.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]

use std::hint::black_box;
use std::time::Instant;

use topolane_gang::hypervisor::{Length, Setup, SwitchCosts, Task, ThreadWorkload, simulate};
use topolane_gang::{SliceLimits, gang_policy};

const CORES: usize = 64;
const SECONDS: f64 = 60.0;
const REPETITIONS: usize = 3;

fn main() {
    let spin = |interval: f64| ThreadWorkload::Barrier { interval, spin: true, imbalance: 0.0 };
    let uneven = ThreadWorkload::Barrier { interval: 1e-3, spin: true, imbalance: 0.2 };
    let blocking = ThreadWorkload::Barrier { interval: 1e-3, spin: false, imbalance: 0.0 };
    let coevp =
        ThreadWorkload::Coevp { coarse: 0.01, tasks: 256, fine: 0.01, spread: 0.5, wait: 0.02 };
    let mut cases = Vec::new();
    for (name, workload) in [
        ("spin", spin(1e-3)),
        ("spin-uneven", uneven),
        ("block", blocking),
        ("independent", ThreadWorkload::Independent { iteration: 0.1 }),
        ("coevp", coevp),
    ] {
        for policy in ["gang", "free", "adaptive"] {
            cases.push(format!("\"{name} {policy}\": {:.4}", measure(workload, policy)));
        }
    }
    println!("{{{}}}", cases.join(", "));
}

/// The median of the real seconds that a simulated minute takes.
fn measure(workload: ThreadWorkload, policy: &str) -> f64 {
    let job = |seed: u64| Task {
        threads: CORES,
        weight: 1.0,
        arrival: 0.0,
        delays: Vec::new(),
        workload,
        length: Length::Seconds(2.0 * SECONDS),
        seed,
    };
    let setup = Setup {
        jobs: (0..4).map(job).collect(),
        cores: CORES,
        seconds: SECONDS,
        limits: SliceLimits::default(),
        costs: SwitchCosts::default(),
        background: 0.0,
        seed: 1,
        timeline: false,
    };
    let mut times: Vec<f64> = (0..REPETITIONS)
        .map(|_| {
            let mut policy = gang_policy(policy).unwrap();
            let start = Instant::now();
            black_box(simulate(&setup, policy.as_mut()).unwrap());
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[REPETITIONS / 2]
}
