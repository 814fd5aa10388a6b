//! Synthetic workloads: months like those of a published log, and exponential mixes.

mod arrivals;
mod exponential;
mod gpu_month;
mod month;
mod parameters;
mod presets;

pub use exponential::{Exponential, exponential};
pub use gpu_month::gpu_month;
pub use month::generate;
pub use parameters::{Arrivals, HyperGamma, Month};
pub use presets::{PRESETS, month, preset};
