//! Starts a job on the nodes that a scheduler has found for it.

use std::sync::Arc;

use topolane_fabric::NodeSet;
use topolane_placement::{Placement, Refusal, Request};

use super::Slurm;
use super::jobs::Turn;
use crate::view::View;

impl Slurm {
    /// Places a job on some of these nodes and starts it.
    pub(super) fn start(
        &mut self,
        view: &mut View<'_>,
        turn: &Turn<'_>,
        nodes: NodeSet,
    ) -> Result<(), Refusal> {
        let request = limited(turn.request, nodes);
        let placement = view.policy.place(&request, view.occupancy)?;
        let free = view.occupancy.idle_nodes();
        if self.start_on(view, turn, placement) {
            return Ok(());
        }
        Err(Refusal::NotNow { wanted: request.nodes, free })
    }

    /// Starts a job that the policy has just placed. Returns false if it cannot. A job that never starts is not
    /// started.
    pub(super) fn start_on(
        &mut self,
        view: &mut View<'_>,
        turn: &Turn<'_>,
        placement: Placement,
    ) -> bool {
        let Some(index) = turn.index else { return true };
        let placement = Arc::new(placement);
        if !view.start(index, Arc::clone(&placement)) {
            return false;
        }
        self.note_start(turn.request, placement.nodes(), view.now);
        true
    }
}

/// Returns the request, restricted to these nodes.
pub(super) fn limited(request: &Request, mut nodes: NodeSet) -> Request {
    if let Some(eligible) = &request.eligible {
        nodes.intersect(eligible);
    }
    Request { eligible: Some(Arc::new(nodes)), ..request.clone() }
}
