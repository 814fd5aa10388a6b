//! A leaf as the search sees it, and what it costs to take nodes of it.

use topolane_fabric::GroupIndex;

/// A leaf with free slots.
#[derive(Debug, Clone, Copy)]
pub struct Leaf {
    pub leaf: GroupIndex,
    pub pod: GroupIndex,
    /// Nodes of it that the request may have.
    pub idle: u32,
    /// Its free uplink slots.
    pub slots: u64,
    /// Whether it is as it would be on the empty machine.
    pub untouched: bool,
}

/// The weights of the cost, in nodes.
#[derive(Debug, Clone, Copy)]
pub struct Weights {
    /// Of breaking into a leaf that no job has touched.
    pub untouched_leaf: f64,
    /// Of each free node that is left on a leaf.
    pub left_over_node: f64,
    /// Of each uplink to the core that the job owns and no flow needs.
    pub core_link: f64,
    /// Of each pod that the job is in.
    pub pod: f64,
}

/// The weights of the policy. docs/explanation/dedicated-links.md ("The weights of the cost") has what others give, measured
/// by `cargo run --release -p topolane-simulator --example cost_weights`.
impl Default for Weights {
    fn default() -> Self {
        Weights { untouched_leaf: 4.0, left_over_node: 0.02, core_link: 0.3, pod: 2.0 }
    }
}

impl Weights {
    /// What it costs to take `nodes` nodes and `slots` uplink slots of a leaf: by how much more than the nodes taken it cuts what jobs
    /// over several leaves may have there, the free nodes that have slots.
    pub fn cost(&self, leaf: &Leaf, nodes: u32, slots: u32) -> f64 {
        let free = leaf.slots.count_ones();
        let usable = |idle: u32, free: u32| f64::from(idle.min(free));
        let lost = usable(leaf.idle, free) - usable(leaf.idle - nodes, free.saturating_sub(slots));
        let left = leaf.idle - nodes;
        let broken = if leaf.untouched && left > 0 { self.untouched_leaf } else { 0.0 };
        lost - f64::from(nodes) + broken + self.left_over_node * f64::from(left)
    }
}
