//! The result of a policy: nodes, links and GPUs for one request.

use topolane_fabric::{CableId, NodeIndex};

use crate::gpus::GpuSet;

/// The nodes that a policy chooses, and the uplinks that the job owns.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The nodes in rank order, once per slot.
    pub nodes: Vec<NodeIndex>,
    /// Uplinks that only this request may use; empty if the policy dedicates no links.
    pub links: Vec<CableId>,
    /// The share of full bandwidth that the job has on these links; 1 if it shares none.
    pub bandwidth_share: f64,
    /// Extra nodes that the job holds and does not use, if the policy rounds requests up.
    pub spare: Vec<NodeIndex>,
    /// The GPUs of each slot. If empty, the occupancy chooses them ([`Occupancy::name_gpus`]).
    pub gpus: Vec<GpuSet>,
}

impl Choice {
    /// Returns a choice of nodes without dedicated links.
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
