use topolane_fabric::{Fabric, NodeIndex};

use crate::owned::{Across, Board, Even, Limit, limits, own_room, waste};
use crate::policies::Owned;
use crate::{Choice, Looking, Obstacle, Occupancy, Placement, Policy, Refusal, Request, Room};

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

    fn choose(
        &self,
        request: &Request,
        room: &Room<'_>,
        occupancy: &Occupancy,
    ) -> Result<Vec<NodeIndex>, Refusal> {
        self.choose_links(request, room, occupancy).map(|choice| choice.nodes)
    }

    fn choose_links(
        &self,
        request: &Request,
        room: &Room<'_>,
        occupancy: &Occupancy,
    ) -> Result<Choice, Refusal> {
        if request.phi.is_some_and(|phi| phi < 1.0) {
            return self.any_shape.choose_links(request, room, occupancy);
        }
        let own = &own_room(request, room, occupancy);
        let board = Board::new(request, own, occupancy, 1.0);
        match Even::new(&board).plan(Across::WholeLeaves) {
            Some(plan) => Ok(Choice { phi: 1.0, ..plan.choice(&board, own) }),
            // Who cannot be laid out in equal parts at all would wait as long as there are many.
            None if occupancy.idle_nodes() == occupancy.in_service().count() => {
                self.any_shape.choose_links(request, room, occupancy)
            }
            None => Err(Refusal::would_share(request, own)),
        }
    }

    fn waste(&self, _: &Request, placement: &Placement, occupancy: &Occupancy) -> f64 {
        waste(placement, occupancy)
    }

    fn obstacles(&self, looking: &Looking<'_>) -> (usize, Vec<Obstacle>) {
        (looking.occupancy.fabric().depth(), looking.owned_uplinks())
    }

    fn by_shape(&self) -> bool {
        true
    }

    fn searches(&self) -> (u64, u64) {
        self.any_shape.searches()
    }

    fn isolates(&self) -> bool {
        true
    }

    fn limits(&self, fabric: &Fabric) -> Vec<Limit> {
        limits(fabric)
    }
}
