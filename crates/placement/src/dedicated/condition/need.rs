//! The number of links that the condition of docs/explanation/dedicated-links.md requires.

use topolane_fabric::Fabric;

/// The links that one request needs on one machine.
#[derive(Debug, Clone, Copy)]
pub struct Need {
    /// The number of nodes of the job.
    pub total: u32,
    /// Uplinks that a leaf needs for each flow that leaves it.
    per_flow: f64,
    /// Uplinks that a pod needs for each flow that leaves it.
    per_flow_of_pod: f64,
}

/// Absorbs rounding errors, so that a share that is a whole number in theory does not round up to the next one.
const SLACK: f64 = 1e-9;

impl Need {
    /// Returns the needs of a job of `total` nodes that accepts the share `bandwidth_share` of the bandwidth that the
    /// tree gives each node.
    pub fn new(fabric: &Fabric, total: u32, bandwidth_share: f64) -> Self {
        let share =
            |level| if level < fabric.depth() { fabric.uplinks_per_node(level) } else { 0.0 };
        Need {
            total,
            per_flow: bandwidth_share * share(1),
            per_flow_of_pod: bandwidth_share * share(2),
        }
    }

    /// The largest number of flows that can leave a set of `nodes` nodes in any permutation.
    pub fn flows(&self, nodes: u32) -> u32 {
        nodes.min(self.total - nodes.min(self.total))
    }

    /// Uplink slots that a leaf with `nodes` nodes of the job needs.
    pub fn slots(&self, nodes: u32) -> u32 {
        whole(f64::from(self.flows(nodes)) * self.per_flow - SLACK)
    }

    /// Uplink slots that the remainder needs if its leaves hold `nodes` nodes together.
    pub fn remainder(&self, nodes: u32) -> u32 {
        whole(f64::from(nodes) * self.per_flow - SLACK)
    }

    /// The largest number of nodes for which `slots` uplink slots suffice, if these nodes are at most half of the job.
    pub fn nodes(&self, slots: u32) -> u32 {
        if self.per_flow == 0.0 {
            u32::MAX
        } else {
            (f64::from(slots) / self.per_flow + SLACK) as u32
        }
    }

    /// Links that a pod needs in one plane if `leaves` of its leaves own the plane.
    pub fn links(&self, leaves: u32) -> u32 {
        if self.per_flow == 0.0 {
            return 0;
        }
        whole(f64::from(leaves) * self.per_flow_of_pod / self.per_flow - SLACK)
    }

    /// The largest number of leaves for which `links` links in a plane suffice.
    pub fn leaves(&self, links: u32) -> u32 {
        if self.per_flow_of_pod == 0.0 {
            return u32::MAX;
        }
        (f64::from(links) * self.per_flow / self.per_flow_of_pod + SLACK) as u32
    }

    /// Links to the core that a pod with `nodes` nodes needs in each of `slots` planes.
    pub fn core(&self, nodes: u32, slots: u32) -> u32 {
        whole(f64::from(self.flows(nodes)) * self.per_flow_of_pod / f64::from(slots) - SLACK)
    }

    /// Uplink slots that the flows from `nodes` nodes occupy in each of `slots` planes.
    pub fn spread(&self, nodes: u32, slots: u32) -> u32 {
        whole(f64::from(nodes) * self.per_flow / f64::from(slots) - SLACK)
    }

    /// The share of bandwidth that `nodes` nodes in a pod get from `links` links in each of `slots` planes.
    pub fn share_of_pod(&self, nodes: u32, links: u32, slots: u32) -> f64 {
        f64::from(links * slots) / (f64::from(self.flows(nodes)) * self.per_flow_of_pod)
    }

    /// The largest number of nodes in a pod for which `core` links in each of `slots` planes suffice, if these nodes
    /// are at most half of the job.
    pub fn nodes_of_pod(&self, core: u32, slots: u32) -> u32 {
        if self.per_flow_of_pod == 0.0 {
            u32::MAX
        } else {
            (f64::from(core * slots) / self.per_flow_of_pod + SLACK) as u32
        }
    }
}

/// Rounds up to a whole number. `f64::ceil` is a slow call on processors without a rounding instruction.
fn whole(number: f64) -> u32 {
    let below = number as u32;
    below.saturating_add(u32::from(f64::from(below) < number))
}
