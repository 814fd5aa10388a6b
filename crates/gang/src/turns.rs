//! Where a new round begins when it replaces another.

use crate::job::JobId;
use crate::round::Round;

impl Round {
    /// The index of the slice with the first job that has waited longest, given the waiting time of each job; the
    /// earliest among equals. A driver that gets a new job in the middle of a round continues there, so that arrivals
    /// and departures do not delay other jobs.
    pub fn longest_waiting(&self, waited: impl Fn(JobId) -> f64) -> usize {
        let longest =
            |at: usize| self.slices[at].first.iter().map(|&id| waited(id)).fold(0.0, f64::max);
        (0..self.slices.len())
            .rev()
            .max_by(|&one, &other| longest(one).total_cmp(&longest(other)))
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::Slice;

    /// A job that never ran has waited longest; among equals, the order of the round decides.
    #[test]
    fn the_longest_waiting_job_is_next() {
        let slice =
            |first: &[JobId]| Slice { seconds: 0.1, first: first.to_vec(), fillers: vec![] };
        let round =
            Round { slices: vec![slice(&[1]), slice(&[2, 1]), slice(&[3])], ..Round::default() };
        assert_eq!(round.longest_waiting(|id| [0.0, 0.0, 0.2, 0.1][id as usize]), 1);
        assert_eq!(round.longest_waiting(|id| if id == 3 { f64::INFINITY } else { 1.0 }), 2);
        assert_eq!(round.longest_waiting(|_| 1.0), 0);
        assert_eq!(Round::default().longest_waiting(|_| 1.0), 0);
    }
}
