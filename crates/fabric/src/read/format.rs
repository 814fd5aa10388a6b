//! The list of machine formats, one row each.

use super::{
    MachineOptions, Read, aries, ibnetdiscover, kubernetes, lingjun, lldp, machine_toml, netbox,
    openb, slurm_conf, slurm_yaml, topograph,
};
use crate::description::Description;
use crate::error::{InputError, shown};

/// A format that describes a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Topolane's own `machine.toml`.
    Toml,
    /// Slurm's `topology.conf`, for `topology/tree` or `topology/block`.
    SlurmTopology,
    /// Slurm's `topology.yaml`.
    SlurmYaml,
    /// The output of `ibnetdiscover` for an `InfiniBand` subnet.
    Ibnetdiscover,
    /// Kubernetes nodes with their labels, and Kueue's Topology objects.
    Kubernetes,
    /// The graph and model files of NVIDIA's topograph.
    Topograph,
    /// The switch table of Alibaba's Lingjun data set.
    Lingjun,
    /// The node table of Alibaba's openb data set.
    Openb,
    /// The cables of `NetBox`: CSV, or JSON from its REST API.
    Netbox,
    /// The output of `lldpctl -f json` from several devices.
    Lldp,
    /// The interconnect file of a Cray XC.
    Aries,
}

/// The properties of a format.
pub struct FormatRow {
    /// The format.
    pub format: Format,
    /// The name of the format, as options take it.
    pub name: &'static str,
    /// A description of the format, for lists and errors.
    pub title: &'static str,
    /// The file name endings of the format.
    endings: &'static [&'static str],
    /// Whether a line, without leading white space, shows that a text has this format.
    marks: fn(&str) -> bool,
    /// Whether the format has the number of cables.
    pub cables: bool,
    /// Whether a file may contain several topologies.
    pub topologies: bool,
    read: fn(&str, &MachineOptions) -> Result<Read, InputError>,
}

/// All formats, in the order in which a text is checked against them.
pub const FORMATS: &[FormatRow] = &[
    FormatRow {
        format: Format::Toml,
        name: "toml",
        title: "a TOML machine",
        endings: &["toml"],
        marks: is_toml,
        cables: true,
        topologies: false,
        read: |text, _| machine_toml::whole(text),
    },
    FormatRow {
        format: Format::SlurmTopology,
        name: "slurm",
        title: "a topology.conf",
        endings: &["conf"],
        marks: |line| ["switchname", "blockname", "blocksizes"].iter().any(|key| starts(line, key)),
        cables: false,
        topologies: false,
        read: slurm_conf,
    },
    FormatRow {
        format: Format::SlurmYaml,
        name: "slurm-yaml",
        title: "a topology.yaml",
        endings: &[],
        // The keys may stand in any order. `blocks` and `switches` are topograph's too.
        marks: |line| {
            ["topology", "cluster_default", "tree", "block", "flat"]
                .iter()
                .any(|key| key_is(line, key))
        },
        cables: false,
        topologies: true,
        read: slurm_yaml,
    },
    FormatRow {
        format: Format::Ibnetdiscover,
        name: "ibnetdiscover",
        title: "ibnetdiscover output",
        endings: &["ibnetdiscover", "ibnet"],
        marks: |line| {
            ["vendid=", "switchguid=", "caguid=", "Switch\t", "Ca\t"]
                .iter()
                .any(|word| line.starts_with(word))
        },
        cables: true,
        topologies: false,
        read: ibnetdiscover::whole,
    },
    FormatRow {
        format: Format::Kubernetes,
        name: "kubernetes",
        title: "nodes of Kubernetes",
        endings: &[],
        marks: |line| key_is(line, "kind") || key_is(line, "apiVersion"),
        cables: false,
        topologies: true,
        read: kubernetes,
    },
    FormatRow {
        format: Format::Topograph,
        name: "topograph",
        title: "a graph or model of topograph",
        endings: &[],
        marks: |line| ["instances", "switches", "blocks"].iter().any(|key| key_is(line, key)),
        cables: false,
        topologies: false,
        read: topograph,
    },
    FormatRow {
        format: Format::Lingjun,
        name: "lingjun",
        title: "the switches of Lingjun's hosts",
        endings: &[],
        marks: |line| line.starts_with("ip,DSW,"),
        cables: false,
        topologies: false,
        read: lingjun,
    },
    FormatRow {
        format: Format::Openb,
        name: "openb",
        title: "the nodes of openb",
        endings: &[],
        marks: |line| line.starts_with("sn,cpu_milli,"),
        cables: false,
        topologies: false,
        read: |text, _| openb(text),
    },
    FormatRow {
        format: Format::Netbox,
        name: "netbox",
        title: "the cables of NetBox",
        endings: &[],
        marks: netbox::is_netbox,
        cables: true,
        topologies: false,
        read: netbox::netbox,
    },
    FormatRow {
        format: Format::Lldp,
        name: "lldp",
        title: "neighbours by LLDP",
        endings: &[],
        marks: |line| line.contains("\"lldp\""),
        cables: true,
        topologies: false,
        read: lldp,
    },
    FormatRow {
        format: Format::Aries,
        name: "aries",
        title: "the interconnect file of a Cray XC",
        endings: &["interconnect"],
        marks: aries::is_aries,
        cables: true,
        topologies: false,
        read: aries::aries,
    },
];

/// Whether a line is a table header, or a known key with `=`.
fn is_toml(line: &str) -> bool {
    let header = line.trim_start_matches('[');
    let key = line.strip_prefix("name").or(line.strip_prefix("block-sizes"));
    (header.len() < line.len() && header.starts_with(|letter: char| letter.is_ascii_alphabetic()))
        || key.is_some_and(|rest| rest.trim_start().starts_with('='))
}

/// Whether a line of YAML or JSON begins with this key.
fn key_is(line: &str, key: &str) -> bool {
    let line = line.trim_start_matches(['{', '[', '-', ' ']).trim_start_matches('"');
    let rest = line.strip_prefix(key).map(|rest| rest.trim_start_matches('"').trim_start());
    rest.is_some_and(|rest| rest.starts_with(':'))
}

fn starts(line: &str, key: &str) -> bool {
    line.get(..key.len()).is_some_and(|start| start.eq_ignore_ascii_case(key))
}

impl Format {
    /// The properties of the format.
    pub fn row(self) -> &'static FormatRow {
        FORMATS.iter().find(|row| row.format == self).unwrap_or(&FORMATS[0])
    }

    /// Returns the format with this name; `None` if there is none.
    pub fn named(name: &str) -> Option<Format> {
        FORMATS.iter().find(|row| row.name == name).map(|row| row.format)
    }

    /// Guesses the format of a file from its name ending or, if that does not decide, from its text; `None` if neither
    /// does.
    pub fn guess(file_name: &str, text: &str) -> Option<Format> {
        let ending = file_name.rsplit_once('.').map_or("", |(_, ending)| ending);
        let by_name = FORMATS
            .iter()
            .find(|row| row.endings.iter().any(|known| known.eq_ignore_ascii_case(ending)));
        let mark = |line: &str| FORMATS.iter().find(|row| (row.marks)(line));
        let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        let row = by_name.or_else(|| text.lines().map(str::trim_start).find_map(mark));
        row.map(|row| row.format)
    }
}

/// Reads a machine, without the notes about assumptions: see [`read`].
///
/// # Errors
/// The errors of the format's reader.
pub fn machine(text: &str, format: Format) -> Result<Description, InputError> {
    read(text, format, &MachineOptions::default()).map(|read| read.description)
}

/// A mark that some editors put before a text. It is not part of any format.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Reads a machine and the notes about assumptions. If a format does not describe the inside of nodes, they get the
/// default [`NodeKind`](crate::NodeKind), and the machine is named `machine`.
///
/// # Errors
/// The errors of the format's reader, or a topology option that the format does not support.
pub fn read(text: &str, format: Format, options: &MachineOptions) -> Result<Read, InputError> {
    let row = format.row();
    match &options.topology {
        Some(name) if !row.topologies => Err(InputError::whole(format!(
            "topology {} cannot be chosen: {} holds one topology",
            shown(name),
            row.title
        ))),
        _ if options.hosts.is_some()
            && ![Format::Ibnetdiscover, Format::Netbox, Format::Lldp].contains(&format) =>
        {
            let message = format!("--hosts: {} says itself which its nodes are", row.title);
            Err(InputError::whole(message))
        }
        _ => match text.strip_prefix(BYTE_ORDER_MARK) {
            None => (row.read)(text, options),
            Some(text) => {
                let mut read = (row.read)(text, options)?;
                if format == Format::SlurmTopology {
                    let note = "the file begins with a byte order mark, which is skipped here: Slurm refuses it";
                    read.notes.insert(0, note.to_owned());
                }
                Ok(read)
            }
        },
    }
}

/// The error sentence for a text of unknown format.
pub fn no_format(source: &str) -> String {
    let titles: Vec<&str> = FORMATS.iter().map(|row| row.title).collect();
    format!("{source}: this is none of {}", titles.join(", "))
}
