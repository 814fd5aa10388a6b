//! Who sends what to whom, and what it costs where links, interfaces and memory are shared.
//!
//! A [`Traffic`] matrix, from a [pattern](pattern) or a file, laid over a [`Routing`] by the node of
//! each rank, becomes [`Flows`], or an [`Exchange`] where all send each other the same; a [`Contention`] model says what
//! they cost each other.
//!
//! [`Routing`]: topolane_fabric::Routing

mod contention;
mod exchange;
mod flows;
mod loads;
mod matrix;
mod patterns;
pub mod read;
mod write;

pub use contention::{
    Congestion, Contention, Filling, Foreseen, Interfaces, MODELS, MaxMin, ModelInfo, NodeRule,
    Outlook, PASSES, PerNode, SharedMemory, Together, contention,
};
pub use exchange::Exchange;
pub use flows::{Flows, RailShares};
pub use loads::Loads;
pub use matrix::{Entry, Traffic};
pub use patterns::{
    Domain, PATTERNS, Parameter, PatternInfo, Patterned, Phase, PhaseKind, pattern,
};
pub use write::traffic_csv;
