use crate::apart::choice_apart;
use crate::promise::Promise;
use crate::{
    BetweenGroups, Choice, FreeSlots, Looking, Obstacle, Occupancy, Policy, Refusal, Request,
    RoomHelps, Traits, Wirings,
};

/// On a dragonfly, no cable between groups carries traffic of two jobs under minimal routing. Jobs may share links
/// inside a group.
///
/// A job lies on one router if possible, else in as few groups as possible, and of these where the least is left over.
#[derive(Debug, Clone, Copy, Default)]
pub struct IsolatedGlobal;

impl Policy for IsolatedGlobal {
    fn name(&self) -> &'static str {
        "isolated-global"
    }

    fn traits(&self) -> Traits {
        Traits {
            between_groups: BetweenGroups::Apart,
            depends_only_on_size: true,
            room_helps: RoomHelps::Always,
            wirings: Wirings::DRAGONFLY,
            ..Traits::NONE
        }
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<Choice, Refusal> {
        choice_apart(Promise::BetweenGroups, request, free, occupancy)
    }

    fn obstacles(&self, looking: &Looking<'_>) -> (usize, Vec<Obstacle>) {
        (looking.occupancy.fabric().depth(), Vec::new())
    }
}
