//! What a request was given.

use std::sync::Arc;

use topolane_fabric::{CableId, Fabric, NodeIndex};

use crate::placement::Placement;
use crate::quality::Quality;
use crate::request::Request;

/// One decision: all that a driver carries out and writes down, so that it need not ask again.
#[derive(Debug, Clone)]
pub struct Decision {
    /// The request.
    pub request: Box<Request>,
    /// What it was given.
    pub placement: Arc<Placement>,
}

impl Decision {
    /// The identity of the request.
    pub fn id(&self) -> u64 {
        self.request.id
    }

    /// The nodes in rank order, once per slot.
    pub fn nodes(&self) -> &[NodeIndex] {
        self.placement.nodes()
    }

    /// The cables between switches that no other job uses, ascending; none for a policy that gives none.
    pub fn links(&self) -> &[CableId] {
        self.placement.links()
    }

    /// The share of full bandwidth on these links.
    pub fn bandwidth_share(&self) -> f64 {
        self.placement.bandwidth_share()
    }

    /// Nodes that the job holds and does not use.
    pub fn spare(&self) -> &[NodeIndex] {
        self.placement.spare()
    }

    /// The hops between the nodes: computed when asked for, since a simulator rarely asks.
    pub fn hops(&self, fabric: &Fabric) -> Quality {
        Quality::of(fabric, self.nodes())
    }
}
