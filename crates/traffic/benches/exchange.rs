//! How long it takes to lay the traffic of one job and to add it to the congestion model, leaf by leaf and pair by
//! pair: `cargo bench -p topolane-traffic --bench exchange`. The job has 1,024 nodes, which all send to each other, on
//! a tree of 65,536.
//!
//! Prints the milliseconds of both (the least of several runs) and their ratio as one line of JSON, which
//! `benches/run.py` reads.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use topolane_fabric::{Fabric, preset, routing};
use topolane_traffic::{Congestion, Contention, Exchange, Flows, pattern};

const MACHINE: &str = "fat-tree(radix=64)";
const NODES: u32 = 1_024;
/// The first node of the job. It is in the middle of a leaf.
const FIRST: u32 = 1_000;
const REPEATS: u32 = 5;

fn main() {
    let fabric = Fabric::build(&preset(MACHINE).unwrap().unwrap()).unwrap();
    let ways = routing("d-mod-k", &Arc::new(fabric), 0).unwrap();
    let traffic = pattern("alltoall").unwrap().traffic(NODES, 0).unwrap();
    let nodes: Vec<u32> = (FIRST..FIRST + NODES).collect();
    let mut model = Congestion::new(&*ways);
    let by_leaf = least(|| {
        let exchange = Exchange::new(&traffic, &nodes, &*ways).unwrap();
        black_box(model.enter_exchange(1, &exchange));
        model.leave(1);
    });
    let by_pair = least(|| {
        let flows = Flows::new(&traffic, &nodes, &*ways).unwrap();
        model.enter(1, Arc::new(flows));
        model.leave(1);
    });
    println!(
        "{{\"by_leaf_ms\": {by_leaf}, \"by_pair_ms\": {by_pair}, \"ratio\": {}}}",
        by_pair / by_leaf
    );
}

fn least(mut work: impl FnMut()) -> f64 {
    let once = |_| {
        let started = Instant::now();
        work();
        started.elapsed().as_secs_f64() * 1e3
    };
    (0..REPEATS).map(once).fold(f64::INFINITY, f64::min)
}
