use topolane_fabric::NodeIndex;

use crate::{Occupancy, Policy, Refusal, Request, Room};

/// The free nodes of lowest index: blind to the network.
#[derive(Debug, Clone, Copy, Default)]
pub struct FirstFit;

impl Policy for FirstFit {
    fn name(&self) -> &'static str {
        "first-fit"
    }

    fn choose(
        &self,
        request: &Request,
        room: &Room<'_>,
        _: &Occupancy,
    ) -> Result<Vec<NodeIndex>, Refusal> {
        let mut nodes = Vec::with_capacity(request.nodes as usize);
        let top = room.fabric().depth();
        for site in 0..room.fabric().sites() {
            let left = request.nodes - nodes.len() as u32;
            room.take(top, site, left, &mut nodes);
        }
        Ok(nodes)
    }

    fn count_only(&self) -> bool {
        true
    }
}
