//! A mapping problem: a graph of ranks, seats at places, and distances between places.

use super::graph::Graph;

/// Distances between places: symmetric, not negative, and 0 from a place to itself.
pub(super) struct Distances<'a> {
    places: usize,
    /// The distances row by row; empty if there are too many places.
    table: Vec<f64>,
    rule: Box<dyn Fn(u32, u32) -> f64 + Send + Sync + 'a>,
}

/// A table of more places would not fit in a processor's caches.
const MOST_IN_TABLE: usize = 2048;

impl<'a> Distances<'a> {
    pub(super) fn new(
        places: usize,
        rule: impl Fn(u32, u32) -> f64 + Send + Sync + 'a,
    ) -> Distances<'a> {
        let mut table = Vec::new();
        if places <= MOST_IN_TABLE {
            let all = 0..places as u32;
            table = all
                .clone()
                .flat_map(|a| all.clone().map(move |b| (a, b)))
                .map(|(a, b)| rule(a, b))
                .collect();
        }
        Distances { places, table, rule: Box::new(rule) }
    }

    #[cfg(test)]
    pub(super) fn without_table(&mut self) {
        self.table.clear();
    }

    /// Returns equal distances between all places, for partitioning.
    pub(super) fn uniform(places: usize) -> Distances<'static> {
        Distances::new(places, |a, b| f64::from(u8::from(a != b)))
    }

    pub(super) fn places(&self) -> usize {
        self.places
    }

    #[inline]
    pub(super) fn between(&self, a: u32, b: u32) -> f64 {
        if self.table.is_empty() {
            return (self.rule)(a, b);
        }
        self.table[a as usize * self.places + b as usize]
    }

    /// The distances from a place to all others; empty if there is no table.
    #[inline]
    pub(super) fn row(&self, place: u32) -> &[f64] {
        if self.table.is_empty() {
            return &[];
        }
        &self.table[place as usize * self.places..(place as usize + 1) * self.places]
    }
}

/// A problem with one rank per seat. The seats of a place are one range, and equivalent.
pub(super) struct MappingProblem<'a> {
    pub(super) graph: Graph,
    pub(super) distances: Distances<'a>,
    /// The first seat of every place; then the number of seats.
    pub(super) first_seat: Vec<u32>,
    /// Ranks may only be exchanged between places of the same kind.
    pub(super) kind: Vec<u32>,
    place_of_seat: Vec<u32>,
}

impl<'a> MappingProblem<'a> {
    /// Returns the problem of `graph`, which must have one vertex per seat.
    pub(super) fn new(graph: Graph, distances: Distances<'a>, seats: &[u32]) -> MappingProblem<'a> {
        let mut first_seat = vec![0];
        let mut place_of_seat = Vec::new();
        for (place, &count) in seats.iter().enumerate() {
            place_of_seat.extend(std::iter::repeat_n(place as u32, count as usize));
            first_seat.push(place_of_seat.len() as u32);
        }
        debug_assert_eq!(place_of_seat.len(), graph.vertices());
        MappingProblem { graph, distances, first_seat, kind: vec![0; seats.len()], place_of_seat }
    }

    pub(super) fn ranks(&self) -> usize {
        self.place_of_seat.len()
    }

    pub(super) fn places(&self) -> usize {
        self.distances.places()
    }

    /// The place of a seat.
    #[inline]
    pub(super) fn place_of_seat(&self, seat: u32) -> u32 {
        self.place_of_seat[seat as usize]
    }

    /// The seats of a place.
    #[inline]
    pub(super) fn seats(&self, place: u32) -> std::ops::Range<u32> {
        self.first_seat[place as usize]..self.first_seat[place as usize + 1]
    }

    /// The sum over pairs of ranks of weight times distance, computed from the seats alone.
    pub(super) fn value(&self, seat_of_rank: &[u32]) -> f64 {
        let place = |rank: u32| self.place_of_seat(seat_of_rank[rank as usize]);
        self.graph.pairs().map(|(a, b, w)| w * self.distances.between(place(a), place(b))).sum()
    }
}
