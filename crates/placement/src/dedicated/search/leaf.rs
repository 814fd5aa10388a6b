//! A leaf as the search sees it, and the cost of taking nodes there.

use topolane_fabric::GroupIndex;

/// A leaf with free slots.
#[derive(Debug, Clone, Copy)]
pub struct Leaf {
    pub leaf: GroupIndex,
    pub pod: GroupIndex,
    /// Free nodes that the request may use.
    pub idle: u32,
    /// Free uplink slots of the leaf.
    pub slots: u64,
    /// Whether no job has taken nodes or uplinks of the leaf.
    pub untouched: bool,
}

/// The weights of the cost, in units of one node.
#[derive(Debug, Clone, Copy)]
pub struct Weights {
    /// Cost of using a leaf that no job has touched.
    pub untouched_leaf: f64,
    /// Cost of each free node that is left on a used leaf.
    pub left_over_node: f64,
    /// Cost of each uplink to the core that the job owns and no flow needs.
    pub core_link: f64,
    /// Cost of each pod that the job uses.
    pub pod: f64,
}

/// The weights of the policy. docs/explanation/dedicated-links.md ("The weights of the cost") compares others, measured
/// by `cargo run --release -p topolane-simulator --example cost_weights`.
impl Default for Weights {
    fn default() -> Self {
        Weights { untouched_leaf: 4.0, left_over_node: 0.02, core_link: 0.3, pod: 2.0 }
    }
}

impl Weights {
    /// The cost of taking `nodes` nodes and `slots` uplink slots of a leaf. Jobs over several leaves can use only free
    /// nodes that also have a free slot; the cost is the number of such nodes lost in addition to the nodes taken, plus
    /// the weights.
    pub fn cost(&self, leaf: &Leaf, nodes: u32, slots: u32) -> f64 {
        let free = leaf.slots.count_ones();
        let usable = |idle: u32, free: u32| f64::from(idle.min(free));
        let lost = usable(leaf.idle, free) - usable(leaf.idle - nodes, free.saturating_sub(slots));
        let left = leaf.idle - nodes;
        let broken = if leaf.untouched && left > 0 { self.untouched_leaf } else { 0.0 };
        lost - f64::from(nodes) + broken + self.left_over_node * f64::from(left)
    }
}
