//! Tracks the seat of each rank and the gain of every exchange of two seats.

use super::problem::MappingProblem;

/// The most entries of the cost table: 64 MB. For larger problems, costs are summed over the neighbours on demand.
const MOST_ENTRIES: usize = 1 << 23;

/// A rank on every seat, and the cost of every rank at every place.
pub(super) struct RankArrangement<'a> {
    pub(super) problem: &'a MappingProblem<'a>,
    seat_of_rank: Vec<u32>,
    rank_on_seat: Vec<u32>,
    place_of_rank: Vec<u32>,
    /// `cost[rank * places + place]`: the cost of the rank's traffic there if all other ranks stay.
    cost: Vec<f64>,
}

impl<'a> RankArrangement<'a> {
    /// Returns the arrangement with rank i on seat `seat_of_rank[i]`; each seat must occur once.
    pub(super) fn new(
        problem: &'a MappingProblem<'a>,
        seat_of_rank: Vec<u32>,
    ) -> RankArrangement<'a> {
        let ranks = problem.ranks();
        let mut rank_on_seat = vec![u32::MAX; ranks];
        for (rank, &seat) in seat_of_rank.iter().enumerate() {
            rank_on_seat[seat as usize] = rank as u32;
        }
        let place_of_rank = seat_of_rank.iter().map(|&seat| problem.place_of_seat(seat)).collect();
        let mut all = RankArrangement {
            problem,
            seat_of_rank,
            rank_on_seat,
            place_of_rank,
            cost: Vec::new(),
        };
        let places = problem.places();
        if !problem.distances.row(0).is_empty() && ranks * places <= MOST_ENTRIES {
            all.cost = vec![0.0; ranks * places];
            for rank in 0..ranks as u32 {
                let row = &mut all.cost[rank as usize * places..(rank as usize + 1) * places];
                for (other, weight) in problem.graph.neighbours(rank) {
                    let from = problem.distances.row(all.place_of_rank[other as usize]);
                    row.iter_mut().zip(from).for_each(|(cost, d)| *cost += weight * d);
                }
            }
        }
        all
    }

    #[cfg(test)]
    pub(super) fn seats(&self) -> &[u32] {
        &self.seat_of_rank
    }

    pub(super) fn into_seats(self) -> Vec<u32> {
        self.seat_of_rank
    }

    #[inline]
    pub(super) fn place(&self, rank: u32) -> u32 {
        self.place_of_rank[rank as usize]
    }

    #[inline]
    pub(super) fn rank_on(&self, seat: u32) -> u32 {
        self.rank_on_seat[seat as usize]
    }

    /// Whether there is a table of costs, so that all places can be tried.
    pub(super) fn is_tabled(&self) -> bool {
        !self.cost.is_empty()
    }

    /// The cost of a rank's traffic at a place, if all other ranks stay.
    #[inline]
    pub(super) fn cost(&self, rank: u32, place: u32) -> f64 {
        if self.cost.is_empty() {
            let graph = &self.problem.graph;
            let distance = |other| self.problem.distances.between(place, self.place(other));
            return graph.neighbours(rank).map(|(other, w)| w * distance(other)).sum();
        }
        self.cost[rank as usize * self.problem.places() + place as usize]
    }

    /// The cost of a rank's traffic at every place; empty if there is no table.
    #[inline]
    pub(super) fn costs(&self, rank: u32) -> &[f64] {
        if self.cost.is_empty() {
            return &[];
        }
        let places = self.problem.places();
        &self.cost[rank as usize * places..(rank as usize + 1) * places]
    }

    /// An upper bound of [`RankArrangement::gain`]. It is exact for ranks that do not communicate; otherwise the gain is
    /// lower by twice their weight times their distance.
    #[inline]
    pub(super) fn most_gained(&self, a: u32, b: u32) -> f64 {
        let (at_a, at_b) = (self.place(a), self.place(b));
        self.cost(a, at_a) - self.cost(a, at_b) + self.cost(b, at_b) - self.cost(b, at_a)
    }

    /// The reduction in cost if two ranks exchange their seats.
    #[inline]
    pub(super) fn gain(&self, a: u32, b: u32) -> f64 {
        // The distance of the two ranks does not change, but each cost assumes that the other rank stays.
        let own = self.problem.graph.between(a, b);
        let gain = self.most_gained(a, b);
        if own == 0.0 {
            return gain;
        }
        gain - 2.0 * own * self.problem.distances.between(self.place(a), self.place(b))
    }

    /// Exchanges the seats of two ranks.
    pub(super) fn swap(&mut self, a: u32, b: u32) {
        let (at_a, at_b) = (self.place(a), self.place(b));
        self.seat_of_rank.swap(a as usize, b as usize);
        self.rank_on_seat
            .swap(self.seat_of_rank[a as usize] as usize, self.seat_of_rank[b as usize] as usize);
        if at_a == at_b {
            return;
        }
        self.place_of_rank.swap(a as usize, b as usize);
        if !self.cost.is_empty() {
            self.moved(a, at_a, at_b);
            self.moved(b, at_b, at_a);
        }
    }

    fn moved(&mut self, rank: u32, from: u32, to: u32) {
        let (problem, places) = (self.problem, self.problem.places());
        let (from, to) = (problem.distances.row(from), problem.distances.row(to));
        for (other, weight) in problem.graph.neighbours(rank) {
            let row = &mut self.cost[other as usize * places..(other as usize + 1) * places];
            for ((cost, before), after) in row.iter_mut().zip(from).zip(to) {
                *cost += weight * (after - before);
            }
        }
    }
}
