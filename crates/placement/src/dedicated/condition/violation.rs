//! The reasons why nodes and cables do not meet the condition of dedicated links.

use std::fmt;

use topolane_fabric::{CableId, GroupIndex, NodeIndex};

/// Why nodes and cables do not meet the condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Violation {
    /// The machine has no node with this number.
    NoSuchNode {
        /// Number of the node.
        node: NodeIndex,
    },
    /// The machine has no cable with this number, or the cable is missing.
    NoSuchCable {
        /// Number of the cable.
        cable: CableId,
    },
    /// A cable is named twice.
    CableTwice {
        /// Number of the cable.
        cable: CableId,
    },
    /// The nodes are in parts of the machine that no third-level switch connects.
    TooFar,
    /// A leaf owns too few uplinks in common with the other leaves.
    Leaf {
        /// The leaf.
        leaf: GroupIndex,
        /// Uplinks that the leaf needs.
        needed: u32,
        /// Uplinks that the leaf owns in common with the leaves where the number is too low.
        common: u32,
    },
    /// A pod owns too few uplinks to the core in common with the other pods.
    Pod {
        /// The pod.
        pod: GroupIndex,
        /// The plane.
        plane: u32,
        /// Uplinks that the pod needs in this plane.
        needed: u32,
        /// Uplinks that the pod owns in common with the pods where the number is too low.
        common: u32,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::NoSuchNode { node } => write!(f, "there is no node {node}"),
            Violation::NoSuchCable { cable } => write!(f, "there is no cable {cable}"),
            Violation::CableTwice { cable } => write!(f, "cable {cable} is owned twice"),
            Violation::TooFar => write!(f, "no switch of the third level joins all nodes"),
            Violation::Leaf { leaf, needed, common } => write!(
                f,
                "leaf {leaf} needs {needed} uplinks in common with other leaves and has {common}"
            ),
            Violation::Pod { pod, plane, needed, common } => write!(
                f,
                "pod {pod} needs {needed} uplinks of plane {plane} in common with other pods and has {common}"
            ),
        }
    }
}

impl std::error::Error for Violation {}
