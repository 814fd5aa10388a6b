//! Sets of nodes to which a policy confines parts of a request.

use topolane_fabric::{DomainIndex, Fabric, GroupIndex, NodeIndex};

use crate::level::Level;

/// A promise about every placement of a request: each whole part of `part` slots lies in one of these sets of nodes.
/// The remaining slots may lie anywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Homes {
    /// Slots of a part; at least 1. A request for `n` slots has `n / part` whole parts.
    pub part: u32,
    /// The nodes of each set. A node may be in several sets.
    pub sets: Vec<Vec<NodeIndex>>,
}

impl Homes {
    /// Returns one set for each group of a level of the tree.
    pub fn groups(fabric: &Fabric, level: usize, part: u32) -> Self {
        let nodes = |group: GroupIndex| fabric.node_range(level, group).collect();
        Homes { part: part.max(1), sets: (0..fabric.groups(level)).map(nodes).collect() }
    }

    /// Returns one set for each domain, and one for the nodes outside all domains.
    pub fn domains(fabric: &Fabric, part: u32) -> Self {
        let domains = 0..fabric.domains();
        let nodes = |domain: DomainIndex| fabric.domain_nodes(domain).to_vec();
        let mut sets: Vec<Vec<NodeIndex>> = domains.map(nodes).collect();
        sets.extend(outside(fabric));
        Homes { part: part.max(1), sets }
    }

    /// Returns one set for each group of a level, or for each domain; `None` if the machine does not have the level.
    pub fn of_level(fabric: &Fabric, level: Level, part: u32) -> Option<Self> {
        level.check(fabric).ok()?;
        Some(match level {
            Level::Domain => Homes::domains(fabric, part),
            Level::Tree(0) => {
                let sets = (0..fabric.nodes()).map(|node| vec![node]).collect();
                Homes { part: part.max(1), sets }
            }
            Level::Tree(level) => Homes::groups(fabric, level.into(), part),
        })
    }

    /// Returns one set for each block ([`Fabric::block`]).
    pub(crate) fn blocks(fabric: &Fabric, part: u32) -> Self {
        let nodes = |block| fabric.block_nodes(block).to_vec();
        Homes { part: part.max(1), sets: (0..fabric.blocks()).map(nodes).collect() }
    }
}

/// The nodes outside all domains; `None` if there are none.
pub(crate) fn outside(fabric: &Fabric) -> Option<Vec<NodeIndex>> {
    let nodes = (0..fabric.nodes()).filter(|&node| fabric.domain(node).is_none());
    Some(nodes.collect()).filter(|nodes: &Vec<NodeIndex>| !nodes.is_empty())
}
