//! Gang scheduling: which jobs run in which time slice if there are more threads than cores.
//!
//! A policy answers with a [`Round`] of slices. A driver (the simulated hypervisor or the Linux agent) runs the jobs
//! that each slice names, measures what they did, and asks again.

mod job;
mod limits;
mod matrix;
mod observer;
mod policy;
mod registry;
mod round;
mod rows;
mod turns;

/// The Linux agent.
#[cfg(target_os = "linux")]
pub mod linux;

/// The simulated hypervisor.
pub mod hypervisor;
/// One file per policy.
pub mod policies;

pub use job::{Barriers, JobId, Observation, ObservedJob};
pub use limits::SliceLimits;
pub use matrix::Matrix;
pub use observer::{Observer, Used};
pub use policy::GangPolicy;
pub use registry::{GANG_POLICIES, GangPolicyInfo, gang_policy};
pub use round::{Round, Slice};
