//! Readers: text in somebody's format to a [`Description`].

mod absent;
mod adapters;
mod assemble;
mod branches;
mod bundles;
mod ibnetdiscover;
mod levels;
mod lfts;
mod lids;
mod machine_toml;
mod natural;
mod planes;
mod ports;
mod slurm_topology;
mod subnet;

pub use absent::absent;
pub use branches::{Branch, branches};
pub use ibnetdiscover::ibnetdiscover;
pub(crate) use lfts::{LidEntry, entries as lft_entries};
pub use lfts::{Source, lfts};
pub use machine_toml::machine_toml;
pub use ports::{Ports, Receiver, SwitchPorts, To, ports};
pub use slurm_topology::slurm_topology;
pub(crate) use subnet::SPEEDS;

use crate::description::Description;
use crate::error::InputError;
use crate::node_kind::NodeKind;

/// Name of a machine read from a format that does not name it.
const UNNAMED: &str = "machine";

/// A format that describes a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Topolane's own: `machine.toml`.
    Toml,
    /// Slurm's `topology.conf` for `topology/tree`.
    SlurmTopology,
    /// What `ibnetdiscover` prints of an `InfiniBand` subnet.
    Ibnetdiscover,
}

impl Format {
    /// The format of a file, by the ending of its name and, where that says nothing, by its
    /// text; `None` where neither tells.
    pub fn guess(file_name: &str, text: &str) -> Option<Format> {
        let ending = file_name.rsplit_once('.').map_or("", |(_, ending)| ending);
        match ending.to_ascii_lowercase().as_str() {
            "toml" => return Some(Format::Toml),
            "conf" => return Some(Format::SlurmTopology),
            "ibnetdiscover" | "ibnet" => return Some(Format::Ibnetdiscover),
            _ => {}
        }
        text.lines().map(str::trim_start).find_map(|line| {
            let starts = |word: &str| {
                line.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
            };
            if starts("switchname") {
                Some(Format::SlurmTopology)
            } else if ["vendid=", "switchguid=", "caguid=", "Switch\t", "Ca\t"]
                .iter()
                .any(|word| line.starts_with(word))
            {
                Some(Format::Ibnetdiscover)
            } else if line.starts_with("name") || line.starts_with('[') {
                Some(Format::Toml)
            } else {
                None
            }
        })
    }
}

/// Reads a machine. Formats that do not say what is inside a node get the default
/// [`NodeKind`], and the machine is then named `machine`.
///
/// # Errors
/// As the reader of that format.
pub fn machine(text: &str, format: Format) -> Result<Description, InputError> {
    match format {
        Format::Toml => machine_toml(text),
        Format::SlurmTopology => slurm_topology(text, NodeKind::default()),
        Format::Ibnetdiscover => ibnetdiscover(text),
    }
}
