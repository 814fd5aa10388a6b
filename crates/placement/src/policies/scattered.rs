use topolane_fabric::NodeIndex;

use crate::{Choice, FreeSlots, Occupancy, Policy, Refusal, Request, Traits};

/// Takes one slot from each leaf in turn: the worst case for the network.
#[derive(Debug, Clone, Copy, Default)]
pub struct Scattered;

impl Policy for Scattered {
    fn name(&self) -> &'static str {
        "scattered"
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
        let mut leaves: Vec<std::vec::IntoIter<NodeIndex>> = (0..free.fabric().groups(1))
            .filter(|&leaf| free.count(1, leaf) > 0)
            .map(|leaf| {
                let mut slots = Vec::new();
                free.take(1, leaf, request.nodes, &mut slots);
                slots.into_iter()
            })
            .collect();
        let mut nodes = Vec::with_capacity(request.nodes as usize);
        while nodes.len() < request.nodes as usize {
            let left = request.nodes as usize - nodes.len();
            nodes.extend(leaves.iter_mut().filter_map(Iterator::next).take(left));
        }
        Ok(Choice::nodes(nodes))
    }
}
