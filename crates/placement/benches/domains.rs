//! How long one decision takes on a machine of 5,040 nodes in domains of 18 that is 95 % full.
//!
//! `domains [POLICY]...`, by default `slurm-block`. Jobs come and go at random, placed by the policy itself, until the machine
//! is 95 % full or the policy refuses what is asked for; then fresh requests are placed, each timed alone, and not kept. Half
//! of those of several domains have segments of 16. For policies that pack parts of nodes, 99 of 100 jobs take half a GPU, one
//! or two of a node, which makes a quarter of the nodes shared ones, and half of the requests timed do.
//! Prints a line of JSON for each policy.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use topolane_fabric::resources::{CORES, MEMORY};
use topolane_fabric::{Fabric, preset};
use topolane_placement::{
    Amounts, GpuPart, Occupancy, Placement, Policy, Request, SeenRequests, Share, policy,
};

const MACHINE: &str = "nvl72-5000";
const SEED: u64 = 1;
const STATES: usize = 100;
const DECISIONS_PER_STATE: usize = 50;
/// The share of idle nodes at which the machine counts as full: 5 %.
const IDLE_SHARE: f64 = 0.05;
/// The number of consecutive refusals that end the filling.
const REFUSALS: usize = 200;
const SEGMENT: u32 = 16;
/// Ranges of sizes: one node, inside a domain, over several domains.
const CLASSES: [(u32, u32); 3] = [(1, 1), (2, 18), (19, 1_024)];
/// The policies for jobs that take parts of nodes.
const PACKING: [&str; 3] = ["best-fit", "fgd", "gpu-packing"];
/// The share of jobs on parts of nodes, among all jobs and among the timed requests.
const PARTS: f64 = 0.99;
const PARTS_TIMED: f64 = 0.5;
/// The thousandths of GPUs of a job on a part of a node; its cores and bytes per GPU.
const GPU_THOUSANDTHS: [u16; 3] = [500, 1_000, 2_000];
const CORES_OF_GPU: u64 = 32;
const MEMORY_OF_GPU: u64 = 200 << 30;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let names = if words.is_empty() { vec!["slurm-block".to_owned()] } else { words };
    let fabric = Arc::new(Fabric::build(&preset(MACHINE).unwrap().unwrap()).unwrap());
    for name in names {
        println!("{}", measure(&name, &*policy(&name, SEED).unwrap(), &fabric));
    }
}

fn measure(name: &str, policy: &dyn Policy, fabric: &Arc<Fabric>) -> String {
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let mut occupancy = Occupancy::new(Arc::clone(fabric));
    let packs = PACKING.contains(&name);
    let mut seen = SeenRequests::default();
    let (filling, measuring) = if packs { (PARTS, PARTS_TIMED) } else { (0.0, 0.0) };
    let mut running: Vec<Placement> = Vec::new();
    let full = (f64::from(fabric.nodes()) * IDLE_SHARE) as u32;
    // For whole nodes and for parts of nodes: the times of placed and of refused requests.
    let mut times = [const { (Vec::new(), Vec::new()) }; 2];
    let mut idle = 0;
    for _ in 0..STATES {
        for _ in 0..running.len() / 3 {
            let index = random.random_range(0..running.len());
            occupancy.release(&running.swap_remove(index));
        }
        let mut refusals = 0;
        while occupancy.idle_nodes() > full && refusals < REFUSALS {
            let asked = request(&mut random, fabric, occupancy.idle_nodes() - full, filling);
            if let Some(demand) = seen.note(&asked, fabric) {
                occupancy.set_demand(demand);
            }
            let Ok(placement) = policy.place(&asked, &occupancy) else {
                refusals += 1;
                continue;
            };
            occupancy.claim(&placement).unwrap();
            running.push(placement);
            refusals = 0;
        }
        idle += occupancy.idle_nodes();
        for _ in 0..DECISIONS_PER_STATE {
            let asked = request(&mut random, fabric, occupancy.idle_nodes(), measuring);
            let started = Instant::now();
            let answer = black_box(policy.place(black_box(&asked), &occupancy));
            let taken = started.elapsed().as_nanos() as u64;
            let (placed, refused) = &mut times[usize::from(!asked.share.is_whole())];
            if answer.is_ok() { placed.push(taken) } else { refused.push(taken) }
        }
    }
    let share = 1.0 - f64::from(idle) / (STATES as f64 * f64::from(fabric.nodes()));
    let [whole, part] = times.map(|(placed, refused)| {
        format!("\"placed\": {}, \"refused\": {}", summary(placed), summary(refused))
    });
    let part = if packs { format!(", \"parts\": {{{part}}}") } else { String::new() };
    format!("{{\"policy\": \"{name}\", \"full\": {share:.3}, {whole}{part}}}")
}

/// A request for a part of a node, with this probability, otherwise for whole nodes.
fn request(random: &mut ChaCha8Rng, fabric: &Fabric, most: u32, parts: f64) -> Request {
    if parts > 0.0 && random.random_bool(parts) {
        return part_of_node(random, fabric);
    }
    whole_nodes(random, most)
}

/// A request for a part of a GPU or for GPUs of one node.
fn part_of_node(random: &mut ChaCha8Rng, fabric: &Fabric) -> Request {
    let thousandths = GPU_THOUSANDTHS[random.random_range(0..GPU_THOUSANDTHS.len())];
    let gpu = fabric.resources().index("gpu").unwrap();
    let mut counts = vec![0; gpu + 1];
    counts[CORES] = CORES_OF_GPU * u64::from(thousandths) / 1_000;
    counts[MEMORY] = MEMORY_OF_GPU * u64::from(thousandths) / 1_000;
    counts[gpu] = u64::from(thousandths / 1_000);
    let amounts = Amounts::of(&counts).with_gpu_part(GpuPart::new(gpu, thousandths));
    Request { share: Share::Part(amounts), ..Request::whole_nodes(0, 1, 3_600.0) }
}

/// A request of a random class; its size is uniform in the logarithm, and at most `most`.
fn whole_nodes(random: &mut ChaCha8Rng, most: u32) -> Request {
    let possible = CLASSES.iter().filter(|class| class.0 <= most).count();
    let (low, high) = CLASSES[random.random_range(0..possible)];
    let logarithm = random.random_range(f64::from(low).ln()..f64::from(high.min(most) + 1).ln());
    let nodes = (logarithm.exp() as u32).clamp(1, most);
    let in_segments = nodes >= SEGMENT && random.random_bool(0.5);
    let segment = in_segments.then_some(SEGMENT);
    let nodes = if in_segments { nodes - nodes % SEGMENT } else { nodes };
    Request { segment, ..Request::whole_nodes(0, nodes, 3_600.0) }
}

/// The number and quantiles of decision times, which are in nanoseconds.
fn summary(mut times: Vec<u64>) -> String {
    times.sort_unstable();
    let at = |part: f64| {
        times.get((times.len() as f64 * part) as usize).map_or(0.0, |&time| time as f64 / 1e3)
    };
    let (count, median, p99) = (times.len(), at(0.5), at(0.99));
    format!("{{\"count\": {count}, \"median_us\": {median}, \"p99_us\": {p99}}}")
}
