//! Leaves local optima: annealing at a low temperature, and iterated local search.

use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;

use super::arrangement::RankArrangement;
use super::descent::Descent;

/// Annealing (Kirkpatrick et al. 1983) with exchanges towards a neighbour. It draws `trials` exchanges and makes one
/// that loses with probability exp(-loss / temperature). The temperature falls from `hottest` to `coldest` by a
/// constant factor. Returns the total gain, and leaves the arrangement as it is at the end.
pub(super) fn anneal(
    arrangement: &mut RankArrangement<'_>,
    (hottest, coldest): (f64, f64),
    trials: u64,
    draw: &mut ChaCha8Rng,
) -> f64 {
    const STEPS: u64 = 200;
    let mut gained = 0.0;
    let factor = (coldest / hottest).powf(1.0 / (STEPS as f64 - 1.0));
    let mut temperature = hottest;
    for _ in 0..STEPS {
        for _ in 0..trials / STEPS {
            let Some((rank, other)) = towards_a_neighbour(arrangement, draw) else { continue };
            let bound = arrangement.most_gained(rank, other);
            let accepted = temperature * draw.random::<f64>().ln();
            if bound < accepted {
                continue;
            }
            let gain = arrangement.gain(rank, other);
            if gain >= accepted {
                arrangement.swap(rank, other);
                gained += gain;
            }
        }
        temperature *= factor;
    }
    gained
}

/// The mean loss of a random exchange, which sets the scale of temperatures.
pub(super) fn mean_loss(arrangement: &RankArrangement<'_>, draw: &mut ChaCha8Rng) -> f64 {
    const DRAWN: usize = 1000;
    let pairs = (0..DRAWN).filter_map(|_| towards_a_neighbour(arrangement, draw));
    let losses = pairs.map(|(rank, other)| (-arrangement.gain(rank, other)).max(0.0));
    losses.sum::<f64>() / DRAWN as f64
}

/// Draws a rank, and another rank at the place of one of its neighbours.
fn towards_a_neighbour(
    arrangement: &RankArrangement<'_>,
    draw: &mut ChaCha8Rng,
) -> Option<(u32, u32)> {
    let problem = arrangement.problem;
    let rank = below(draw, problem.ranks() as u32);
    let adjacent = problem.graph.adjacent(rank);
    if adjacent.is_empty() {
        return None;
    }
    let neighbour = adjacent[below(draw, adjacent.len() as u32) as usize];
    let place = arrangement.place(neighbour);
    let seats = problem.seats(place);
    let at = arrangement.place(rank);
    // The neighbour is alone at its place, or shares the place of `rank`. No exchange near it is of use, so draw any
    // rank.
    let seat = if place == at || seats.len() == 1 {
        below(draw, problem.ranks() as u32)
    } else {
        seats.start + below(draw, seats.len() as u32)
    };
    let other = arrangement.rank_on(seat);
    let place = arrangement.place(other);
    (place != at && problem.kind[place as usize] == problem.kind[at as usize])
        .then_some((rank, other))
}

/// Draws a number below `limit` (Lemire 2019, without the rejection: a bias of 2^-32 does not matter).
fn below(draw: &mut ChaCha8Rng, limit: u32) -> u32 {
    ((u64::from(draw.next_u32()) * u64::from(limit)) >> 32) as u32
}

/// Iterated local search (Lourenco, Martin & Stuetzle 2003): makes a few exchanges near one rank, then pair swaps
/// around them, and undoes everything if the cost rose. Returns the total gain.
pub(super) fn iterate(
    arrangement: &mut RankArrangement<'_>,
    value: f64,
    rounds: u64,
    draw: &mut ChaCha8Rng,
) -> f64 {
    let mut descent = Descent::new(arrangement, value);
    let mut swaps: Vec<(u32, u32)> = Vec::new();
    let mut gained = 0.0;
    for _ in 0..rounds {
        swaps.clear();
        let mut gain = 0.0;
        for _ in 0..2 + below(draw, 3) {
            let Some((rank, other)) = towards_a_neighbour(arrangement, draw) else { continue };
            gain += arrangement.gain(rank, other);
            arrangement.swap(rank, other);
            swaps.push((rank, other));
        }
        for &(a, b) in &swaps {
            for rank in [a, b] {
                descent.push(rank);
                for &other in arrangement.problem.graph.adjacent(rank) {
                    descent.push(other);
                }
            }
        }
        gain += descent.queued(arrangement, |a, b| swaps.push((a, b)));
        if gain < 0.0 {
            swaps.iter().rev().for_each(|&(a, b)| arrangement.swap(a, b));
        } else {
            gained += gain;
        }
    }
    gained
}
