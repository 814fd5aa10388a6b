//! Simulates a month of jobs in a second: workloads, the event loop, metrics and output tables.

mod coupling;
mod drains;
mod ends;
mod failures;
mod gpu_types;
mod gpu_use;
mod links_held;
mod metrics;
mod moving;
mod network;
mod other_network;
mod outages;
mod recorded;
mod room;
mod scenario;
mod shared_links;
mod simulate;
mod summary;
mod table;
mod tables;
mod widths;
pub mod workload;

/// Characters with which a spreadsheet formula may begin in a CSV cell.
pub(crate) const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

pub use failures::{Failure, FailureCount, FailureRate};
pub use links_held::LinksHeld;
pub use metrics::{Metrics, Minute, SIZE_BINS, SizeBin};
pub use moving::Move;
pub use network::Network;
pub use other_network::{NetworkUse, OtherNetwork};
pub use outages::Outage;
pub use room::{FitFacts, LargestFacts, RoomFacts};
pub use scenario::Scenario;
pub use shared_links::{PlacementStay, links_shared};
pub use simulate::{CutShort, JobOutcome, Outcome, Progress, RunOptions, simulate};
pub use summary::{
    ContentionFacts, FailureFacts, Fragmentation, OfPattern, OutageFacts, SizeRow, SlowdownSpread,
    Summary,
};
pub use table::{Column, Table, Texts, Values, Written};
pub use tables::{
    head_waits, into_tables, job_links, jobs, links, loaded_links, moves, tables, utilization,
};
