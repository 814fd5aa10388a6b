use topolane_fabric::{Fabric, NodeIndex};

use crate::owned::{Across, Board, Even, Limit, Plan, limits, own_room, several_pods};
use crate::{Choice, Looking, Obstacle, Occupancy, Policy, Refusal, Request, Room};

/// Links as a service (`LaaS`), rebuilt from what is published
/// (docs/explanation/isolation-at-full-load.md says what is reconstructed): inside a pod as
/// many nodes on each leaf as common uplinks and one smaller leaf; above it whole leaves, as many in each pod and fewer
/// in one. There a job is rounded up to leaves: it holds the nodes of its last leaf that it does not use.
#[derive(Debug, Clone, Copy, Default)]
pub struct Laas;

impl Policy for Laas {
    fn name(&self) -> &'static str {
        "laas"
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
        let even = Even::new(&board);
        if let Some(plan) = even.one_leaf().or_else(|| even.one_pod()) {
            return Ok(Choice { phi: 1.0, ..plan.choice(&board, room) });
        }
        let plan = several_pods(&even, Across::WholeLeavesOnly)
            .ok_or_else(|| Refusal::would_share(request, room))?;
        let choice = plan.choice(&board, room);
        Ok(Choice { phi: 1.0, spare: unused(&plan, &choice.nodes, room), ..choice })
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

/// Nodes of the leaves of a partition that the job does not use, ascending; `nodes` are those that it uses, ascending.
fn unused(plan: &Plan, nodes: &[NodeIndex], room: &Room<'_>) -> Vec<NodeIndex> {
    let mut unused = Vec::new();
    for &(leaf, ..) in &plan.leaves {
        let of_leaf = room.fabric().node_range(1, leaf);
        unused.extend(of_leaf.filter(|node| nodes.binary_search(node).is_err()));
    }
    unused.sort_unstable();
    unused
}
