use topolane_fabric::Fabric;

use crate::owned::{Across, Board, Even, Limit, limits, waste};
use crate::policies::Owned;
use crate::{
    Choice, DedicatesLinks, FreeSlots, Looking, Obstacle, Occupancy, Placement, Policy, QueueRule,
    Refusal, Request, Traits,
};

/// [`Owned`] where many wait: equal parts for everybody, as [`Jigsaw`](crate::policies::Jigsaw) gives them.
///
/// Among many there is always somebody whom equal parts fit; other shapes leave behind what wide jobs cannot use. Jobs that
/// accept less than full bandwidth have any shape, and so has a job on a machine that nobody else is on.
#[derive(Debug, Default)]
pub struct OwnedAmongMany {
    any_shape: Owned,
}

impl Policy for OwnedAmongMany {
    fn name(&self) -> &'static str {
        "dedicated"
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
        if request.min_bandwidth.is_some_and(|bandwidth_share| bandwidth_share < 1.0) {
            return self.any_shape.choose(request, free, occupancy);
        }
        let own = &free.unshared(request, occupancy);
        let board = Board::new(request, own, occupancy, 1.0);
        match Even::new(&board).plan(Across::WholeLeaves) {
            Some(plan) => Ok(Choice { bandwidth_share: 1.0, ..plan.choice(&board, own) }),
            // Who cannot be laid out in equal parts at all would wait as long as there are many.
            None if occupancy.idle_nodes() == occupancy.in_service().count() => {
                self.any_shape.choose(request, free, occupancy)
            }
            None => Err(Refusal::would_share(request, own)),
        }
    }

    fn obstacles(&self, looking: &Looking<'_>) -> (usize, Vec<Obstacle>) {
        (looking.occupancy.fabric().depth(), looking.owned_uplinks())
    }

    fn dedicates_links(&self) -> Option<&dyn DedicatesLinks> {
        Some(self)
    }

    fn queue_rule(&self) -> Option<&dyn QueueRule> {
        Some(self)
    }
}

impl DedicatesLinks for OwnedAmongMany {
    fn limits(&self, fabric: &Fabric) -> Vec<Limit> {
        limits(fabric)
    }

    fn searches(&self) -> (u64, u64) {
        self.any_shape.searches()
    }
}

impl QueueRule for OwnedAmongMany {
    fn waste(&self, placement: &Placement, occupancy: &Occupancy) -> f64 {
        waste(placement, occupancy)
    }
}
