//! The interface of gang policies.

use crate::job::ObservedJob;
use crate::limits::SliceLimits;
use crate::round::Round;

/// A policy that decides which jobs run when. It only remembers the matrix, which it needs to keep its answers stable.
pub trait GangPolicy: Send {
    /// The name under which it is registered.
    fn name(&self) -> &'static str;

    /// Returns the slices from now on for these jobs, which are in order of arrival, on `cores` cores. A driver asks
    /// when a job came or went, and once per round. The same sequence of questions gets the same answers.
    fn round(&mut self, jobs: &[ObservedJob], cores: usize, limits: &SliceLimits) -> Round;
}
