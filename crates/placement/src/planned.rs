//! Plans: placements before nodes and links are chosen.

use std::sync::Arc;

use topolane_fabric::GroupIndex;

use crate::choice::Choice;
use crate::dedicated::search::plan::DedicatedPlan;
use crate::free_slots::FreeSlots;
use crate::occupancy::Occupancy;
use crate::placement::Placement;

/// Where a policy would place a request in some state, and the waste.
#[derive(Debug, Clone)]
pub struct Planned {
    pub(crate) waste: f64,
    pub(crate) place: PlannedPlace,
}

#[derive(Debug, Clone)]
pub(crate) enum PlannedPlace {
    Planned(LinkPlan),
    Chosen(Arc<Placement>),
}

impl Planned {
    /// What the plan takes from later jobs in addition to its nodes: [`QueueRule::waste`](crate::QueueRule::waste).
    pub fn waste(&self) -> f64 {
        self.waste
    }
}

/// The number of nodes and the uplinks that a placement takes on each leaf and in each pod.
#[derive(Debug, Clone)]
pub struct LinkPlan {
    plan: DedicatedPlan,
    bandwidth_share: f64,
}

impl LinkPlan {
    /// Returns a plan with the share of full bandwidth on its links.
    pub(crate) fn new(mut plan: DedicatedPlan, bandwidth_share: f64) -> Self {
        // Sorted leaves and pods give nodes and cables in ascending order.
        plan.leaves.sort_unstable_by_key(|&(leaf, ..)| leaf);
        plan.core.sort_unstable_by_key(|&(pod, plane, _)| (pod, plane));
        LinkPlan { plan, bandwidth_share }
    }

    /// For each leaf, in order, the nodes and slots that the plan takes.
    pub(crate) fn leaves(&self) -> &[(GroupIndex, u32, u64)] {
        &self.plan.leaves
    }

    /// Chooses the nodes and links of the plan.
    pub(crate) fn choice(&self, free: &FreeSlots<'_>, occupancy: &Occupancy) -> Choice {
        Choice { bandwidth_share: self.bandwidth_share, ..self.plan.choice(occupancy, free) }
    }
}
