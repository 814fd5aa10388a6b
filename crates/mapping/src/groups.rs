//! Swaps whole groups: all ranks of one leaf or pod with those of another.

use std::collections::HashMap;

use super::arrangement::RankArrangement;
use super::descent::Descent;
use super::problem::{Distances, MappingProblem};
use super::slots::PlacedSlots;

/// Swaps groups of equal shape, level by level from the top, as long as it reduces the cost. Distances inside a group
/// do not change, so groups can be treated like ranks in a smaller problem of the same kind.
pub(super) fn swap_groups(
    problem: &MappingProblem<'_>,
    slots: &PlacedSlots<'_>,
    seats: &mut [u32],
) {
    for level in slots.levels().rev() {
        let groups = slots.groups_of(level, 0..slots.places() as u32);
        if groups.len() < 3 || groups.len() == problem.ranks() {
            continue;
        }
        let mut group_of_place = vec![0; slots.places()];
        for (group, places) in groups.iter().enumerate() {
            places.clone().for_each(|place| group_of_place[place as usize] = group as u32);
        }
        let group_of_rank: Vec<u32> = seats
            .iter()
            .map(|&seat| group_of_place[problem.place_of_seat(seat) as usize])
            .collect();
        let graph = problem.graph.quotient(&group_of_rank, groups.len());
        let first: Vec<u32> = groups.iter().map(|places| places.start).collect();
        let distances = Distances::new(groups.len(), |a, b| {
            problem.distances.between(first[a as usize], first[b as usize])
        });
        let mut smaller = MappingProblem::new(graph, distances, &vec![1; groups.len()]);
        let mut kinds = HashMap::new();
        for (group, places) in groups.iter().enumerate() {
            let next = kinds.len() as u32;
            smaller.kind[group] = *kinds.entry(slots.shape(level, places.clone())).or_insert(next);
        }
        let mut arrangement = RankArrangement::new(&smaller, (0..groups.len() as u32).collect());
        Descent::new(&arrangement, problem.graph.total()).all(&mut arrangement);
        let first_seat = |group: u32| problem.first_seat[groups[group as usize].start as usize];
        for (rank, seat) in seats.iter_mut().enumerate() {
            let group = group_of_rank[rank];
            *seat = *seat - first_seat(group) + first_seat(arrangement.place(group));
        }
    }
}
