mod conservative;
mod easy;
mod fcfs;
mod recorded;

pub use conservative::Conservative;
pub use easy::Easy;
pub use fcfs::Fcfs;
pub use recorded::Recorded;
