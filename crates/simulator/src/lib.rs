//! A month of jobs in a second: workloads, the event loop, metrics and outputs.

mod metrics;
mod output;
mod scenario;
mod simulate;
pub mod workload;

pub use metrics::{Metrics, Minute, SIZE_BINS, SizeBin};
pub use output::{write_jobs, write_utilization};
pub use scenario::Scenario;
pub use simulate::{JobOutcome, Options, Outcome, Progress, simulate};
