//! How many flows leave each node and arrive there, and at which others they end.

use std::collections::HashMap;

use topolane_fabric::NodeIndex;

/// The flows between nodes, counted.
#[derive(Debug, Default)]
pub struct Conflicts {
    /// Flows that leave every node.
    pub out: Vec<u32>,
    /// Flows that arrive at every node.
    pub into: Vec<u32>,
    /// Of every node that sends, the receivers with the flows to each.
    pub to: HashMap<NodeIndex, HashMap<NodeIndex, u32>>,
    /// Of every node that receives, the senders with the flows from each.
    pub from: HashMap<NodeIndex, HashMap<NodeIndex, u32>>,
}
