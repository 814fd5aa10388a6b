//! TCP over Gigabit Ethernet: flows share an interface, and those to or from busy nodes lose to the others.
//!
//! J. Vienne, M. Martinasso, J.-M. Vincent, J.-F. Mehaut, Predictive models for bandwidth sharing in high performance
//! clusters, Cluster 2008, pages 286-291; the factors there are beta 0.75, gamma out 0.115, gamma in 0.036. The
//! formulas and factors were not checked against the text of the paper, which was not available
//! (docs/explanation/rank-k.md).

use std::collections::HashMap;

use topolane_fabric::NodeIndex;

use super::conflicts::Conflicts;

/// The penalty at the sender. Of n flows out of a node, m go to the receivers with most arriving flows. It is n beta (1
/// + gamma (n - m)) for these m flows, n beta (1 - gamma m) for the others, and 1 if n = 1.
pub fn at_sender(
    conflicts: &Conflicts,
    (from, to): (NodeIndex, NodeIndex),
    beta: f64,
    gamma: f64,
) -> f64 {
    let flows = conflicts.out[from as usize];
    shared(flows, conflicts.to.get(&from), &conflicts.into, to, beta, gamma)
}

/// The penalty at the receiver, by the same formula: of n flows into a node, m come from the senders with most leaving
/// flows.
pub fn at_receiver(
    conflicts: &Conflicts,
    (from, to): (NodeIndex, NodeIndex),
    beta: f64,
    gamma: f64,
) -> f64 {
    let flows = conflicts.into[to as usize];
    shared(flows, conflicts.from.get(&to), &conflicts.out, from, beta, gamma)
}

/// `others` has the nodes at the far ends and the flows to each; `degree` is the number of flows at every node.
fn shared(
    flows: u32,
    others: Option<&HashMap<NodeIndex, u32>>,
    degree: &[u32],
    far: NodeIndex,
    beta: f64,
    gamma: f64,
) -> f64 {
    let Some(others) = others.filter(|_| flows > 1) else { return 1.0 };
    let most = others.keys().map(|&node| degree[node as usize]).max().unwrap_or_default();
    let at_most = |node: NodeIndex| degree[node as usize] == most;
    let slow: u32 =
        others.iter().filter(|&(&node, _)| at_most(node)).map(|(_, &flows)| flows).sum();
    let (flows, slow) = (f64::from(flows), f64::from(slow));
    let share = if at_most(far) { 1.0 + gamma * (flows - slow) } else { 1.0 - gamma * slow };
    (flows * beta * share).max(1.0)
}
