//! A simulated hypervisor: cores under Xen's credit scheduler, which runs what the policy's slice lets run.
//!
//! Xen's scheduler in words, from L. Cherkasova, D. Gupta, A. Vahdat, Comparison of the three CPU schedulers in Xen,
//! SIGMETRICS Performance Evaluation Review 35(2), 2007, section 2.3, and `xen/common/sched_credit.c`:
//! a thread (a virtual core) runs for at most 30 ms at a time and pays credits for what it runs. Every 30 ms credits
//! are given out by weight; who has some left is "under", who has none is "over". A queue of each core is ordered by
//! that and, among equals, by who came first. A blocked thread that wakes with credits left is "boosted" before both,
//! until a tick, every 10 ms of its core, finds it running. A core without a thread that is "under" takes such a thread
//! from another core's queue, and a core without any thread takes any.
//!
//! Not modelled: caps, migration between sockets, and the rate limit of later versions.

mod accounting;
mod alarms;
mod balance;
mod core_set;
mod driver;
mod machine;
mod outcome;
mod program;
mod results;
mod setup;
mod slices;
mod steps;
mod thread;
mod time;
mod workload;

pub use driver::simulate;
pub use outcome::{JobOutcome, Outcome, SliceRun, Spell};
pub use setup::{Costs, Setup, SetupError, Task};
pub use workload::{Length, Workload};
