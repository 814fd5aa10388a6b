//! Which jobs run in which time slice when more threads want to run than there are cores.
//!
//! A policy answers with a [`Round`] of slices; a driver, the simulated hypervisor or the Linux agent, lets run what
//! each slice names, measures what the jobs did with it, and asks again.

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

pub use job::{Barriers, Job, JobId, Observation};
pub use limits::Limits;
pub use matrix::Matrix;
pub use observer::{Observer, Used};
pub use policy::GangPolicy;
pub use registry::{GANG_POLICIES, GangPolicyInfo, gang_policy};
pub use round::{Round, Slice};
