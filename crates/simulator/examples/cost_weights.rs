//! What changes with other weights of the cost by which the policy `dedicated` chooses among placements.
//!
//! `cargo run --release -p topolane-simulator --example cost_weights [SEEDS [WORKLOAD ...]]` prints a table. Each
//! weight in turn is 0, half, twice and four times its default. Each run is on the machine `cab` under the discipline
//! `easy`. A figure is the mean over the seeds, as a ratio to first fit on the same jobs.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::sync::Arc;

use topolane_fabric::{Fabric, InputError, preset as machine};
use topolane_placement::Policy;
use topolane_placement::dedicated::Weights;
use topolane_placement::policies::{Dedicated, FirstFit};
use topolane_scheduler::queue;
use topolane_simulator::workload::preset;
use topolane_simulator::{Metrics, RunOptions, simulate};

/// A weight and its name.
type Weight = (&'static str, fn(&mut Weights) -> &mut f64);

const WEIGHTS: [Weight; 4] = [
    ("untouched leaf", |weights| &mut weights.untouched_leaf),
    ("left-over node", |weights| &mut weights.left_over_node),
    ("core link", |weights| &mut weights.core_link),
    ("pod", |weights| &mut weights.pod),
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let seeds: u64 = arguments.next().map_or(Ok(4), |seeds| seeds.parse())?;
    let named: Vec<String> = arguments.collect();
    let workloads = if named.is_empty() {
        ["cab-aug", "cab-nov", "cab-sep"].map(str::to_owned).to_vec()
    } else {
        named
    };
    let fabric = Arc::new(Fabric::build(&machine("cab").ok_or("cab is missing")??)?);
    let mut base = Vec::new();
    for workload in &workloads {
        let runs = (0..seeds).map(|seed| run(workload, seed, &fabric, Arc::new(FirstFit)));
        base.push(runs.collect::<Result<Vec<_>, _>>()?);
    }
    println!("weight, times, then utilization and mean wait on {}", workloads.join(", "));
    let mut variants = vec![("default", 1.0, Weights::default())];
    for (name, weight) in WEIGHTS {
        for times in [0.0, 0.5, 2.0, 4.0] {
            let mut weights = Weights::default();
            *weight(&mut weights) *= times;
            variants.push((name, times, weights));
        }
    }
    for (name, times, weights) in variants {
        print!("{name:15} {times:4}");
        for (workload, base) in workloads.iter().zip(&base) {
            let mut sums = [0.0; 2];
            for (seed, base) in (0..).zip(base) {
                let rule = Arc::new(Dedicated::with_weights(weights));
                let own = run(workload, seed, &fabric, rule)?;
                sums.iter_mut()
                    .zip(own.iter().zip(base))
                    .for_each(|(sum, (own, base))| *sum += own / base);
            }
            let [utilization, wait] = sums.map(|sum| sum / seeds as f64);
            print!("   {utilization:.4} {wait:.3}");
        }
        println!();
    }
    Ok(())
}

/// The utilization and the mean wait of one run.
fn run(
    workload: &str,
    seed: u64,
    fabric: &Arc<Fabric>,
    policy: Arc<dyn Policy>,
) -> Result<[f64; 2], Box<dyn Error>> {
    let jobs = preset(workload, seed)?;
    let easy = queue("easy").ok_or("easy is missing")?;
    let outcome = simulate(&jobs, fabric, &policy, easy, &RunOptions::default(), &mut |_| {
        Ok::<(), InputError>(())
    })?;
    let metrics = Metrics::of(&jobs, fabric, &outcome);
    Ok([metrics.utilization, metrics.wait.iter().sum::<f64>() / metrics.wait.len() as f64])
}
