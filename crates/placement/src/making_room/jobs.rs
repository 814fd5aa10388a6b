//! Sets of running jobs.

/// A set of jobs by their place in a list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Jobs(Box<[u64]>);

impl Jobs {
    /// No job of a list of `of` jobs.
    pub fn none(of: usize) -> Self {
        Jobs(vec![0; of.div_ceil(64)].into())
    }

    /// These jobs of a list of `of` jobs.
    pub fn of(of: usize, jobs: impl IntoIterator<Item = usize>) -> Self {
        let mut set = Jobs::none(of);
        jobs.into_iter().for_each(|job| set.insert(job));
        set
    }

    pub fn contains(&self, job: usize) -> bool {
        self.0[job / 64] >> (job % 64) & 1 == 1
    }

    pub fn insert(&mut self, job: usize) {
        self.0[job / 64] |= 1 << (job % 64);
    }

    pub fn remove(&mut self, job: usize) {
        self.0[job / 64] &= !(1 << (job % 64));
    }

    /// Whether a job is in both sets.
    pub fn meets(&self, other: &Jobs) -> bool {
        self.0.iter().zip(&other.0).any(|(one, other)| one & other != 0)
    }

    /// Adds all jobs of another set.
    pub fn add(&mut self, other: &Jobs) {
        self.0.iter_mut().zip(&other.0).for_each(|(one, other)| *one |= other);
    }

    /// The jobs, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(word, &bits)| {
            let rest = |bits: &u64| Some(bits & (bits - 1)).filter(|&bits| bits != 0);
            let left = std::iter::successors(Some(bits).filter(|&bits| bits != 0), rest);
            left.map(move |bits| word * 64 + bits.trailing_zeros() as usize)
        })
    }
}
