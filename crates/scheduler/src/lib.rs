//! Which request starts next, and where: queue disciplines over any policy.
//!
//! A driver (the simulator, a live system) owns a [`Scheduler`], reports each event to it and asks for a
//! [`Scheduler::pass`]. The code reads no clock: the driver passes `now`.

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

pub use defrag::{Defrag, Moved};
pub use queue::{HeadWait, Pass, Queue, Reservation};
pub use registry::{QUEUES, QueueInfo, queue};
pub use running::{Running, RunningJob};
pub use scheduler::Scheduler;
pub use view::{EndedBy, EndedEarly, View, Waiting};
