//! Parts of exact sizes with little weight between them: METIS, then pair swaps.

use std::sync::Mutex;

use metis::option::{NCuts, Seed, UFactor};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::arrangement::Arrangement;
use super::descent::Descent;
use super::graph::Graph;
use super::perturbation::iterate;
use super::problem::{Distances, Problem};

/// METIS draws from the C library's generator, of which a process has one.
static METIS: Mutex<()> = Mutex::new(());

/// METIS adds weights up in 32 bits.
const MOST_WEIGHT: f64 = 1e9;

/// How hard to look for each partition.
#[derive(Debug, Clone, Copy)]
pub(super) struct Care {
    /// Partitions of which METIS keeps the best.
    pub(super) cuts: i32,
    /// Rounds of iterated local search per vertex.
    pub(super) rounds: u64,
}

/// The part of every vertex: part i gets exactly `sizes[i]` vertices, which add up to all.
pub(super) fn partition(graph: &Graph, sizes: &[u32], care: Care, seed: u64) -> Vec<u32> {
    let mut part = by_metis(graph, sizes, care, seed).unwrap_or_else(|| in_order(sizes));
    balance(graph, sizes, &mut part);
    let mut next: Vec<u32> = sizes
        .iter()
        .scan(0, |sum, &size| {
            *sum += size;
            Some(*sum - size)
        })
        .collect();
    let seats = part.iter().map(|&part| {
        next[part as usize] += 1;
        next[part as usize] - 1
    });
    let seats: Vec<u32> = seats.collect();
    let problem = Problem::new(graph.clone(), Distances::uniform(sizes.len()), sizes);
    let mut arrangement = Arrangement::new(&problem, seats);
    let value = graph.total();
    Descent::new(&arrangement, value).all(&mut arrangement);
    let mut draw = ChaCha8Rng::seed_from_u64(seed);
    iterate(&mut arrangement, value, care.rounds * graph.vertices() as u64, &mut draw);
    (0..graph.vertices() as u32).map(|vertex| arrangement.place(vertex)).collect()
}

fn in_order(sizes: &[u32]) -> Vec<u32> {
    let parts = sizes.iter().enumerate();
    parts.flat_map(|(part, &size)| std::iter::repeat_n(part as u32, size as usize)).collect()
}

/// METIS's recursive bisection (Karypis & Kumar 1998), sizes nearly as asked; `None` where there
/// is nothing to cut or METIS refuses.
fn by_metis(graph: &Graph, sizes: &[u32], care: Care, seed: u64) -> Option<Vec<u32>> {
    if graph.total() <= 0.0 || sizes.len() < 2 {
        return None;
    }
    let (first, to, weights) = graph.whole_numbers(MOST_WEIGHT)?;
    let share = |&size: &u32| size as f32 / graph.vertices() as f32;
    let shares: Vec<f32> = sizes.iter().map(share).collect();
    let parts = i32::try_from(sizes.len()).ok()?;
    let mut part = vec![0; graph.vertices()];
    let alone = METIS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let cut = metis::Graph::new(1, parts, &first, &to)
        .ok()?
        .set_adjwgt(&weights)
        .set_tpwgts(&shares)
        .set_option(Seed((seed & 0x7fff_ffff) as i32))
        .set_option(NCuts(care.cuts))
        .set_option(UFactor(1))
        .part_recursive(&mut part);
    drop(alone);
    cut.ok()?;
    Some(part.into_iter().map(|part| part as u32).collect())
}

/// Moves vertices from parts that have too many to those that have too few, each time the one
/// that costs least.
fn balance(graph: &Graph, sizes: &[u32], part: &mut [u32]) {
    let mut left: Vec<i64> = sizes.iter().map(|&size| i64::from(size)).collect();
    for &part in part.iter() {
        left[part as usize] -= 1;
    }
    let mut towards = vec![0.0; sizes.len()];
    while let Some(over) = left.iter().position(|&left| left < 0) {
        let mut best: Option<(f64, usize, usize)> = None;
        for vertex in (0..part.len()).filter(|&vertex| part[vertex] as usize == over) {
            towards.fill(0.0);
            for (other, weight) in graph.neighbours(vertex as u32) {
                towards[part[other as usize] as usize] += weight;
            }
            for under in (0..left.len()).filter(|&under| left[under] > 0) {
                let gain = towards[under] - towards[over];
                if best.is_none_or(|best| gain > best.0) {
                    best = Some((gain, vertex, under));
                }
            }
        }
        let Some((_, vertex, under)) = best else { return };
        part[vertex] = under as u32;
        left[over] += 1;
        left[under] -= 1;
    }
}
