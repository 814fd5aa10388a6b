//! Readers: parse text in one of several formats to a [`Description`].

mod absent;
mod adapters;
mod aries;
mod assemble;
mod blocks;
mod branches;
mod bundles;
mod cable_list;
mod devices;
mod dragonfly;
mod format;
mod from_devices;
mod homes;
mod hyperx;
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
mod per_level;
mod planes;
mod ports;
mod slurm_lines;
mod slurm_topology;
mod slurm_tree;
mod slurm_yaml;
mod subnet;
mod toml_lines;
mod topograph;
mod torus;
mod trim;
mod union;
mod yaml;

pub use absent::absent;
pub(crate) use assemble::nodes_mut;
pub use branches::{LeafBranch, branches};
pub(crate) use devices::SPEEDS;
pub use format::{FORMATS, Format, FormatRow, machine, no_format, read};
pub use ibnetdiscover::ibnetdiscover;
pub use kubernetes::kubernetes;
pub(crate) use kubernetes::{GPU, HOSTNAME, PRODUCT};
pub(crate) use labels::{DOMAIN, TIER};
pub(crate) use lfts::{LidEntry, entries as lft_entries};
pub use lfts::{NamedText, lfts};
pub use lingjun::lingjun;
pub use lldp::lldp;
pub use machine_toml::machine_toml;
pub use netbox::netbox;
pub use networks::NetworkEntry;
pub use openb::openb;
pub use ports::{LidReceiver, Receiver, SubnetPorts, SwitchPorts, ports};
pub use slurm_lines::{Included, includes};
pub use slurm_topology::{slurm_conf, slurm_topology};
pub use slurm_yaml::slurm_yaml;
pub use topograph::topograph;

use crate::description::Description;
use crate::error::{InputError, shown};

/// The name of a machine whose format does not name it.
const UNNAMED: &str = "machine";

/// The result of reading a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// The machine.
    pub description: Description,
    /// What was assumed, chosen or skipped, a sentence each.
    pub notes: Vec<String>,
    /// Other networks over the same nodes; only our own format has them.
    pub networks: Vec<NetworkEntry>,
}

impl Read {
    fn with_notes(description: Description, notes: Vec<String>) -> Read {
        Read { description, notes, networks: Vec::new() }
    }
}

/// Options for reading a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MachineOptions {
    /// The name of the topology to read, if the text has several.
    pub topology: Option<String>,
    /// Whether to use accelerator sub-domains as the domains.
    pub sub_domains: bool,
    /// A hostlist of the devices that are nodes, for formats that only record cables.
    pub hosts: Option<String>,
    /// The texts of files that a `topology.conf` includes.
    pub included: Included,
    /// Whether to refuse Slurm switches that do not form a tree, instead of reading the part that a tree can represent.
    pub only_trees: bool,
}

/// The rows of a table below its header line, trimmed, with their line numbers; empty lines are skipped. `what` is in
/// the rows.
///
/// # Errors
/// Another header; no line.
fn rows_below<'a>(
    text: &'a str,
    header: &str,
    what: &str,
) -> Result<impl Iterator<Item = (&'a str, usize)> + use<'a>, InputError> {
    let mut lines = text.lines().map(str::trim).zip(1..).filter(|(line, _)| !line.is_empty());
    match lines.next() {
        Some((first, _)) if first == header => Ok(lines),
        Some((other, line)) => {
            Err(InputError::at(line, format!("the header is {}, not {header}", shown(other))))
        }
        None => Err(InputError::whole(format!("there is no {what}"))),
    }
}
