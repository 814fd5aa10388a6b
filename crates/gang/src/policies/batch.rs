//! Runs one job after another.

use std::collections::BTreeMap;

use crate::job::{JobId, ObservedJob};
use crate::limits::SliceLimits;
use crate::policy::GangPolicy;
use crate::round::{Round, Slice};

/// Starts jobs in order of arrival, each on cores of its own until it ends. No job overtakes another. A job with more
/// threads than there are cores gets all of them.
#[derive(Default)]
pub struct Batch {
    running: BTreeMap<JobId, Vec<usize>>,
}

impl GangPolicy for Batch {
    fn name(&self) -> &'static str {
        "batch"
    }

    fn round(&mut self, jobs: &[ObservedJob], cores: usize, _limits: &SliceLimits) -> Round {
        self.running.retain(|id, _| jobs.iter().any(|job| job.id == *id));
        for job in jobs {
            if self.running.contains_key(&job.id) {
                continue;
            }
            let taken = |core: &usize| self.running.values().any(|held| held.contains(core));
            let free: Vec<usize> = (0..cores).filter(|core| !taken(core)).collect();
            let wanted = job.threads.min(cores);
            if free.len() < wanted {
                break;
            }
            self.running.insert(job.id, free[..wanted].to_vec());
        }
        let first: Vec<JobId> = self.running.keys().copied().collect();
        Round {
            slices: vec![Slice {
                seconds: f64::INFINITY,
                first: first.clone(),
                fillers: Vec::new(),
            }],
            cores: self.running.clone(),
            gangs: first,
        }
    }
}
