//! Indexes waiting jobs by the place and the start of their reservations.

use std::ops::Range;

use topolane_fabric::Fabric;

use super::opening::Opening;
use super::runs::Runs;

/// The start of a reservation in seconds, and the index of its job.
type Begin = (f64, usize);

/// For each run of leaves, the reservations there in order of their start.
pub(super) struct Begins(Runs<Vec<Begin>>);

fn place_of(begins: &[Begin], (start, index): Begin) -> usize {
    begins.partition_point(|other| other.0.total_cmp(&start).then(other.1.cmp(&index)).is_lt())
}

impl Begins {
    /// Returns an index without reservations.
    pub fn new(fabric: &Fabric) -> Self {
        Begins(Runs::new(fabric.groups(1)))
    }

    pub fn insert(&mut self, run: &Range<u32>, begin: Begin) {
        let begins = self.0.of(run);
        begins.insert(place_of(begins, begin), begin);
    }

    pub fn remove(&mut self, run: &Range<u32>, begin: Begin) {
        let begins = self.0.of(run);
        let place = place_of(begins, begin);
        if begins.get(place).is_some_and(|&known| known == begin) {
            begins.remove(place);
        }
    }

    /// The jobs whose reservations an opening reaches, so that they might start earlier.
    pub fn reached<'a>(
        &'a self,
        opening: &'a Opening,
        now: f64,
    ) -> impl Iterator<Item = usize> + 'a {
        let first = opening.openings.first.max(now);
        let last = opening.openings.last;
        self.0.with(opening.leaves.clone()).flat_map(move |begins| {
            let after = begins.partition_point(|begin| begin.0 <= first);
            begins[after..].iter().take_while(move |begin| begin.0 <= last).map(|begin| begin.1)
        })
    }
}
