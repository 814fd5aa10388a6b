//! Why a program does not fit with k cores of each node.

use std::fmt;

use topolane_fabric::Unreachable;

use crate::refusal::Refusal;

/// The reason why one k is not possible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misfit {
    /// No node has enough cores.
    Cores {
        /// Cores wanted of each node.
        wanted: u32,
        /// The most cores on any node.
        most: u32,
    },
    /// No node with enough cores has enough memory.
    Memory {
        /// Bytes wanted of each node.
        wanted: u64,
        /// The most bytes on any such node.
        most: u64,
    },
    /// The policy refuses this number of nodes.
    Refused(Refusal),
    /// The routing has no path between two of the nodes.
    Unreachable(Unreachable),
}

impl Misfit {
    /// A short constant name: `cores`, `memory`, `unreachable`, or that of the policy's refusal.
    pub fn name(&self) -> &'static str {
        match self {
            Misfit::Cores { .. } => "cores",
            Misfit::Memory { .. } => "memory",
            Misfit::Refused(refusal) => refusal.name(),
            Misfit::Unreachable(_) => "unreachable",
        }
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misfit::Cores { wanted, most } => {
                write!(f, "{wanted} cores of each node wanted, {most} the most that one has")
            }
            Misfit::Memory { wanted, most } => write!(
                f,
                "{:.1} GB of memory of each node wanted, {:.1} GB the most that one has",
                *wanted as f64 / 1e9,
                *most as f64 / 1e9
            ),
            Misfit::Refused(refusal) => refusal.fmt(f),
            Misfit::Unreachable(way) => way.fmt(f),
        }
    }
}

impl std::error::Error for Misfit {}

impl From<Unreachable> for Misfit {
    fn from(way: Unreachable) -> Self {
        Misfit::Unreachable(way)
    }
}
