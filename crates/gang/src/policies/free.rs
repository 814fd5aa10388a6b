//! Lets all jobs run at once.

use crate::job::ObservedJob;
use crate::limits::SliceLimits;
use crate::policy::GangPolicy;
use crate::round::{Round, Slice};

/// One slice without end, in which all jobs run on all cores.
pub struct Free;

impl GangPolicy for Free {
    fn name(&self) -> &'static str {
        "free"
    }

    fn round(&mut self, jobs: &[ObservedJob], cores: usize, _limits: &SliceLimits) -> Round {
        let first = jobs.iter().map(|job| job.id).collect();
        let everywhere = |job: &ObservedJob| (job.id, (0..cores).collect());
        Round {
            slices: vec![Slice { seconds: f64::INFINITY, first, fillers: Vec::new() }],
            cores: jobs.iter().map(everywhere).collect(),
            gangs: Vec::new(),
        }
    }
}
