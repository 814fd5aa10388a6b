//! How long one decision of `isolated` takes on a machine of 10,648 nodes that is 95 % full; of another policy or machine:
//! `cargo bench -p topolane-placement --bench isolated -- kueue-tas nvl72-5000`; as a third argument a segment's nodes, or 0;
//! as a fourth the share of idle nodes; as a fifth the runs. A decision counts with its shortest time of all runs. It is asked once
//! in each, because a state remembers some of what it was asked.
//!
//! Jobs come and go at random, placed by the policy itself, until the machine is 95 % full; then
//! fresh requests are placed, each timed alone, and not kept. Prints one line of JSON:
//! `benches/run.py` reads it.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use topolane_fabric::{Fabric, preset};
use topolane_placement::{Occupancy, Placement, Policy, Request, policy};

const MACHINE: &str = "sc18-network";
const SEED: u64 = 1;
const STATES: usize = 400;
const DECISIONS_PER_STATE: usize = 50;
/// The share of idle nodes at which the machine counts as full: 5 %.
const IDLE_SHARE: f64 = 0.05;
/// Ranges of sizes by class: inside a leaf, inside a pod, across pods.
const CLASSES: [(u32, u32); 3] = [(1, 22), (23, 484), (485, 2_000)];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let word = |index: usize, or: &'static str| words.get(index).map_or(or, String::as_str);
    let fabric = Fabric::build(&preset(word(1, MACHINE)).unwrap().unwrap()).unwrap();
    let segment = words.get(2).map(|nodes| nodes.parse().unwrap()).filter(|&nodes| nodes > 0);
    let idle = words.get(3).map_or(IDLE_SHARE, |share| share.parse().unwrap());
    let runs = words.get(4).map_or(1, |runs| runs.parse().unwrap());
    let fabric = Arc::new(fabric);
    let mut decisions: Vec<Decision> = Vec::new();
    for run in 0..runs {
        let rule = policy(word(0, "isolated"), SEED).unwrap();
        let times = decide(Machine::new(Arc::clone(&fabric), rule, segment, idle));
        if run == 0 {
            decisions = times;
        } else {
            let both = decisions.iter_mut().zip(times);
            both.for_each(|(least, next)| least.taken = least.taken.min(next.taken));
        }
    }
    let (placed, refused): (Vec<_>, Vec<_>) = decisions.iter().partition(|it| it.is_placed);
    println!("{{\"placed\": {}, \"refused\": {}}}", summary(&placed), summary(&refused));
}

/// A decision of a run: all runs have the same.
struct Decision {
    /// Nanoseconds.
    taken: u64,
    nodes: u32,
    is_placed: bool,
}

/// All decisions of one run.
fn decide(mut machine: Machine) -> Vec<Decision> {
    let mut decisions = Vec::with_capacity(STATES * DECISIONS_PER_STATE);
    for _ in 0..STATES {
        machine.depart();
        machine.fill();
        for _ in 0..DECISIONS_PER_STATE {
            let request = machine.request(machine.occupancy.idle_nodes());
            let started = Instant::now();
            let answer = black_box(machine.rule.place(black_box(&request), &machine.occupancy));
            let taken = started.elapsed().as_nanos() as u64;
            decisions.push(Decision { taken, nodes: request.nodes, is_placed: answer.is_ok() });
        }
    }
    decisions
}

/// A machine on which jobs arrive and leave.
struct Machine {
    occupancy: Occupancy,
    running: Vec<Placement>,
    rule: Box<dyn Policy>,
    segment: Option<u32>,
    random: ChaCha8Rng,
    full: u32,
}

impl Machine {
    fn new(fabric: Arc<Fabric>, rule: Box<dyn Policy>, segment: Option<u32>, idle: f64) -> Self {
        let full = (f64::from(fabric.nodes()) * idle) as u32;
        let random = ChaCha8Rng::seed_from_u64(SEED);
        let occupancy = Occupancy::new(fabric);
        Machine { occupancy, running: Vec::new(), rule, segment, random, full }
    }

    /// A request of a random class; its size is uniform in the logarithm, and at most `most`.
    fn request(&mut self, most: u32) -> Request {
        let possible = CLASSES.iter().filter(|class| class.0 <= most).count();
        let (low, high) = CLASSES[self.random.random_range(0..possible)];
        let (low, high) = (f64::from(low).ln(), f64::from(high.min(most) + 1).ln());
        let nodes = (low + (high - low) * self.random.random::<f64>()).exp() as u32;
        let segment = self.segment;
        Request { segment, ..Request::whole_nodes(0, nodes.clamp(1, most), 3_600.0) }
    }

    /// Ends a third of the jobs.
    fn depart(&mut self) {
        for _ in 0..self.running.len() / 3 {
            let index = self.random.random_range(0..self.running.len());
            self.occupancy.release(&self.running.swap_remove(index));
        }
    }

    /// Adds jobs until the machine is full; refused jobs are dropped.
    fn fill(&mut self) {
        while self.occupancy.idle_nodes() > self.full {
            let request = self.request(self.occupancy.idle_nodes() - self.full);
            if let Ok(placement) = self.rule.place(&request, &self.occupancy) {
                self.occupancy.claim(&placement).unwrap();
                self.running.push(placement);
            }
        }
    }
}

/// Summarises decisions: number, times and widths.
fn summary(decisions: &[&Decision]) -> String {
    let mut times: Vec<u64> = decisions.iter().map(|decision| decision.taken).collect();
    times.sort_unstable();
    let at = |part: f64| {
        let index = (times.len() as f64 * part) as usize;
        times.get(index).map_or(0.0, |&value| value as f64 / 1e3)
    };
    let several_leaves = decisions.iter().filter(|decision| decision.nodes > CLASSES[0].1).count();
    let widest = decisions.iter().map(|decision| decision.nodes).max().unwrap_or(0);
    format!(
        "{{\"count\": {}, \"several_leaves\": {several_leaves}, \"widest\": {widest}, \
         \"median_us\": {}, \"p99_us\": {}}}",
        times.len(),
        at(0.5),
        at(0.99)
    )
}
