//! Applies the same search to any quadratic assignment problem, for comparison with the literature.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use topolane_fabric::InputError;

use super::MappingSettings;
use super::arrangement::RankArrangement;
use super::descent::Descent;
use super::graph::Graph;
use super::portfolio::{FoundMapping, improved, in_parallel};
use super::problem::{Distances, MappingProblem};

/// A solution: a place for every item, and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// The place of every item.
    pub places: Vec<u32>,
    /// The sum over ordered pairs of flow times distance.
    pub value: f64,
}

/// Assigns n items with `flow[i * n + j]` from i to j to n places with `distance[k * n + l]`, and minimises the sum of
/// flow times distance (Koopmans & Beckmann 1957). The diagonals are ignored.
///
/// # Errors
/// Matrices that are not n x n, values that are negative or not finite, or distances that are not symmetric.
pub fn assign(
    n: usize,
    flow: &[f64],
    distance: &[f64],
    search: MappingSettings,
) -> Result<Assignment, InputError> {
    for (what, matrix) in [("flow", flow), ("distance", distance)] {
        if matrix.len() != n * n {
            return Err(InputError::whole(format!("the {what} matrix is not {n} x {n}")));
        }
        if let Some(value) = matrix.iter().find(|value| !(value.is_finite() && **value >= 0.0)) {
            return Err(InputError::whole(format!("{what} {value} is not a number from 0")));
        }
    }
    let all = || (0..n).flat_map(move |a| (0..n).map(move |b| (a, b)));
    if all().any(|(a, b)| distance[a * n + b] > distance[b * n + a]) {
        return Err(InputError::whole("the distance matrix is not symmetric"));
    }
    let pairs = all().map(|(a, b)| (a as u32, b as u32, flow[a * n + b]));
    let rule = |a: u32, b: u32| if a == b { 0.0 } else { distance[a as usize * n + b as usize] };
    let problem = MappingProblem::new(Graph::of(n, pairs), Distances::new(n, rule), &vec![1; n]);
    let budget = search.effort.budget();
    let starts: Vec<u64> = (0..4 * budget.seeds).collect();
    let found = in_parallel(search.threads, &starts, |&start| {
        let mut draw = ChaCha8Rng::seed_from_u64(search.seed);
        draw.set_stream(start);
        let mut seats: Vec<u32> = (0..n as u32).collect();
        seats.shuffle(&mut draw);
        let start = FoundMapping { name: String::new(), value: problem.value(&seats), seats };
        let mut arrangement =
            RankArrangement::new(&problem, improved(&problem, &start, budget, &mut draw));
        Descent::new(&arrangement, start.value).all(&mut arrangement);
        arrangement.into_seats()
    });
    let valued =
        found.into_iter().map(|places| Assignment { value: problem.value(&places), places });
    let best = valued.min_by(|a, b| a.value.total_cmp(&b.value));
    Ok(best.unwrap_or(Assignment { places: Vec::new(), value: 0.0 }))
}
