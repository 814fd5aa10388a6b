//! InfiniBand: because of flow control by credits, all flows that leave a node wait for its slowest receiver.
//!
//! J. Vienne, Prediction de performances d'applications de calcul haute performance sur reseau `InfiniBand` (thesis,
//! Grenoble 2010), with the three factors as `SimGrid`'s network model IB has them (0.965;0.925;1.35 by default:
//! incoming, outgoing, crowded).

use topolane_fabric::NodeIndex;

use super::conflicts::Conflicts;

/// A receiver is crowded if more flows than this arrive.
const CROWD: u32 = 2;

/// The penalty at the sender of n flows out of the node: 1 if n = 1, otherwise n * outgoing. It is multiplied by
/// crowded if any flow goes to a receiver where more than two arrive.
pub fn at_sender(
    conflicts: &Conflicts,
    (from, _): (NodeIndex, NodeIndex),
    outgoing: f64,
    crowded: f64,
) -> f64 {
    let flows = conflicts.out[from as usize];
    if flows <= 1 {
        return 1.0;
    }
    let receivers = conflicts.to.get(&from).into_iter().flat_map(|to| to.keys());
    let crowd = receivers.into_iter().any(|&to| conflicts.into[to as usize] > CROWD);
    f64::from(flows) * outgoing * if crowd { crowded.max(1.0) } else { 1.0 }
}

/// The penalty at the receiver of a flow that is one of f from the same node, if flows from s nodes arrive: 1 if no
/// other flow arrives, otherwise f * s * incoming.
pub fn at_receiver(
    conflicts: &Conflicts,
    (from, to): (NodeIndex, NodeIndex),
    incoming: f64,
) -> f64 {
    if conflicts.into[to as usize] <= 1 {
        return 1.0;
    }
    let Some(senders) = conflicts.from.get(&to) else { return 1.0 };
    let same = senders.get(&from).copied().unwrap_or(1);
    f64::from(same) * senders.len() as f64 * incoming
}
