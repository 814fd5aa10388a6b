//! Workloads: reading logs, writing, generating and transforming them.

mod csv;
mod foreign;
mod gpus;
mod job;
mod openb;
mod options;
mod parse;
mod read;
mod rfold;
mod rows;
mod sacct;
mod swf;
mod synthetic;
mod transform;
mod write;

pub use csv::csv;
pub(crate) use job::LONGEST_DAYS;
pub use job::{Details, EarlierRun, Job, RecordedRun, Workload};
pub use openb::openb;
pub use options::ReadOptions;
pub use read::read;
pub use rfold::rfold;
pub use sacct::sacct;
pub use swf::swf;
pub use synthetic::{
    Arrivals, Exponential, HyperGamma, Month, PRESETS, exponential, generate, gpu_month, month,
    preset,
};
pub use transform::{Shape, TooWide, apply};
pub use write::{to_csv, to_swf};
