//! Placements before they have nodes and links.

use std::sync::Arc;

use topolane_fabric::GroupIndex;

use crate::dedicated::search::plan::Plan;
use crate::free_slots::FreeSlots;
use crate::occupancy::Occupancy;
use crate::placement::Placement;
use crate::policy::{Choice, PlansFirst};
use crate::refusal::Refusal;
use crate::request::Request;

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

/// The plan of a rule, which goes by the slots that jobs on links of their own may use.
pub(crate) fn planned(
    rule: &dyn PlansFirst,
    request: &Request,
    free: &FreeSlots<'_>,
    occupancy: &Occupancy,
) -> Result<LinkPlan, Refusal> {
    let free = &free.unshared(request, occupancy);
    rule.plan(request, free, occupancy).ok_or_else(|| Refusal::would_share(request, free))
}

/// What a rule chooses by its plan.
pub(crate) fn chosen(
    rule: &dyn PlansFirst,
    request: &Request,
    free: &FreeSlots<'_>,
    occupancy: &Occupancy,
) -> Result<Choice, Refusal> {
    let plan = planned(rule, request, free, occupancy)?;
    Ok(plan.choice(&free.unshared(request, occupancy), occupancy))
}
