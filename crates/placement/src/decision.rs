//! A decision: what a request was given, as one value for the driver and its log.

use std::collections::HashMap;
use std::sync::Arc;

use topolane_fabric::{BlockIndex, CableId, Fabric, NodeIndex};

use crate::placement::Placement;
use crate::quality::Quality;
use crate::request::Request;

/// One decision: everything that a driver needs to start the job and to log it, without asking the engine again.
#[derive(Debug, Clone)]
pub struct Decision {
    /// The request.
    pub request: Box<Request>,
    /// The placement of the request.
    pub placement: Arc<Placement>,
}

impl Decision {
    /// The id of the request.
    pub fn id(&self) -> u64 {
        self.request.id
    }

    /// The nodes in rank order, once per slot.
    pub fn nodes(&self) -> &[NodeIndex] {
        self.placement.nodes()
    }

    /// The cables between switches that no other job uses, ascending; empty if the policy dedicates none.
    pub fn links(&self) -> &[CableId] {
        self.placement.links()
    }

    /// The share of full bandwidth on these links.
    pub fn bandwidth_share(&self) -> f64 {
        self.placement.bandwidth_share()
    }

    /// The share of each cable between its groups that other jobs leave to this one, whatever they send; `None` if nothing
    /// is promised, or no message takes a detour.
    pub fn kept_share(&self, fabric: &Fabric) -> Option<f64> {
        self.placement.wired().filter(|links| links.has_promise() && links.spread().is_some())?;
        Some(fabric.wiring().dragonfly()?.detours()?.share)
    }

    /// Nodes that the job holds and does not use.
    pub fn spare(&self) -> &[NodeIndex] {
        self.placement.spare()
    }

    /// The nodes of each segment of the request, in rank order, with the block that holds them (see [`Fabric::block`]).
    /// `None` if the request has no segments or if the nodes cannot be split into them: most policies ignore segments.
    pub fn segments(&self, fabric: &Fabric) -> Option<Vec<(BlockIndex, Vec<NodeIndex>)>> {
        let segment = self.request.segment.filter(|&segment| segment > 0)? as usize;
        // The nodes of each block with their ranks, blocks in order of their first rank.
        let mut blocks: Vec<(BlockIndex, Vec<(usize, NodeIndex)>)> = Vec::new();
        let mut place_of: HashMap<BlockIndex, usize> = HashMap::new();
        for (rank, &node) in self.nodes().iter().enumerate() {
            let block = fabric.block(node);
            let place = *place_of.entry(block).or_insert_with(|| {
                blocks.push((block, Vec::new()));
                blocks.len() - 1
            });
            blocks[place].1.push((rank, node));
        }
        let mut parts: Vec<(usize, BlockIndex, Vec<NodeIndex>)> = Vec::new();
        for (block, slots) in &blocks {
            let part = |slots: &[(usize, NodeIndex)]| {
                (slots[0].0, *block, slots.iter().map(|&(_, node)| node).collect())
            };
            parts.extend(slots.chunks(segment).map(part));
        }
        parts.sort_unstable_by_key(|part| part.0);
        let kept = parts.len() == self.nodes().len().div_ceil(segment);
        kept.then(|| parts.into_iter().map(|(_, block, nodes)| (block, nodes)).collect())
    }

    /// Computes the hops between the nodes. Nothing stores them, because a simulation rarely needs them.
    pub fn hops(&self, fabric: &Fabric) -> Quality {
        Quality::of(fabric, self.nodes())
    }
}
