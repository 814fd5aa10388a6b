//! Counts the flows that leave each node and arrive there, with the node at the other end.

use std::collections::HashMap;

use topolane_fabric::NodeIndex;

/// Counts of the flows between nodes.
#[derive(Debug, Default)]
pub struct Conflicts {
    /// The number of flows that leave each node.
    pub out: Vec<u32>,
    /// The number of flows that arrive at each node.
    pub into: Vec<u32>,
    /// For every sending node, its receivers and the number of flows to each.
    pub to: HashMap<NodeIndex, HashMap<NodeIndex, u32>>,
    /// For every receiving node, its senders and the number of flows from each.
    pub from: HashMap<NodeIndex, HashMap<NodeIndex, u32>>,
}
