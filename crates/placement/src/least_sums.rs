//! Adds up cost lists of groups: the least sum for each total number of slots.

use std::ops::Range;

/// The cost of a placement that is not allowed.
pub const FORBIDDEN: u64 = u64::MAX;

/// Lists of costs, each by the number of slots taken, from 0 on. All lists share one vector, because a placement needs
/// hundreds of them.
#[derive(Debug, Default)]
pub struct CostLists {
    /// The range of each list in `costs`, and whether its costs are convex.
    lists: Vec<(Range<usize>, bool)>,
    costs: Vec<u64>,
}

/// The cost list of no groups: zero slots cost 0.
const NOTHING: (&[u64], bool) = (&[0], true);

impl CostLists {
    /// The costs of one list.
    pub fn get(&self, index: usize) -> &[u64] {
        &self.costs[self.lists[index].0.clone()]
    }

    /// The costs of list `end - 1`; if `end` is not after `start`, the list of no groups.
    pub fn before(&self, start: usize, end: usize) -> &[u64] {
        if start < end { self.get(end - 1) } else { NOTHING.0 }
    }

    /// Appends a list.
    pub fn push(&mut self, costs: impl Iterator<Item = u64>) {
        let start = self.costs.len();
        self.costs.extend(costs);
        let range = start..self.costs.len();
        let is_convex = is_convex(&self.costs[range.clone()]);
        self.lists.push((range, is_convex));
    }

    /// Appends the least sums of the last list and another, up to `most` slots. If it `begins`, appends a copy of the
    /// other list.
    pub fn push_sum(&mut self, begins: bool, other: (&CostLists, usize), most: usize) {
        let (range, other_is_convex) = &other.0.lists[other.1];
        let other = &other.0.costs[range.clone()];
        let last = if begins { None } else { self.lists.last().cloned() };
        match last {
            Some(last) if other == NOTHING.0 => self.lists.push(last),
            Some((range, is_convex)) => {
                let start = self.costs.len();
                self.costs.resize(start + length(range.len(), other.len(), most), FORBIDDEN);
                let (before, sums) = self.costs.split_at_mut(start);
                let are_convex = is_convex && *other_is_convex;
                least_sums(&before[range], other, are_convex, sums);
                self.lists.push((start..self.costs.len(), are_convex));
            }
            None => {
                let start = self.costs.len();
                self.costs.extend(other.iter().take(most + 1));
                self.lists.push((start..self.costs.len(), *other_is_convex));
            }
        }
    }
}

/// Whether each further slot costs at least as much as the one before it.
fn is_convex(costs: &[u64]) -> bool {
    let rises = costs.windows(2).all(|two| two[0] <= two[1]);
    let rise = |of: usize| costs[of] - costs[of - 1];
    rises && costs.last() < Some(&FORBIDDEN) && (2..costs.len()).all(|of| rise(of - 1) <= rise(of))
}

/// The number of entries in the sum of two lists, up to `most` slots.
fn length(one: usize, other: usize, most: usize) -> usize {
    (one + other - 2).min(most) + 1
}

/// The least sums of two lists, by the slots taken in both together, up to `most`.
pub fn sum(one: &[u64], other: &[u64], most: usize) -> Vec<u64> {
    let mut sums = vec![FORBIDDEN; length(one.len(), other.len(), most)];
    least_sums(one, other, false, &mut sums);
    sums
}

/// Computes the least sums into `sums`, which must hold only [`FORBIDDEN`].
fn least_sums(one: &[u64], other: &[u64], are_convex: bool, sums: &mut [u64]) {
    if are_convex {
        // With convex lists, always take the cheaper of the two next slots.
        let (mut of_one, mut of_other) = (0, 0);
        let step = |costs: &[u64], taken: usize| Some(costs.get(taken + 1)? - costs[taken]);
        for sum in sums {
            *sum = one[of_one] + other[of_other];
            match (step(one, of_one), step(other, of_other)) {
                (Some(first), Some(second)) if first > second => of_other += 1,
                (None, Some(_)) => of_other += 1,
                _ => of_one += 1,
            }
        }
        return;
    }
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    for (taken, &cost) in short.iter().enumerate().filter(|&(_, &cost)| cost < FORBIDDEN) {
        let Some(sums) = sums.get_mut(taken..) else { break };
        for (sum, &more) in sums.iter_mut().zip(long) {
            *sum = (*sum).min(cost.saturating_add(more));
        }
    }
}
