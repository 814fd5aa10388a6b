use topolane_fabric::NodeSet;

use crate::{Choice, FreeSlots, Occupancy, Policy, Refusal, Request, Traits};

/// Takes the nodes on which the job ran according to a log: a baseline of what really happened.
#[derive(Debug, Clone, Copy, Default)]
pub struct Recorded;

impl Policy for Recorded {
    fn name(&self) -> &'static str {
        "recorded"
    }

    fn traits(&self) -> Traits {
        Traits::NONE
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        _: &Occupancy,
    ) -> Result<Choice, Refusal> {
        let wanted = request.nodes;
        let Some(nodes) = &request.recorded else {
            return Err(Refusal::Never { wanted, most: 0 });
        };
        // A list that names a node twice, or too few or too many nodes, gives no placement.
        let named = NodeSet::of(free.fabric().nodes(), nodes.iter().copied()).count();
        if named != wanted || nodes.len() as u32 != wanted {
            return Err(Refusal::Never { wanted, most: named });
        }
        let free = nodes.iter().filter(|&&node| free.contains(node)).count();
        if free < nodes.len() {
            return Err(Refusal::NotNow { wanted, free: free as u32 });
        }
        Ok(Choice::nodes(nodes.to_vec()))
    }
}
