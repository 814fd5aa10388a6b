mod candidates;
mod judge;
mod variants;

#[cfg(test)]
mod tests;

use crate::{
    Choice, FreeSlots, Occupancy, Placement, Policy, QueueRule, Refusal, Request, Traits,
    groups_crossed,
};

use super::SlurmTree;
use judge::Judge;

/// Tries several sets of nodes and takes the one where jobs are predicted to slow each other down least on shared
/// links: the new job and the running ones. docs/explanation/least-slowdown.md has the reasons. It never refuses a job
/// because of links.
///
/// If the occupancy does not track traffic, or the job's traffic is unknown, it chooses as `slurm-tree`.
#[derive(Debug, Clone, Copy, Default)]
pub struct LeastSlowdown;

impl Policy for LeastSlowdown {
    fn name(&self) -> &'static str {
        "least-slowdown"
    }

    fn traits(&self) -> Traits {
        // Two jobs of the same size may send differently and then get different nodes.
        Traits { depends_only_on_size: false, ..Traits::COUNT_ONLY }
    }

    fn reads_traffic(&self) -> bool {
        true
    }

    fn queue_rule(&self) -> Option<&dyn QueueRule> {
        Some(self)
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<Choice, Refusal> {
        let usual = SlurmTree.choose(request, free, occupancy)?;
        let crossed = groups_crossed(free.fabric(), &usual.nodes);
        let Some(newcomer) = occupancy.newcomer(request) else {
            return Ok(usual);
        };
        if crossed.is_empty() && request.share.is_whole() {
            return Ok(usual);
        }
        let others = candidates::candidates(request, free, occupancy);
        let mut judge = Judge::new(&newcomer, free, usual.nodes, others);
        variants::improve(&mut judge, free, request.id);
        Ok(Choice::nodes(judge.into_best()))
    }
}

impl QueueRule for LeastSlowdown {
    /// Node-seconds lost per second while the job runs there, by the job itself and by running jobs.
    fn waste(&self, request: &Request, placement: &Placement, occupancy: &Occupancy) -> f64 {
        let Some(newcomer) = occupancy.newcomer(request) else {
            return 0.0;
        };
        newcomer.loss(&mut newcomer.outlook(), placement.nodes())
    }
}
