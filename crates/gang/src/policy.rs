//! What a gang policy is.

use crate::job::Job;
use crate::limits::Limits;
use crate::round::Round;

/// A rule for who runs when. It remembers only what it needs to stay with earlier answers: the matrix.
pub trait GangPolicy: Send {
    /// The name it is registered under.
    fn name(&self) -> &'static str;

    /// The slices from now on, for these jobs, in the order of their arrival, on that many cores.
    /// A driver asks when a job came or went, and once a round. The same questions in the same order get the same
    /// answers.
    fn round(&mut self, jobs: &[Job], cores: usize, limits: &Limits) -> Round;
}
