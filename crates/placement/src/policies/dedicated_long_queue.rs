use crate::dedicated::equal_parts::{Across, EqualParts};
use crate::dedicated::search::candidates::Candidates;
use crate::dedicated::search::cost::{Weights, waste};
use crate::policies::Dedicated;
use crate::{
    Choice, DedicatesLinks, FreeSlots, Occupancy, Placement, Policy, QueueRule, Refusal, Request,
    RoomHelps, Traits,
};

/// [`Dedicated`] for long queues: every job gets equal parts, as from [`Jigsaw`](crate::policies::Jigsaw).
///
/// In a long queue there is always a job that fits in equal parts; other shapes leave fragments that wide jobs cannot use. A job
/// that accepts less than full bandwidth gets any shape, and so does a job on an empty machine.
#[derive(Debug, Default)]
pub struct DedicatedInLongQueue {
    any_shape: Dedicated,
}

impl DedicatedInLongQueue {
    /// The rule with other weights for the jobs that get any shape.
    pub fn with_weights(weights: Weights) -> Self {
        DedicatedInLongQueue { any_shape: Dedicated::of_any_length(weights) }
    }
}

impl Policy for DedicatedInLongQueue {
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
        if request.min_bandwidth.is_some_and(|least| least < 1.0) {
            return self.any_shape.choose(request, free, occupancy);
        }
        let own = &free.unshared(request, occupancy);
        let candidates = Candidates::new(request, own, occupancy, Weights::default(), 1.0);
        match EqualParts::new(&candidates).plan(Across::WholeLeaves) {
            Some(plan) => Ok(Choice { bandwidth_share: 1.0, ..plan.choice(&candidates, own) }),
            // A job that has no equal parts at all would wait as long as the queue is long.
            None if occupancy.idle_nodes() == occupancy.in_service().count() => {
                self.any_shape.choose(request, free, occupancy)
            }
            None => Err(Refusal::would_share(request, own)),
        }
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
    fn waste(&self, _: &Request, placement: &Placement, occupancy: &Occupancy) -> f64 {
        waste(&self.any_shape.weights, placement, occupancy)
    }
}
