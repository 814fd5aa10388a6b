mod first_fit;
mod hop_bytes;
mod hop_bytes_exact;
mod isolated;
mod random;
mod recorded;
mod scattered;
mod slurm_tree;

pub use first_fit::FirstFit;
pub use hop_bytes::HopBytes;
pub use hop_bytes_exact::HopBytesExact;
pub use isolated::Isolated;
pub use random::Random;
pub use recorded::Recorded;
pub use scattered::Scattered;
pub use slurm_tree::SlurmTree;
