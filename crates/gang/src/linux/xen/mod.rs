//! Domains of Xen as jobs: the agent runs in dom0 and pauses them through libxenctrl.

mod domain;
mod library;

pub use domain::XenDomain;
pub use library::Library;
