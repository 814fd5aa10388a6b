mod conservative;
mod easy;
mod fcfs;
mod recorded;
pub(crate) mod reservation;
pub mod slurm;

pub use conservative::Conservative;
pub use easy::Easy;
pub use fcfs::Fcfs;
pub use recorded::RecordedStarts;
pub use slurm::Slurm;
