//! Partitions with exact sizes and little weight between parts: recursive bisection, then pair swaps.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::arrangement::RankArrangement;
use super::bisection::bisect;
use super::descent::Descent;
use super::graph::Graph;
use super::perturbation::iterate;
use super::problem::{Distances, MappingProblem};

/// The effort for each partition.
#[derive(Debug, Clone, Copy)]
pub(super) struct Care {
    /// The number of cuts of which each bisection keeps the best.
    pub(super) cuts: u32,
    /// Rounds of iterated local search per vertex.
    pub(super) rounds: u64,
}

/// Returns the part of every vertex: part i gets exactly `sizes[i]` vertices. The sizes must add up to the number of
/// vertices.
pub(super) fn partition(graph: &Graph, sizes: &[u32], care: Care, seed: u64) -> Vec<u32> {
    let mut draw = ChaCha8Rng::seed_from_u64(seed);
    let mut order = Vec::with_capacity(graph.vertices());
    divide(graph, (0..graph.vertices() as u32).collect(), sizes, care, &mut draw, &mut order);
    let mut seats = vec![0; order.len()];
    for (seat, &vertex) in (0..).zip(&order) {
        seats[vertex as usize] = seat;
    }
    let problem = MappingProblem::new(graph.clone(), Distances::uniform(sizes.len()), sizes);
    let mut arrangement = RankArrangement::new(&problem, seats);
    let value = graph.total();
    Descent::new(&arrangement, value).all(&mut arrangement);
    iterate(&mut arrangement, value, care.rounds * graph.vertices() as u64, &mut draw);
    (0..graph.vertices() as u32).map(|vertex| arrangement.place(vertex)).collect()
}

/// Adds the vertices to `order`, part by part.
fn divide(
    graph: &Graph,
    vertices: Vec<u32>,
    sizes: &[u32],
    care: Care,
    draw: &mut ChaCha8Rng,
    order: &mut Vec<u32>,
) {
    if sizes.len() < 2 || graph.total() <= 0.0 {
        order.extend(vertices);
        return;
    }
    let (left, right) = sizes.split_at(sizes.len() / 2);
    let sides = bisect(graph, left.iter().sum(), care.cuts, draw);
    for (side, sizes) in [(true, left), (false, right)] {
        let inside: Vec<u32> =
            (0..sides.len() as u32).filter(|&v| sides[v as usize] == side).collect();
        let named = inside.iter().map(|&vertex| vertices[vertex as usize]).collect();
        divide(&graph.induced(&inside), named, sizes, care, draw, order);
    }
}
