//! The Linux agent: gangs of real processes on real cores.
//!
//! A real-time thread sleeps until the absolute end of a slice, stops the jobs that are not in the next slice and
//! starts those that are. It never waits for a job to stop: if a thread of its priority waited by spinning, it would
//! keep the thread that it waits for from running on that core.

mod agent;
mod clock;
mod control;
mod controlled_job;
mod driver;
mod entry;
mod event_loop;
mod files;
mod group;
mod hierarchy;
mod means;
mod mounts;
mod priority;
mod processes;
mod switches;
mod taking;
mod tasks;
mod upkeep;
mod usage;
mod xen;

pub use agent::{Agent, Refused};
pub use clock::seconds;
pub use control::OwnGroup;
pub use controlled_job::JobMembers;
pub use driver::Driver;
pub use entry::{JobRecord, JobState};
pub use means::{Means, Ranking, Stopping};
pub use switches::SliceSwitch;
