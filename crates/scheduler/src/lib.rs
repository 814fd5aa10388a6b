//! Which request starts next, and where: queue disciplines over any policy.
//!
//! A driver (the simulator, a live system) owns a [`Scheduler`], reports each event to it and asks for a
//! [`Scheduler::pass`]. The code reads no clock: the driver passes `now`.
//!
//! What is kept from pass to pass:
//!
//! - `Future` (EASY): the state at the head's reservation. Count-only policies use arithmetic instead.
//! - `KeptPlan` (conservative, `isolated` and `segments-isolated`): a `Timeline` per leaf and group, the windows of each
//!   class of jobs, a reservation for every job. It looks again only where something was given back (`Opening`).
//! - `CountedPlan` (conservative, policies that only count): free nodes over time in blocks (`Steps`), and for each class
//!   the time before which none fits.
//! - `Retrace`: starts jobs when and where records say, and asks a copy of queue `slurm` before each start.
//!
//! The starts are those of a plan made again at every pass. If the plan cannot know what changed (nodes out of service, a
//! job past its walltime, jobs that share nodes), it is dropped, and the pass makes all reservations again.

mod counted_plan;
mod defrag;
mod future;
mod head_answers;
mod kept_plan;
mod kinds;
mod profile;
mod promise;
mod queue;
/// One file per discipline.
pub mod queues;
mod registry;
mod running;
mod scheduler;
mod steps;
mod timeline;
mod view;

pub use defrag::{Defrag, MovedJob};
pub use queue::{HeadWait, Pass, Queue, Reservation};
pub use registry::{QUEUES, QueueInfo, queue};
pub use running::{Running, RunningJob};
pub use scheduler::Scheduler;
pub use view::{EndedBy, EndedEarly, View, Waiting};
