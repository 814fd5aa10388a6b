//! Why a request is not placed: the groups that stand in its way, and the jobs that hold what is missing.
//!
//! A refusal has only two numbers, because a queue sees thousands of refusals for each one that a person reads. An
//! explanation is computed for that person, from the same free slots and occupancy.

use std::borrow::Cow;

use crate::obstacles::{Holder, Looking, Obstacle, kind_of_group};
use crate::occupancy::Occupancy;
use crate::policy::Policy;
use crate::refusal::Refusal;
use crate::request::Request;

/// A refusal, and the groups that cause it.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The refusal.
    pub refusal: Refusal,
    /// The kind of group that must hold a request of this size (`leaf`, `pod`, ...), if the machine has several of
    /// them.
    pub within: Option<String>,
    /// The groups that stand in the way; those with most free slots come first.
    pub obstacles: Vec<Obstacle>,
}

impl dyn Policy + '_ {
    /// Explains why a request is not placed while `jobs` run; `None` if it would be placed.
    pub fn explain(
        &self,
        request: &Request,
        occupancy: &Occupancy,
        jobs: &[Holder<'_>],
    ) -> Option<Explanation> {
        let refusal = self.place(request, occupancy).err()?;
        let free = occupancy.free_slots(request);
        let free = if self.traits().isolates {
            free.unshared(request, occupancy)
        } else {
            Cow::Borrowed(&free)
        };
        let looking = Looking { request, occupancy, free: &free, jobs };
        let (level, mut obstacles) = match &refusal {
            Refusal::NotNow { wanted, free } => {
                (None, looking.held_slots(wanted - free.min(wanted)))
            }
            Refusal::WouldShareLinks { .. } => {
                let (level, obstacles) = self.obstacles(&looking);
                (Some(level), obstacles)
            }
            Refusal::Never { .. }
            | Refusal::Lacks { .. }
            | Refusal::CannotIsolate { .. }
            | Refusal::WrongWiring { .. } => (None, Vec::new()),
        };
        let may_be_placed =
            matches!(refusal, Refusal::NotNow { .. } | Refusal::WouldShareLinks { .. });
        if may_be_placed && obstacles.iter().all(|obstacle| obstacle.jobs.is_empty()) {
            obstacles.extend(looking.held_slots_of_leaves());
        }
        let fabric = occupancy.fabric();
        let within = level.filter(|&level| fabric.groups(level) > 1);
        let within = within.map(|level| kind_of_group(fabric, level));
        Some(Explanation { refusal, within, obstacles })
    }
}
