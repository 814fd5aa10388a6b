use topolane_fabric::NodeIndex;

use crate::loads::{Load, Loads};
use crate::{Occupancy, Policy, Refusal, Request, Room};

/// As many members as can be apart at every level of the tree, those already running counted: for
/// groups that must survive the loss of a leaf or a pod. The opposite of hop-bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spread;

impl Policy for Spread {
    fn name(&self) -> &'static str {
        "spread"
    }

    fn choose(
        &self,
        request: &Request,
        room: &Room<'_>,
        _: &Occupancy,
    ) -> Result<Vec<NodeIndex>, Refusal> {
        let nodes = Loads::new(request, room, &together).nodes();
        nodes.ok_or_else(|| Refusal::would_share(request, room))
    }

    fn costs(
        &self,
        request: &Request,
        room: &Room<'_>,
        _: &Occupancy,
    ) -> Result<Vec<f64>, Refusal> {
        let costs = Loads::new(request, room, &together).costs();
        costs.ok_or_else(|| Refusal::would_share(request, room))
    }

    fn count_only(&self) -> bool {
        true
    }
}

/// Pairs of members in one group.
fn together(load: Load) -> u64 {
    load.inside * load.inside
}
