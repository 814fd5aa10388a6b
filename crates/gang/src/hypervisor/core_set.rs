//! Sets of core numbers.

/// A set of cores numbered from 0 to 255.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CoreSet([u64; 4]);

impl CoreSet {
    pub fn insert(&mut self, core: usize) {
        self.0[core / 64] |= 1 << (core % 64);
    }

    pub fn remove(&mut self, core: usize) {
        self.0[core / 64] &= !(1 << (core % 64));
    }

    pub fn contains(&self, core: usize) -> bool {
        core < 256 && self.0[core / 64] >> (core % 64) & 1 == 1
    }

    /// The lowest core that is in both sets.
    pub fn first_of_both(&self, other: &Self) -> Option<usize> {
        (0..4).find_map(|word| {
            let both = self.0[word] & other.0[word];
            (both != 0).then(|| 64 * word + both.trailing_zeros() as usize)
        })
    }
}

impl FromIterator<usize> for CoreSet {
    fn from_iter<I: IntoIterator<Item = usize>>(cores: I) -> Self {
        let mut set = CoreSet::default();
        cores.into_iter().for_each(|core| set.insert(core));
        set
    }
}
