use topolane_fabric::NodeIndex;

use crate::dedicated::equal_parts::{Across, First};
use crate::dedicated::search::plan::DedicatedPlan;
use crate::{Choice, DedicatesLinks, FreeSlots, Occupancy, Policy, Refusal, Request, Traits};

/// Links as a service (`LaaS`), rebuilt from what is published (docs/explanation/jigsaw-paper.md says what is
/// reconstructed). Inside a pod, each leaf has as many nodes of the job as common uplinks, and one leaf may be smaller.
/// A job over several pods takes whole leaves, the same number in each pod and fewer in one. There it is rounded up: it
/// also holds the unused nodes of its last leaf.
#[derive(Debug, Clone, Copy, Default)]
pub struct Laas;

impl Policy for Laas {
    fn name(&self) -> &'static str {
        "laas"
    }

    fn traits(&self) -> Traits {
        Traits::ISOLATES
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<Choice, Refusal> {
        let free = &free.unshared(request, occupancy);
        let First { plan, is_over_pods } =
            First::of(request, free, occupancy, Across::WholeLeavesOnly)
                .ok_or_else(|| free.would_share_links(request))?;
        let choice = plan.choice(occupancy, free);
        let spare = if is_over_pods { unused(&plan, &choice.nodes, free) } else { Vec::new() };
        Ok(Choice { bandwidth_share: 1.0, spare, ..choice })
    }

    fn has_place(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<(), Refusal> {
        let free = &free.unshared(request, occupancy);
        let first = First::of(request, free, occupancy, Across::WholeLeavesOnly);
        first.map(drop).ok_or_else(|| free.would_share_links(request))
    }

    fn dedicates_links(&self) -> Option<&dyn DedicatesLinks> {
        Some(self)
    }
}

impl DedicatesLinks for Laas {}

/// The nodes on the leaves of a plan that the job does not use, ascending. `nodes` are those that it uses, ascending.
fn unused(plan: &DedicatedPlan, nodes: &[NodeIndex], free: &FreeSlots<'_>) -> Vec<NodeIndex> {
    let mut unused = Vec::new();
    for &(leaf, ..) in &plan.leaves {
        let of_leaf = free.fabric().node_range(1, leaf);
        unused.extend(of_leaf.filter(|node| nodes.binary_search(node).is_err()));
    }
    unused.sort_unstable();
    unused
}
