use crate::group_costs::{GroupLoad, LeastCosts};
use crate::{Choice, FreeSlots, Occupancy, Policy, Refusal, Request, SlotCosts, Traits};

/// As many members as can be apart at every level of the tree, those already running counted: for
/// groups that must survive the loss of a leaf or a pod. The opposite of hop-bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spread;

impl Policy for Spread {
    fn name(&self) -> &'static str {
        "spread"
    }

    fn traits(&self) -> Traits {
        Traits::COUNT_ONLY
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        _: &Occupancy,
    ) -> Result<Choice, Refusal> {
        let nodes = LeastCosts::new(request, free, &together).nodes();
        nodes.map(Choice::nodes).ok_or_else(|| Refusal::would_share(request, free))
    }

    fn slot_costs(&self) -> Option<&dyn SlotCosts> {
        Some(self)
    }
}

impl SlotCosts for Spread {
    fn costs(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        _: &Occupancy,
    ) -> Result<Vec<f64>, Refusal> {
        let costs = LeastCosts::new(request, free, &together).costs();
        costs.ok_or_else(|| Refusal::would_share(request, free))
    }
}

/// Pairs of members in one group.
fn together(load: GroupLoad) -> u64 {
    load.inside * load.inside
}
