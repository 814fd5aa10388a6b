//! Readers: text in one of several formats to a [`Description`].

mod absent;
mod adapters;
mod assemble;
mod blocks;
mod branches;
mod bundles;
mod cable_list;
mod devices;
mod format;
mod from_devices;
mod homes;
mod ibnetdiscover;
mod kubernetes;
mod labels;
mod levels;
mod lfts;
mod lids;
mod lingjun;
mod lldp;
mod machine_toml;
mod natural;
mod netbox;
mod networks;
mod openb;
mod paths;
mod planes;
mod ports;
mod slurm_lines;
mod slurm_topology;
mod slurm_tree;
mod slurm_yaml;
mod subnet;
mod toml_lines;
mod topograph;
mod trim;
mod union;
mod yaml;

pub use absent::absent;
pub(crate) use assemble::nodes_mut;
pub use branches::{Branch, branches};
pub(crate) use devices::SPEEDS;
pub use format::{FORMATS, Format, FormatRow, machine, no_format, read};
pub use ibnetdiscover::ibnetdiscover;
pub use kubernetes::kubernetes;
pub(crate) use kubernetes::{GPU, HOSTNAME, PRODUCT};
pub(crate) use labels::{DOMAIN, TIER};
pub(crate) use lfts::{LidEntry, entries as lft_entries};
pub use lfts::{Source, lfts};
pub use lingjun::lingjun;
pub use lldp::lldp;
pub use machine_toml::machine_toml;
pub use netbox::netbox;
pub use networks::NetworkEntry;
pub use openb::openb;
pub use ports::{Ports, Receiver, SwitchPorts, To, ports};
pub use slurm_lines::{Included, includes};
pub use slurm_topology::{slurm_conf, slurm_topology};
pub use slurm_yaml::slurm_yaml;
pub use topograph::topograph;

use crate::description::Description;

/// Name of a machine read from a format that does not name it.
const UNNAMED: &str = "machine";

/// What a reader makes of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// The machine.
    pub description: Description,
    /// What was assumed, chosen or skipped, a sentence each.
    pub notes: Vec<String>,
    /// Other networks over the same nodes, which only our own format names.
    pub networks: Vec<NetworkEntry>,
}

impl Read {
    fn with_notes(description: Description, notes: Vec<String>) -> Read {
        Read { description, notes, networks: Vec::new() }
    }
}

/// What to read of a text that holds more than one machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The topology of that name.
    pub topology: Option<String>,
    /// Take accelerator sub-domains as the domains.
    pub sub_domains: bool,
    /// A hostlist of the devices that are nodes, for formats that record cables alone.
    pub hosts: Option<String>,
    /// The files that a `topology.conf` includes.
    pub included: Included,
    /// Refuse switches of Slurm that form no tree, instead of reading what a tree can hold of them.
    pub only_trees: bool,
}
