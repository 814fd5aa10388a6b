//! What a policy chooses.

use topolane_fabric::{CableId, NodeIndex};

use crate::gpus::GpuSet;

/// The nodes that a policy chooses, and the uplinks that come with them.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The nodes, once per slot and in rank order.
    pub nodes: Vec<NodeIndex>,
    /// Uplinks that only this request may use; none from a rule that dedicates none.
    pub links: Vec<CableId>,
    /// The share of full bandwidth on them; 1 where there is nothing to share.
    pub bandwidth_share: f64,
    /// Nodes that are held with those and not used, from a rule that gives more than was asked for.
    pub spare: Vec<NodeIndex>,
    /// The GPUs of each slot; empty for those of the state's own rule ([`Occupancy::name_gpus`]).
    pub gpus: Vec<GpuSet>,
}

impl Choice {
    /// Nodes without links of their own.
    pub fn nodes(nodes: Vec<NodeIndex>) -> Self {
        Choice {
            nodes,
            links: Vec::new(),
            bandwidth_share: 1.0,
            spare: Vec::new(),
            gpus: Vec::new(),
        }
    }
}
