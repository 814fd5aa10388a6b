//! Traffic of jobs, and how it slows down on shared links, interfaces and memory.
//!
//! A [`Traffic`] matrix comes from a [pattern](pattern) or a file. With a [`Routing`] and the node of each rank it
//! becomes [`Flows`], or an [`Exchange`] if all ranks send each other the same amount. A [`Contention`] model then says
//! how jobs slow each other down.
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
pub use matrix::{Traffic, TrafficEntry};
pub use patterns::{
    AllowedValues, PATTERNS, Parameter, PatternInfo, Patterned, Phase, PhaseKind, pattern,
};
pub use write::traffic_csv;
