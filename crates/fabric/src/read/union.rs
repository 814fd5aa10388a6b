//! A union-find structure, for example for the switches of one group.

/// Disjoint sets of numbers that can be joined but not separated.
pub(super) struct Union(Vec<usize>);

impl Union {
    pub(super) fn new(count: usize) -> Union {
        Union((0..count).collect())
    }

    pub(super) fn find(&mut self, mut at: usize) -> usize {
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    pub(super) fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a.max(b)] = a.min(b);
    }
}
