//! Policies for jobs that take parts of GPU nodes: they keep the remaining GPUs useful for later jobs.

mod best_fit;
mod gradient;
mod state;

use std::cmp::Ordering;

use topolane_fabric::NodeIndex;

pub use best_fit::BestFit;
pub use gradient::Gradient;

use crate::{Choice, FreeSlots, GpuSet, Request};

/// The cost of giving a node the next slot. The node of lowest cost wins; among equals the one of lowest index.
#[derive(Debug, Clone, Copy)]
struct Cost {
    first: f64,
    /// Decides if `first` is equal.
    second: f64,
    /// The GPUs of the slot; empty if the occupancy chooses them.
    gpus: GpuSet,
}

impl Cost {
    /// Rounds `first`, so that costs that differ only by rounding errors are equal.
    fn new(first: f64, second: f64, gpus: GpuSet) -> Self {
        const STEPS: f64 = 1e6;
        Cost { first: (first * STEPS).round() / STEPS, second, gpus }
    }

    fn compare(&self, other: &Cost) -> Ordering {
        self.first.total_cmp(&other.first).then(self.second.total_cmp(&other.second))
    }
}

/// Chooses the cheapest nodes. Further slots on a node are assumed to cost as much as the first.
fn cheapest(request: &Request, free: &FreeSlots<'_>, cost: impl Fn(NodeIndex) -> Cost) -> Choice {
    let wanted = request.nodes as usize;
    if wanted == 1 {
        let costs = free.nodes().map(|node| (cost(node), node));
        let Some((cost, node)) = costs.min_by(|a, b| a.0.compare(&b.0)) else {
            return Choice::nodes(Vec::new());
        };
        let gpus = if cost.gpus.is_empty() { Vec::new() } else { vec![cost.gpus] };
        return Choice { gpus, ..Choice::nodes(vec![node]) };
    }
    let mut costs: Vec<(Cost, NodeIndex)> = free.nodes().map(|node| (cost(node), node)).collect();
    costs.sort_unstable_by(|a, b| a.0.compare(&b.0).then(a.1.cmp(&b.1)));
    let mut nodes = Vec::with_capacity(wanted);
    for (_, node) in costs {
        let slots = (free.count(0, node) as usize).min(wanted - nodes.len());
        nodes.extend(std::iter::repeat_n(node, slots));
        if nodes.len() == wanted {
            break;
        }
    }
    nodes.sort_unstable();
    Choice::nodes(nodes)
}
