use crate::dedicated::equal_parts::{Across, First};
use crate::{Choice, DedicatesLinks, FreeSlots, Occupancy, Policy, Refusal, Request, Traits};

/// Dedicated links by equal parts, rebuilt from what is published of Jigsaw (HPDC'21;
/// docs/explanation/jigsaw-paper.md says what is reconstructed). Each leaf has as many nodes of the job as
/// common uplinks, and each pod as many leaves as common links to the core in each plane. One leaf and one pod may be
/// smaller and own a part of the same links.
///
/// It takes the first such partition: most nodes on a leaf first, then most leaves in a pod, then the lowest index.
#[derive(Debug, Clone, Copy, Default)]
pub struct Jigsaw {
    /// Whether jobs over several pods may take parts of leaves. The published algorithm takes whole leaves and one
    /// rest.
    pub relaxed: bool,
}

impl Jigsaw {
    fn across(self) -> Across {
        if self.relaxed { Across::AnyLeaves } else { Across::WholeLeaves }
    }
}

impl Policy for Jigsaw {
    fn name(&self) -> &'static str {
        if self.relaxed { "jigsaw-relaxed" } else { "jigsaw" }
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
        let first = First::of(request, free, occupancy, self.across());
        let First { plan, .. } = first.ok_or_else(|| free.would_share_links(request))?;
        Ok(plan.choice(occupancy, free))
    }

    fn has_place(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<(), Refusal> {
        let free = &free.unshared(request, occupancy);
        let first = First::of(request, free, occupancy, self.across());
        first.map(drop).ok_or_else(|| free.would_share_links(request))
    }

    fn dedicates_links(&self) -> Option<&dyn DedicatesLinks> {
        Some(self)
    }
}

impl DedicatesLinks for Jigsaw {}
