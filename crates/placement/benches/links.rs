//! How long a decision takes under the rules that give jobs links of their own, on a machine of 5,488 nodes that is 95
//! % full.
//!
//! Jobs come and go at random, placed by the timed rule, until the machine is 95 % full or as full as this rule can
//! make it. Then fresh requests of random sizes are placed, each timed alone, and not kept. Prints a line of JSON for
//! each rule. The arguments are the policies and the number of decisions: `links dedicated,jigsaw,isolated 10000`.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use topolane_fabric::{Fabric, preset};
use topolane_placement::{Occupancy, Placement, Policy, Request, policy};

const MACHINE: &str = "fat-tree(radix=28)";
const SEED: u64 = 1;
const DECISIONS_PER_STATE: usize = 25;
/// The share of idle nodes at which the machine counts as full: 5 %.
const IDLE_SHARE: f64 = 0.05;
/// The mean size of jobs, that of the widest of the exponential workloads.
const MEAN: f64 = 28.0;
/// The number of consecutive refusals after which the machine counts as full for this rule.
const PATIENCE: usize = 40;

fn main() {
    let given: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let names = given.first().map_or("dedicated,jigsaw,isolated", String::as_str);
    let decisions = given.get(1).map_or(10_000, |count| count.parse().unwrap());
    let fabric = Arc::new(Fabric::build(&preset(MACHINE).unwrap().unwrap()).unwrap());
    for name in names.split(',') {
        let mut machine = Machine::new(&fabric, policy(name, SEED).unwrap());
        let (mut times, mut placed, mut busy) = (Vec::with_capacity(decisions), 0, 0.0);
        while times.len() < decisions {
            machine.depart();
            machine.fill();
            busy += 1.0 - f64::from(machine.occupancy.idle_nodes()) / f64::from(fabric.nodes());
            for _ in 0..DECISIONS_PER_STATE {
                let request = machine.request(machine.occupancy.idle_nodes());
                let started = Instant::now();
                let answer = black_box(machine.rule.place(black_box(&request), &machine.occupancy));
                times.push(started.elapsed().as_nanos() as u64);
                placed += usize::from(answer.is_ok());
            }
        }
        let states = times.len() as f64 / DECISIONS_PER_STATE as f64;
        times.sort_unstable();
        let at = |part: f64| {
            times[((times.len() as f64 * part) as usize).min(times.len() - 1)] as f64 / 1e3
        };
        println!(
            "{{\"policy\": \"{name}\", \"decisions\": {}, \"placed\": {placed}, \"busy\": {:.3}, \"median_us\": {}, \
             \"p99_us\": {}, \"max_us\": {}}}",
            times.len(),
            busy / states,
            at(0.5),
            at(0.99),
            at(1.0)
        );
    }
}

/// A machine on which jobs arrive and leave.
struct Machine {
    occupancy: Occupancy,
    rule: Box<dyn Policy>,
    running: Vec<Placement>,
    random: ChaCha8Rng,
    full: u32,
}

impl Machine {
    fn new(fabric: &Arc<Fabric>, rule: Box<dyn Policy>) -> Self {
        let full = (f64::from(fabric.nodes()) * IDLE_SHARE) as u32;
        let random = ChaCha8Rng::seed_from_u64(SEED);
        let occupancy = Occupancy::new(Arc::clone(fabric));
        Machine { occupancy, rule, running: Vec::new(), random, full }
    }

    /// A request whose size is drawn from an exponential distribution, and is at most `most`.
    fn request(&mut self, most: u32) -> Request {
        let nodes = -MEAN * (1.0 - self.random.random::<f64>()).ln();
        Request::whole_nodes(0, (nodes.ceil() as u32).clamp(1, most.max(1)), 3_600.0)
    }

    /// Ends a tenth of the jobs.
    fn depart(&mut self) {
        for _ in 0..self.running.len() / 10 {
            let index = self.random.random_range(0..self.running.len());
            self.occupancy.release(&self.running.swap_remove(index));
        }
    }

    /// Adds jobs until the machine is full; refused jobs are dropped.
    fn fill(&mut self) {
        let mut refused = 0;
        while self.occupancy.idle_nodes() > self.full && refused < PATIENCE {
            let request = self.request(self.occupancy.idle_nodes() - self.full);
            if let Ok(placement) = self.rule.place(&request, &self.occupancy) {
                self.occupancy.claim(&placement).unwrap();
                self.running.push(placement);
                refused = 0;
            } else {
                refused += 1;
            }
        }
    }
}
