//! Placements before they have nodes and links.

use std::sync::Arc;

use topolane_fabric::GroupIndex;

use crate::choice::Choice;
use crate::dedicated::search::plan::Plan;
use crate::free_slots::FreeSlots;
use crate::occupancy::Occupancy;
use crate::placement::Placement;

/// Where a policy would place a request in some state, and what that wastes.
#[derive(Debug, Clone)]
pub struct Planned {
    pub(crate) waste: f64,
    pub(crate) place: Place,
}

#[derive(Debug, Clone)]
pub(crate) enum Place {
    Planned(LinkPlan),
    Chosen(Arc<Placement>),
}

impl Planned {
    /// What it takes from later jobs beyond its nodes: [`QueueRule::waste`](crate::QueueRule::waste).
    pub fn waste(&self) -> f64 {
        self.waste
    }
}

/// How many nodes and uplinks a placement has on each leaf and in each pod.
#[derive(Debug, Clone)]
pub struct LinkPlan {
    plan: Plan,
    bandwidth_share: f64,
}

impl LinkPlan {
    /// A plan, and the share of full bandwidth on its links.
    pub(crate) fn new(mut plan: Plan, bandwidth_share: f64) -> Self {
        // In order of the leaves and pods, nodes and cables are ascending.
        plan.leaves.sort_unstable_by_key(|&(leaf, ..)| leaf);
        plan.core.sort_unstable_by_key(|&(pod, plane, _)| (pod, plane));
        LinkPlan { plan, bandwidth_share }
    }

    /// What it takes of leaves, in order.
    pub(crate) fn leaves(&self) -> &[(GroupIndex, u32, u64)] {
        &self.plan.leaves
    }

    /// The nodes and links.
    pub(crate) fn choice(&self, free: &FreeSlots<'_>, occupancy: &Occupancy) -> Choice {
        Choice { bandwidth_share: self.bandwidth_share, ..self.plan.choice(occupancy, free) }
    }
}
