//! Interfaces shared by several flows: who sends and receives where, and what each model makes
//! of it.

use std::collections::HashMap;
use std::sync::Arc;

use topolane_fabric::{Fabric, NodeIndex, Penalty};

use super::conflicts::Conflicts;
use super::per_node::NodeRule;
use super::{ethernet, infiniband};
use crate::flows::Flows;

/// A flow between nodes gets what it gets alone, divided by its penalty: the greater of that at
/// its sender's interface and that at its receiver's, by the models of the two nodes' kinds. Flows
/// inside a node are not limited.
#[derive(Debug)]
pub struct Interfaces {
    fabric: Arc<Fabric>,
    /// The model of all nodes; `None` where each node's kind says it.
    all: Option<Penalty>,
    conflicts: Conflicts,
}

impl Interfaces {
    /// No flow anywhere; `all`, if given, takes the place of what the nodes' kinds say.
    pub fn new(fabric: Arc<Fabric>, all: Option<Penalty>) -> Self {
        let none = vec![0; fabric.nodes() as usize];
        let conflicts = Conflicts { out: none.clone(), into: none, ..Conflicts::default() };
        Interfaces { fabric, all, conflicts }
    }

    fn model(&self, node: NodeIndex) -> Penalty {
        self.all.unwrap_or(self.fabric.kind(node).penalty)
    }

    /// How many times less than alone a flow between two nodes gets; at least 1.
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
