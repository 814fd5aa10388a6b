//! Jobs by where and when their reservations begin.

use std::ops::Range;

use topolane_fabric::Fabric;

use super::classes::Opening;

/// When a reservation begins, seconds, and the index of its job.
type Begin = (f64, usize);

/// Of each run of leaves the reservations in it.
pub(super) struct Beside {
    runs: Vec<(Range<u32>, Vec<Begin>)>,
    /// The indices of the runs with each leaf.
    with_leaf: Vec<Vec<usize>>,
}

fn place_of(begins: &[Begin], (start, index): Begin) -> usize {
    begins.partition_point(|other| other.0.total_cmp(&start).then(other.1.cmp(&index)).is_lt())
}

impl Beside {
    /// No reservation.
    pub fn new(fabric: &Fabric) -> Self {
        Beside { runs: Vec::new(), with_leaf: vec![Vec::new(); fabric.groups(1) as usize] }
    }

    pub fn insert(&mut self, run: Range<u32>, begin: Begin) {
        let known = self.run(&run);
        let number = known.unwrap_or_else(|| {
            for leaf in run.clone() {
                self.with_leaf[leaf as usize].push(self.runs.len());
            }
            self.runs.push((run, Vec::new()));
            self.runs.len() - 1
        });
        let begins = &mut self.runs[number].1;
        begins.insert(place_of(begins, begin), begin);
    }

    pub fn remove(&mut self, run: Range<u32>, begin: Begin) {
        let Some(number) = self.run(&run) else { return };
        let begins = &mut self.runs[number].1;
        let place = place_of(begins, begin);
        if begins.get(place).is_some_and(|&known| known == begin) {
            begins.remove(place);
        }
    }

    fn run(&self, run: &Range<u32>) -> Option<usize> {
        let with_leaf = &self.with_leaf[run.start as usize];
        with_leaf.iter().copied().find(|&number| self.runs[number].0 == *run)
    }

    /// The jobs up to whose reservations something has opened.
    pub fn reached<'a>(
        &'a self,
        opening: &'a Opening,
        now: f64,
    ) -> impl Iterator<Item = usize> + 'a {
        let first = opening.openings.first.max(now);
        let last = opening.openings.last;
        let mut numbers: Vec<usize> = Vec::new();
        for leaf in opening.leaves.clone() {
            for &number in &self.with_leaf[leaf as usize] {
                if !numbers.contains(&number) {
                    numbers.push(number);
                }
            }
        }
        numbers.into_iter().flat_map(move |number| {
            let begins = &self.runs[number].1;
            let after = begins.partition_point(|begin| begin.0 <= first);
            begins[after..].iter().take_while(move |begin| begin.0 <= last).map(|begin| begin.1)
        })
    }
}
