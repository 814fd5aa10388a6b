//! A simulated hypervisor: cores under Xen's credit scheduler, which runs the threads that the policy's slice allows.
//!
//! Xen's scheduler is modelled after L. Cherkasova, D. Gupta, A. Vahdat, Comparison of the three CPU schedulers in Xen,
//! SIGMETRICS Performance Evaluation Review 35(2), 2007, section 2.3, and `xen/common/sched_credit.c`: a thread (a
//! virtual core) runs for at most 30 ms at a time and pays credits for that time. Every 30 ms, credits are distributed
//! by weight. A thread with credits is "under", one without is "over". The queue of each core has threads that are
//! "under" first; among equals, first come, first served. A blocked thread that wakes with credits is "boosted": it
//! goes before both, until a tick of its core (every 10 ms) finds it running. A core without a thread that is "under"
//! takes such a thread from another core's queue, and a core without any thread takes any.
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
pub use outcome::{GangJobOutcome, GangOutcome, SliceRun, Spell};
pub use setup::{Setup, SetupError, SwitchCosts, Task};
pub use workload::{Length, ThreadWorkload};
