//! Writers: a [`Fabric`](crate::Fabric) to text in somebody's format.

mod infiniband;
mod lfts;
mod link_names;
mod machine_toml;
mod slurm_topology;
mod tree;
mod wiring;

pub use infiniband::{ibnetdiscover, ibsim_net};
pub use lfts::LinearTables;
pub use link_names::{End, LinkName, cables_named, link_names};
pub use machine_toml::machine_toml;
pub use slurm_topology::slurm_topology;
pub use tree::tree;
