//! How long one decision of `least-slowdown` takes on a machine of 1,296 nodes that is 95 % full.
//!
//! Jobs with the four patterns of the SC'18 study come and go, placed by the policy itself. Each decision is made three
//! times, and the shortest time counts, because other programs may run at the same time. At the end all jobs are released in a
//! what-if, as a queue does for a promise when nodes are drained, with and without the count of traffic. Prints one line of JSON.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use topolane_fabric::{Fabric, Fixed, Rule, preset};
use topolane_placement::policies::LeastSlowdown;
use topolane_placement::{JobTraffic, Occupancy, Placement, Policy, Request, WhatIf};
use topolane_traffic::pattern;

const MACHINE: &str = "cab";
const PATTERNS: [&str; 4] = ["stencil4d", "unstructured3d", "pairs", "suba2a"];
const DECISIONS: usize = 3_000;
/// The share of idle nodes at which the machine counts as full: 5 %.
const IDLE_SHARE: f64 = 0.05;

fn main() {
    let fabric = Arc::new(Fabric::build(&preset(MACHINE).unwrap().unwrap()).unwrap());
    let routing = Arc::new(Fixed::new(Arc::clone(&fabric), Rule::DestinationModK));
    let mut occupancy = Occupancy::new(Arc::clone(&fabric)).with_network(routing);
    let full = (f64::from(fabric.nodes()) * IDLE_SHARE) as u32;
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut running: Vec<Placement> = Vec::new();
    let mut times: Vec<f64> = Vec::new();
    while times.len() < DECISIONS {
        // The sizes are the powers of two from 1 to 256, equally likely.
        let nodes = 1 << random.random_range(0..9u32);
        while occupancy.idle_nodes() < nodes.max(full) {
            let gone = running.swap_remove(random.random_range(0..running.len()));
            occupancy.release(&gone);
        }
        let id = times.len() as u64;
        let traffic = pattern(PATTERNS[random.random_range(0..4)]).unwrap();
        let traffic = traffic.traffic(nodes, 0).unwrap();
        let traffic = Some(JobTraffic::new(&Arc::new(traffic), 0.3));
        let request = Request { traffic, ..Request::whole_nodes(id, nodes, 1.0) };
        let policy: &dyn Policy = &LeastSlowdown;
        let decide = |_| {
            let started = Instant::now();
            let placed = black_box(policy.place(black_box(&request), &occupancy)).unwrap();
            (started.elapsed().as_secs_f64() * 1e3, placed)
        };
        let tries: Vec<(f64, Placement)> = (0..3).map(decide).collect();
        times.push(tries.iter().map(|(time, _)| *time).fold(f64::INFINITY, f64::min));
        occupancy.claim(&tries[0].1).unwrap();
        running.extend(tries.into_iter().next().map(|(_, placed)| placed));
    }
    let running: Vec<Arc<Placement>> = running.into_iter().map(Arc::new).collect();
    let counted = fastest(|| release_all(occupancy.what_if(), &running));
    let uncounted = fastest(|| release_all(occupancy.what_if_without_network(), &running));
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "{{\"decisions\": {DECISIONS}, \"p50_ms\": {:.3}, \"p99_ms\": {:.3}, \"max_ms\": {:.3}, \"jobs\": {}, \
         \"what_if_ms\": {counted:.3}, \"what_if_without_network_ms\": {uncounted:.3}}}",
        at(0.5),
        at(0.99),
        at(1.0),
        running.len(),
    );
}

/// Releases all placements in a what-if, which is undone at the end.
fn release_all(mut then: WhatIf<'_>, running: &[Arc<Placement>]) {
    for placement in running {
        then.release(Arc::clone(placement));
    }
}

/// The shortest time of ten runs, in milliseconds.
fn fastest(mut run: impl FnMut()) -> f64 {
    let times = (0..10).map(|_| {
        let started = Instant::now();
        run();
        started.elapsed().as_secs_f64() * 1e3
    });
    times.fold(f64::INFINITY, f64::min)
}
