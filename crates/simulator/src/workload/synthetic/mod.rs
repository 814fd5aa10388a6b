//! Workloads made up: months like those of a published log, and exponential mixes.

mod arrivals;
mod exponential;
mod gpu_month;
mod month;
mod presets;

pub use arrivals::Arrivals;
pub use exponential::{Exponential, exponential};
pub use gpu_month::gpu_month;
pub use month::{HyperGamma, Month, generate};
pub use presets::{PRESETS, month, preset};
