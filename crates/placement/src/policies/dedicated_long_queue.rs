use crate::dedicated::equal_parts::{Across, EqualParts};
use crate::dedicated::search::candidates::Candidates;
use crate::dedicated::search::leaf::Weights;
use crate::placing::chosen;
use crate::policies::Dedicated;
use crate::{
    Choice, DedicatesLinks, FreeSlots, LinkPlan, Occupancy, Placement, PlansFirst, Policy,
    QueueRule, Refusal, Request, RoomHelps, Traits,
};

/// [`Dedicated`] for long queues: every job gets equal parts, as from [`Jigsaw`](crate::policies::Jigsaw).
///
/// In a long queue some job usually fits in equal parts; other shapes leave fragments that wide jobs cannot use. A job
/// that accepts less than full bandwidth may get any shape, and so may a job on an idle machine.
#[derive(Debug, Default)]
pub struct DedicatedInLongQueue {
    any_shape: Dedicated,
}

impl DedicatedInLongQueue {
    /// Returns the policy with other weights for jobs that may get any shape.
    pub fn with_weights(weights: Weights) -> Self {
        DedicatedInLongQueue { any_shape: Dedicated::of_any_length(weights) }
    }
}

impl Policy for DedicatedInLongQueue {
    fn name(&self) -> &'static str {
        "dedicated"
    }

    fn traits(&self) -> Traits {
        self.any_shape.traits()
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<Choice, Refusal> {
        if !free.fabric().wiring().is_tree() {
            return self.any_shape.choose(request, free, occupancy);
        }
        chosen(self, request, free, occupancy)
    }

    fn room_helps(&self, request: &Request) -> RoomHelps {
        self.any_shape.room_helps(request)
    }

    fn dedicates_links(&self) -> Option<&dyn DedicatesLinks> {
        Some(self)
    }

    fn queue_rule(&self) -> Option<&dyn QueueRule> {
        Some(self)
    }
}

impl DedicatesLinks for DedicatedInLongQueue {
    fn searches(&self) -> (u64, u64) {
        self.any_shape.searches()
    }
}

impl QueueRule for DedicatedInLongQueue {
    fn waste(&self, request: &Request, placement: &Placement, occupancy: &Occupancy) -> f64 {
        self.any_shape.waste(request, placement, occupancy)
    }

    fn plans_first(&self) -> Option<&dyn PlansFirst> {
        Some(self)
    }
}

impl PlansFirst for DedicatedInLongQueue {
    fn plan(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Option<LinkPlan> {
        if request.min_bandwidth.is_some_and(|least| least < 1.0) {
            return self.any_shape.plan(request, free, occupancy);
        }
        let candidates = Candidates::new(request, free, occupancy, Weights::default(), 1.0);
        match EqualParts::new(&candidates).plan(Across::WholeLeaves) {
            Some(plan) => Some(LinkPlan::new(plan, 1.0)),
            // A job that never fits in equal parts would otherwise wait until the queue is short.
            None if occupancy.idle_nodes() == occupancy.in_service().count() => {
                self.any_shape.plan(request, free, occupancy)
            }
            None => None,
        }
    }

    fn waste_of_plan(&self, request: &Request, plan: &LinkPlan, occupancy: &Occupancy) -> f64 {
        self.any_shape.waste_of_plan(request, plan, occupancy)
    }
}
