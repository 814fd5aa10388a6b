//! Values that the search updates incrementally equal those computed from scratch.

use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::arrangement::RankArrangement;
use super::descent::Descent;
use super::graph::Graph;
use super::partition::{Care, partition};
use super::perturbation::{anneal, iterate};
use super::problem::{Distances, MappingProblem};

/// A test problem: pairs of ranks with weights, seats per place, and a distance for every pair of places.
#[derive(Debug, Clone)]
struct Case {
    pairs: Vec<(u32, u32, f64)>,
    seats: Vec<u32>,
    distance: Vec<f64>,
}

impl Case {
    fn problem(&self, table: bool) -> MappingProblem<'_> {
        let ranks = self.seats.iter().sum::<u32>();
        let pairs = self.pairs.iter().map(|&(a, b, w)| (a % ranks, b % ranks, w));
        let rule = |a: u32, b: u32| match (a.min(b), a.max(b)) {
            (low, high) if low == high => 0.0,
            (low, high) => self.distance[(low * 6 + high) as usize],
        };
        let mut distances = Distances::new(self.seats.len(), rule);
        if !table {
            distances.without_table();
        }
        MappingProblem::new(Graph::of(ranks as usize, pairs), distances, &self.seats)
    }
}

fn case() -> impl Strategy<Value = Case> {
    let pair = (0u32..1000, 0u32..1000, 0.0..10.0f64);
    let pairs = prop::collection::vec(pair, 0..60);
    let distance = prop::collection::vec(0.0..5.0f64, 36);
    (pairs, prop::collection::vec(1u32..5, 2..6), distance)
        .prop_map(|(pairs, seats, distance)| Case { pairs, seats, distance })
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs()))
}

proptest! {
    /// gain(a, b) equals the value before minus the value after the exchange, after any earlier exchanges, with the
    /// table of costs and without it.
    #[test]
    fn a_gain_is_what_the_value_falls_by(
        case in case(),
        swaps in prop::collection::vec((0u32..100, 0u32..100), 1..30),
        table in any::<bool>(),
    ) {
        let problem = case.problem(table);
        let ranks = problem.ranks() as u32;
        let mut arrangement = RankArrangement::new(&problem, (0..ranks).collect());
        prop_assert_eq!(arrangement.is_tabled(), table);
        for (a, b) in swaps {
            let (a, b) = (a % ranks, b % ranks);
            let before = problem.value(arrangement.seats());
            let gain = if a == b { 0.0 } else { arrangement.gain(a, b) };
            arrangement.swap(a, b);
            prop_assert!(close(gain, before - problem.value(arrangement.seats())));
        }
    }

    /// The gains reported by annealing, iterated search and pair swaps equal the reduction of the value, and every rank
    /// keeps a seat of its own.
    #[test]
    fn what_a_search_gains_is_what_the_value_falls_by(case in case(), seed in any::<u64>()) {
        let problem = case.problem(true);
        let ranks = problem.ranks() as u32;
        let mut arrangement = RankArrangement::new(&problem, (0..ranks).collect());
        let mut draw = ChaCha8Rng::seed_from_u64(seed);
        let before = problem.value(arrangement.seats());
        let mut gained = anneal(&mut arrangement, (5.0, 0.5), 400, &mut draw);
        prop_assert!(close(gained, before - problem.value(arrangement.seats())));
        let searched = iterate(&mut arrangement, before, 20, &mut draw);
        prop_assert!(searched >= -1e-9);
        gained += searched + Descent::new(&arrangement, before).all(&mut arrangement);
        let mut seats = arrangement.into_seats();
        prop_assert!(close(gained, before - problem.value(&seats)));
        seats.sort_unstable();
        prop_assert_eq!(seats, (0..ranks).collect::<Vec<_>>());
    }

    /// After the descent, no exchange of two ranks gains anything.
    #[test]
    fn a_descent_ends_where_no_exchange_gains(case in case()) {
        let problem = case.problem(true);
        let ranks = problem.ranks() as u32;
        let mut arrangement = RankArrangement::new(&problem, (0..ranks).collect());
        Descent::new(&arrangement, 1.0).all(&mut arrangement);
        for a in 0..ranks {
            for b in 0..a {
                prop_assert!(arrangement.gain(a, b) <= 1e-9);
            }
        }
    }

    /// Parts have exactly the requested sizes.
    #[test]
    fn a_partition_has_the_sizes_asked_for(case in case(), seed in any::<u64>()) {
        let problem = case.problem(true);
        let care = Care { cuts: 1, rounds: 1 };
        let part = partition(&problem.graph, &case.seats, care, seed);
        for (index, &size) in case.seats.iter().enumerate() {
            let inside = part.iter().filter(|&&part| part as usize == index).count();
            prop_assert_eq!(inside, size as usize);
        }
    }
}
