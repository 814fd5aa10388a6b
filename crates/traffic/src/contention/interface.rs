//! Network interfaces shared by several flows: counts flows at each node and applies the node's penalty model.

use std::collections::HashMap;
use std::sync::Arc;

use topolane_fabric::{Fabric, NodeIndex, Penalty};

use super::conflicts::Conflicts;
use super::per_node::NodeRule;
use super::{ethernet, infiniband};
use crate::flows::Flows;

/// A flow between nodes gets the rate it would have alone, divided by its penalty. The penalty is the greater of those
/// at the sender's and the receiver's interface, by the model of each node's kind. Flows inside a node are not limited.
#[derive(Debug)]
pub struct Interfaces {
    fabric: Arc<Fabric>,
    /// The model for all nodes; `None` to use the model of each node's kind.
    all: Option<Penalty>,
    conflicts: Conflicts,
}

impl Interfaces {
    /// Returns a model without flows. `all`, if given, replaces the models of the node kinds.
    pub fn new(fabric: Arc<Fabric>, all: Option<Penalty>) -> Self {
        let none = vec![0; fabric.nodes() as usize];
        let conflicts = Conflicts { out: none.clone(), into: none, ..Conflicts::default() };
        Interfaces { fabric, all, conflicts }
    }

    fn model(&self, node: NodeIndex) -> Penalty {
        self.all.unwrap_or(self.fabric.kind(node).penalty)
    }

    /// By how much the rate of a flow between two nodes is divided, compared with being alone; at least 1.
    pub fn penalty(&self, ends: (NodeIndex, NodeIndex)) -> f64 {
        let at_sender = match self.model(ends.0) {
            Penalty::Fair {} => 1.0,
            Penalty::InfiniBand { outgoing, crowded, .. } => {
                infiniband::at_sender(&self.conflicts, ends, outgoing, crowded)
            }
            Penalty::Ethernet { beta, gamma_out, .. } => {
                ethernet::at_sender(&self.conflicts, ends, beta, gamma_out)
            }
        };
        let at_receiver = match self.model(ends.1) {
            Penalty::Fair {} => 1.0,
            Penalty::InfiniBand { incoming, .. } => {
                infiniband::at_receiver(&self.conflicts, ends, incoming)
            }
            Penalty::Ethernet { beta, gamma_in, .. } => {
                ethernet::at_receiver(&self.conflicts, ends, beta, gamma_in)
            }
        };
        at_sender.max(at_receiver).max(1.0)
    }
}

impl NodeRule for Interfaces {
    fn name(&self) -> &'static str {
        self.all.map_or("interfaces", |penalty| penalty.name())
    }

    fn count(&mut self, flows: &Flows, present: bool) {
        let Conflicts { out, into, to: receivers, from: senders } = &mut self.conflicts;
        for flow in 0..flows.len() {
            let (from, to) = flows.ends(flow);
            if from != to {
                step(&mut out[from as usize], present);
                step(&mut into[to as usize], present);
                step_pair(receivers, from, to, present);
                step_pair(senders, to, from, present);
            }
        }
    }

    fn rate(&self, (from, to): (NodeIndex, NodeIndex)) -> f64 {
        if from == to {
            return f64::INFINITY;
        }
        let alone = self.fabric.kind(from).lone_flow().min(self.fabric.kind(to).lone_flow());
        alone / self.penalty((from, to))
    }
}

fn step(count: &mut u32, present: bool) {
    *count = if present { *count + 1 } else { *count - 1 };
}

fn step_pair(
    pairs: &mut HashMap<NodeIndex, HashMap<NodeIndex, u32>>,
    at: NodeIndex,
    other: NodeIndex,
    present: bool,
) {
    let others = pairs.entry(at).or_default();
    let count = others.entry(other).or_default();
    step(count, present);
    if *count == 0 {
        others.remove(&other);
    }
}
