//! Initial mappings: a partition for every group of the tree, from the top down.

use std::ops::Range;

use super::graph::Graph;
use super::partition::{Care, partition};
use super::slots::PlacedSlots;

/// How the ranks of a group are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DivisionMethod {
    /// Into two halves of its subgroups, repeatedly (Pellegrini 1994).
    Bipartition,
    /// Into all its subgroups at once (Chan et al. 2012).
    Multisection,
}

impl DivisionMethod {
    pub(super) fn name(self) -> &'static str {
        match self {
            DivisionMethod::Bipartition => "bipartition",
            DivisionMethod::Multisection => "multisection",
        }
    }
}

/// Divides ranks over the groups of the slots, from the top down.
pub(super) struct RankDivision<'a> {
    pub(super) graph: &'a Graph,
    pub(super) slots: &'a PlacedSlots<'a>,
    pub(super) cut: DivisionMethod,
    pub(super) care: Care,
    pub(super) seed: u64,
}

impl RankDivision<'_> {
    /// The seat of every rank.
    pub(super) fn seats(&self) -> Vec<u32> {
        let ranks: Vec<u32> = (0..self.graph.vertices() as u32).collect();
        let mut order = Vec::with_capacity(ranks.len());
        self.divide(ranks, 0..self.slots.places() as u32, &mut order);
        let mut seats = vec![0; order.len()];
        for (seat, &rank) in order.iter().enumerate() {
            seats[rank as usize] = seat as u32;
        }
        seats
    }

    /// Appends the ranks to `order`, seat by seat.
    fn divide(&self, ranks: Vec<u32>, places: Range<u32>, order: &mut Vec<u32>) {
        let Some((_, groups)) = self.slots.groups(places) else {
            order.extend(ranks);
            return;
        };
        let parts = match self.cut {
            DivisionMethod::Multisection => groups,
            DivisionMethod::Bipartition => self.halves(&groups),
        };
        let sizes: Vec<u32> = parts.iter().map(|part| self.seats_in(part)).collect();
        // The seed of each partition depends on its position in the tree.
        let seed = self.seed.wrapping_mul(0x9e37_79b9).wrapping_add(order.len() as u64);
        let part = partition(&self.graph.induced(&ranks), &sizes, self.care, seed);
        for (index, places) in parts.into_iter().enumerate() {
            let inside = ranks.iter().zip(&part).filter(|&(_, &part)| part as usize == index);
            self.divide(inside.map(|(&rank, _)| rank).collect(), places, order);
        }
    }

    fn seats_in(&self, places: &Range<u32>) -> u32 {
        self.slots.seats[places.start as usize..places.end as usize].iter().sum()
    }

    /// Splits the groups into two runs with nearly equal numbers of seats.
    fn halves(&self, groups: &[Range<u32>]) -> Vec<Range<u32>> {
        let (first, last) = (groups[0].start, groups[groups.len() - 1].end);
        let all = i64::from(self.seats_in(&(first..last)));
        let uneven = |end: u32| (2 * i64::from(self.seats_in(&(first..end))) - all).abs();
        let ends = groups[..groups.len() - 1].iter().map(|group| group.end);
        let middle = ends.min_by_key(|&end| uneven(end)).unwrap_or(last);
        vec![first..middle, middle..last]
    }
}
