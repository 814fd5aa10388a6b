//! Values kept for runs of leaves.

use std::ops::Range;

/// Runs of leaves, with a value for each.
#[derive(Debug)]
pub(super) struct Runs<T> {
    all: Vec<(Range<u32>, T)>,
    /// For each leaf, the indices of the runs that contain it.
    with_leaf: Vec<Vec<usize>>,
}

impl<T: Default> Runs<T> {
    pub fn new(leaves: u32) -> Self {
        Runs { all: Vec::new(), with_leaf: vec![Vec::new(); leaves as usize] }
    }

    /// Returns the value of a run, at first the default.
    pub fn of(&mut self, run: &Range<u32>) -> &mut T {
        let known = self.with_leaf[run.start as usize].iter().copied();
        let known = known.into_iter().find(|&index| self.all[index].0 == *run);
        let index = known.unwrap_or_else(|| {
            for leaf in run.clone() {
                self.with_leaf[leaf as usize].push(self.all.len());
            }
            self.all.push((run.clone(), T::default()));
            self.all.len() - 1
        });
        &mut self.all[index].1
    }

    /// Changes the value of each run that contains a leaf.
    pub fn each_with(&mut self, leaf: u32, mut change: impl FnMut(&mut T)) {
        for &index in &self.with_leaf[leaf as usize] {
            change(&mut self.all[index].1);
        }
    }

    /// Changes the value of each run.
    pub fn each(&mut self, change: impl FnMut(&mut T)) {
        self.all.iter_mut().map(|(_, kept)| kept).for_each(change);
    }

    /// The values of the runs that contain any of these leaves.
    pub fn with(&self, leaves: Range<u32>) -> impl Iterator<Item = &T> {
        let mut indices: Vec<usize> = Vec::new();
        for leaf in leaves {
            for &index in &self.with_leaf[leaf as usize] {
                if !indices.contains(&index) {
                    indices.push(index);
                }
            }
        }
        indices.into_iter().map(|index| &self.all[index].1)
    }
}
