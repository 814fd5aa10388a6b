//! The heaviest set of switches of a group of which no two are in conflict.

use std::iter::successors;

use topolane_fabric::SwitchSet;

/// The most branches of one search.
const MOST_BRANCHES: u32 = 2_000;

/// The places in a set, ascending.
pub(super) fn bits(set: SwitchSet) -> impl Iterator<Item = usize> {
    successors(Some(set), |&left| Some(left & left.wrapping_sub(1)))
        .take_while(|&left| left != 0)
        .map(|left| left.trailing_zeros() as usize)
}

/// For each switch of a group, the switches to or from which some way is used by another job.
#[derive(Debug)]
pub(crate) struct Conflicts(Vec<SwitchSet>);

impl Conflicts {
    /// Returns the conflicts, given the switches to which all ways from each switch are free; `None` if there are none.
    pub fn of(open: &[SwitchSet]) -> Option<Self> {
        let all = SwitchSet::MAX.checked_shr(SwitchSet::BITS - open.len() as u32).unwrap_or(0);
        let mut conflicts = vec![0; open.len()];
        for (from, open) in open.iter().enumerate() {
            let closed = all & !open & !(1 << from);
            conflicts[from] |= closed;
            bits(closed).for_each(|to| conflicts[to] |= 1 << from);
        }
        conflicts.iter().any(|&of| of != 0).then_some(Conflicts(conflicts))
    }

    /// The switches in conflict with a switch.
    pub fn of_switch(&self, switch: usize) -> SwitchSet {
        self.0[switch]
    }

    /// Returns the switches of `able` with the largest sum of weights of which no two are in conflict. Exact, unless the
    /// search reaches its bound; then the best found, which is at least that of taking the heaviest first. Returns also
    /// whether it is exact.
    pub fn heaviest(&self, able: SwitchSet, weights: &[u32]) -> (SwitchSet, bool) {
        let mut search = Heaviest { conflicts: self, weights, best: 0, weight: 0, branches: 0 };
        search.branch(0, able);
        (search.best, search.branches <= MOST_BRANCHES)
    }
}

struct Heaviest<'a> {
    conflicts: &'a Conflicts,
    weights: &'a [u32],
    best: SwitchSet,
    weight: u32,
    branches: u32,
}

impl Heaviest<'_> {
    fn weigh(&self, set: SwitchSet) -> u32 {
        bits(set).map(|switch| self.weights[switch]).sum()
    }

    /// Looks for a better set among those with all of `taken` and some of `open`, of which none is in conflict with
    /// `taken`.
    fn branch(&mut self, mut taken: SwitchSet, mut open: SwitchSet) {
        // A switch without conflicts is always taken.
        let lone = bits(open).filter(|&switch| self.conflicts.0[switch] & open == 0);
        let lone = lone.fold(0, |set, switch| set | 1 << switch);
        (taken, open) = (taken | lone, open & !lone);
        let weight = self.weigh(taken);
        if weight > self.weight {
            (self.best, self.weight) = (taken, weight);
        }
        self.branches += 1;
        if open == 0 || weight + self.bound(open) <= self.weight || self.branches > MOST_BRANCHES {
            return;
        }
        // The switch whose weight exceeds that of its conflicts by most: taking it first soon gives a good set.
        let gain = |&switch: &usize| {
            let lost = self.weigh(self.conflicts.0[switch] & open);
            (i64::from(self.weights[switch]) - i64::from(lost), std::cmp::Reverse(switch))
        };
        let Some(first) = bits(open).max_by_key(gain) else { return };
        let one = 1 << first;
        self.branch(taken | one, open & !one & !self.conflicts.0[first]);
        self.branch(taken, open & !one);
    }

    /// No set of switches of `open` weighs more: switches in pairwise conflict count once, with the heaviest.
    fn bound(&self, open: SwitchSet) -> u32 {
        let (mut left, mut bound) = (open, 0);
        while left != 0 {
            let first = left.trailing_zeros() as usize;
            let (mut heaviest, mut rest) = (self.weights[first], left & self.conflicts.0[first]);
            left &= !(1 << first);
            while rest != 0 {
                let next = rest.trailing_zeros() as usize;
                heaviest = heaviest.max(self.weights[next]);
                left &= !(1 << next);
                rest &= self.conflicts.0[next];
            }
            bound += heaviest;
        }
        bound
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// No set without conflicts weighs more, and the answer has none.
        #[test]
        fn no_set_without_conflicts_is_heavier(
            pairs in prop::collection::vec((0usize..10, 0usize..10), 0..30),
            weights in prop::collection::vec(1u32..9, 10),
            able in 0u128..1024,
        ) {
            let mut open = vec![1023u128; 10];
            for (a, b) in pairs {
                open[a] &= !(1 << b);
            }
            let conflicts = Conflicts::of(&open);
            let Some(conflicts) = conflicts else { return Ok(()) };
            let holds = |set: u128| bits(set).all(|at| conflicts.0[at] & set == 0);
            let weigh = |set: u128| bits(set).map(|at| weights[at]).sum::<u32>();
            let (found, is_exact) = conflicts.heaviest(able, &weights);
            prop_assert!(is_exact);
            prop_assert!(holds(found) && found & !able == 0);
            let most = (0..1024).filter(|&set| set & !able == 0 && holds(set)).map(weigh).max();
            prop_assert_eq!(Some(weigh(found)), most);
        }
    }
}
