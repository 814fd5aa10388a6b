//! Swaps pairs of ranks until no exchange of two seats reduces the cost.

use std::collections::VecDeque;

use super::arrangement::RankArrangement;

/// Gains below this share of the total value are rounding errors.
const ROUNDING: f64 = 1e-12;

/// The ranks whose best exchange must still be searched.
pub(super) struct Descent {
    queue: VecDeque<u32>,
    queued: Vec<bool>,
    /// The weight from the current rank to every other rank.
    weight_to: Vec<f64>,
    /// For each place, the mark of the last rank for which it was tried.
    seen: Vec<u32>,
    mark: u32,
    least: f64,
}

/// The best exchange for a rank: the partner and the gain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RankExchange {
    pub(super) with: u32,
    pub(super) gain: f64,
}

impl Descent {
    /// Returns a descent for arrangements of one problem with approximately this value.
    pub(super) fn new(arrangement: &RankArrangement<'_>, value: f64) -> Descent {
        let (ranks, places) = (arrangement.problem.ranks(), arrangement.problem.places());
        Descent {
            queue: VecDeque::new(),
            queued: vec![false; ranks],
            weight_to: vec![0.0; ranks],
            seen: vec![0; places],
            mark: 0,
            // Even with value 0, moving ranks back and forth leaves rounding errors.
            least: ROUNDING * value.max(arrangement.problem.graph.total()),
        }
    }

    /// Queues a rank for another search.
    pub(super) fn push(&mut self, rank: u32) {
        if !self.queued[rank as usize] {
            self.queued[rank as usize] = true;
            self.queue.push_back(rank);
        }
    }

    /// Swaps until no rank can gain. Returns the total gain.
    pub(super) fn all(&mut self, arrangement: &mut RankArrangement<'_>) -> f64 {
        let mut gained = 0.0;
        loop {
            (0..arrangement.problem.ranks() as u32).for_each(|rank| self.push(rank));
            let more = self.queued(arrangement, |_, _| ());
            gained += more;
            if more <= 0.0 {
                return gained;
            }
        }
    }

    /// Swaps as long as queued ranks, and ranks whose neighbours moved, can gain. Calls `swapped` for every swap.
    /// Returns the total gain.
    pub(super) fn queued(
        &mut self,
        arrangement: &mut RankArrangement<'_>,
        mut swapped: impl FnMut(u32, u32),
    ) -> f64 {
        let mut gained = 0.0;
        while let Some(rank) = self.queue.pop_front() {
            self.queued[rank as usize] = false;
            let Some(best) = self.best(arrangement, rank) else { continue };
            arrangement.swap(rank, best.with);
            swapped(rank, best.with);
            gained += best.gain;
            for moved in [rank, best.with] {
                self.push(moved);
                for &other in arrangement.problem.graph.adjacent(moved) {
                    self.push(other);
                }
            }
        }
        gained
    }

    /// The best exchange for `rank` among those that bring it closer to its neighbours. In any exchange with a gain,
    /// one of the two ranks comes closer, so searching all ranks misses nothing.
    pub(super) fn best(
        &mut self,
        arrangement: &RankArrangement<'_>,
        rank: u32,
    ) -> Option<RankExchange> {
        let graph = &arrangement.problem.graph;
        for (other, weight) in graph.neighbours(rank) {
            self.weight_to[other as usize] = weight;
        }
        let mut best = RankExchange { with: rank, gain: self.least };
        if arrangement.is_tabled() {
            let at = arrangement.place(rank);
            let costs = arrangement.costs(rank);
            let here = costs[at as usize];
            for (place, &there) in costs.iter().enumerate() {
                if there < here {
                    self.look_at(arrangement, rank, place as u32, here - there, &mut best);
                }
            }
        } else {
            self.look_near(arrangement, rank, &mut best);
        }
        for &other in graph.adjacent(rank) {
            self.weight_to[other as usize] = 0.0;
        }
        (best.with != rank).then_some(best)
    }

    /// Tries only the places of the neighbours, because without a table the others would take too long.
    fn look_near(&mut self, arrangement: &RankArrangement<'_>, rank: u32, best: &mut RankExchange) {
        self.mark += 1;
        let at = arrangement.place(rank);
        let here = arrangement.cost(rank, at);
        for &other in arrangement.problem.graph.adjacent(rank) {
            let place = arrangement.place(other);
            if std::mem::replace(&mut self.seen[place as usize], self.mark) != self.mark {
                let own = here - arrangement.cost(rank, place);
                if own > 0.0 {
                    self.look_at(arrangement, rank, place, own, best);
                }
            }
        }
    }

    /// Tries exchanges with the ranks at `place`, where `rank` itself gains `own`.
    fn look_at(
        &self,
        arrangement: &RankArrangement<'_>,
        rank: u32,
        place: u32,
        own: f64,
        best: &mut RankExchange,
    ) {
        let problem = arrangement.problem;
        let at = arrangement.place(rank);
        if problem.kind[at as usize] != problem.kind[place as usize] {
            return;
        }
        let apart = 2.0 * problem.distances.between(at, place);
        for seat in problem.seats(place) {
            let other = arrangement.rank_on(seat);
            let theirs = arrangement.cost(other, place) - arrangement.cost(other, at);
            let gain = own + theirs - apart * self.weight_to[other as usize];
            if gain > best.gain {
                *best = RankExchange { with: other, gain };
            }
        }
    }
}
