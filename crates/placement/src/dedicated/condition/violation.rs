//! Why a partition is not enough.

use std::fmt;

use topolane_fabric::{CableId, GroupIndex, NodeIndex};

/// Why nodes and cables do not meet the condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Violation {
    /// The machine has no such node.
    NoSuchNode {
        /// Its number.
        node: NodeIndex,
    },
    /// The machine has no such cable, or lacks it.
    NoSuchCable {
        /// Its number.
        cable: CableId,
    },
    /// A cable is named twice.
    CableTwice {
        /// Its number.
        cable: CableId,
    },
    /// The nodes are in parts of the machine that no third-level switch joins.
    TooFar,
    /// A leaf owns too few uplinks in common with the other leaves.
    Leaf {
        /// The leaf.
        leaf: GroupIndex,
        /// Uplinks that it needs.
        needed: u32,
        /// Uplinks that it owns in common with those it lacks them with.
        common: u32,
    },
    /// A pod owns too few uplinks to the core in common with the other pods.
    Pod {
        /// The pod.
        pod: GroupIndex,
        /// The plane.
        plane: u32,
        /// Uplinks that it needs there.
        needed: u32,
        /// Uplinks that it owns in common with those it lacks them with.
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
