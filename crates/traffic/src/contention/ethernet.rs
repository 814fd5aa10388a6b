//! TCP over Gigabit Ethernet: flows that share an interface, the busiest of them losing to the
//! others.
//!
//! J. Vienne, M. Martinasso, J.-M. Vincent, J.-F. Mehaut, Predictive models for bandwidth sharing in
//! high performance clusters, Cluster 2008, pages 286-291; the factors there are beta 0.75, gamma
//! out 0.115, gamma in 0.036. Formulas and factors are as the authors of this file know them: the
//! text itself was not at hand to check them against (docs/explanation/rank-k.md).

use std::collections::HashMap;

use topolane_fabric::NodeIndex;

use super::conflicts::Conflicts;

/// Among n flows out of a node, m of which go to the receivers with most arriving flows:
/// n beta (1 + gamma (n - m)) for those m, n beta (1 - gamma m) for the others; 1 if n = 1.
pub fn at_sender(
    conflicts: &Conflicts,
    (from, to): (NodeIndex, NodeIndex),
    beta: f64,
    gamma: f64,
) -> f64 {
    let flows = conflicts.out[from as usize];
    shared(flows, conflicts.to.get(&from), &conflicts.into, to, beta, gamma)
}

/// The same at the receiver: among n flows into a node, m of which come from the senders with most
/// leaving flows.
pub fn at_receiver(
    conflicts: &Conflicts,
    (from, to): (NodeIndex, NodeIndex),
    beta: f64,
    gamma: f64,
) -> f64 {
    let flows = conflicts.into[to as usize];
    shared(flows, conflicts.from.get(&to), &conflicts.out, from, beta, gamma)
}

/// `others` are the far ends with the flows to each, `degree` the flows at every far end.
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
