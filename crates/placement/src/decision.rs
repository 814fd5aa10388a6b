//! What a request was given.

use std::collections::HashMap;
use std::sync::Arc;

use topolane_fabric::{BlockIndex, CableId, Fabric, NodeIndex};

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

    /// The nodes of each segment of the request and the block in which they lie (see [`Fabric::block`]), in rank order. `None` for
    /// a request without segments, and if the nodes cannot be parted so: most rules keep no segments.
    pub fn segments(&self, fabric: &Fabric) -> Option<Vec<(BlockIndex, Vec<NodeIndex>)>> {
        let segment = self.request.segment.filter(|&segment| segment > 0)? as usize;
        // By the first rank of each block, and of every block segment after segment.
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

    /// The hops between the nodes: computed when asked for, since a simulator rarely asks.
    pub fn hops(&self, fabric: &Fabric) -> Quality {
        Quality::of(fabric, self.nodes())
    }
}
