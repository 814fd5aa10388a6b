//! Writers: a [`Fabric`](crate::Fabric) to text in one of several formats.

mod domains;
mod infiniband;
mod labels;
mod lfts;
mod link_names;
mod machine_toml;
mod names;
mod numbers;
mod slurm_blocks;
mod slurm_topology;
mod tree;
mod wiring;
mod writers;

pub use infiniband::{ibnetdiscover, ibsim_net};
pub use labels::{kubernetes, kueue, topograph};
pub use lfts::LinearTables;
pub use link_names::{LinkEnd, LinkName, cables_named, link_names};
pub use machine_toml::machine_toml;
pub use slurm_blocks::{slurm_blocks, slurm_yaml};
pub use slurm_topology::slurm_topology;
pub use tree::tree;
pub use writers::{WRITERS, Writer};
