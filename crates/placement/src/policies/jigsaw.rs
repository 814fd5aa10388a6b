use topolane_fabric::{Fabric, NodeIndex};

use crate::owned::{Across, Board, Even, Limit, limits, own_room};
use crate::{Choice, Looking, Obstacle, Occupancy, Policy, Refusal, Request, Room};

/// Dedicated links by equal parts, rebuilt from what is published of Jigsaw (HPDC'21;
/// docs/explanation/isolation-at-full-load.md says what is
/// reconstructed): as many nodes on each leaf as common uplinks, as many leaves in each pod as common links to the core
/// in each plane, one leaf and one pod smaller, on a part of the same links.
///
/// Choice: the first such partition, most nodes on a leaf first, then most leaves in a pod, then by index.
#[derive(Debug, Clone, Copy, Default)]
pub struct Jigsaw {
    /// Whether jobs over several pods may take part of a leaf; as published they take whole leaves and one rest.
    pub relaxed: bool,
}

impl Policy for Jigsaw {
    fn name(&self) -> &'static str {
        if self.relaxed { "jigsaw-relaxed" } else { "jigsaw" }
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
        let room = &own_room(request, room, occupancy);
        let board = Board::new(request, room, occupancy, 1.0);
        let across = if self.relaxed { Across::AnyLeaves } else { Across::WholeLeaves };
        let plan = Even::new(&board).plan(across);
        let plan = plan.ok_or_else(|| Refusal::would_share(request, room))?;
        Ok(Choice { phi: 1.0, ..plan.choice(&board, room) })
    }

    fn obstacles(&self, looking: &Looking<'_>) -> (usize, Vec<Obstacle>) {
        (looking.occupancy.fabric().depth(), looking.owned_uplinks())
    }

    fn by_shape(&self) -> bool {
        true
    }

    fn isolates(&self) -> bool {
        true
    }

    fn limits(&self, fabric: &Fabric) -> Vec<Limit> {
        limits(fabric)
    }
}
