//! Reads Slurm's `topology.conf`: the switches of `topology/tree` or the blocks of `topology/block`.

use super::assemble::{Below, DescribedSwitch};
use super::blocks::{DescribedBlock, DescribedSizes, blocks};
use super::slurm_lines::{Included, SlurmLine, lines, pairs};
use super::slurm_tree::of_switches;
use super::{MachineOptions, Read};
use crate::description::Description;
use crate::error::InputError;
use crate::node_kind::NodeKind;

/// Reads a `topology.conf` with lines `SwitchName=s Nodes=hostlist` and `SwitchName=s Switches=hostlist`, by the rules
/// of Slurm's parser: keys in any case, blanks around `=`, values in quotes, comments after `#`, and a backslash at the
/// end of a line to continue it. `LinkSpeed` is ignored, as in Slurm.
///
/// The file has neither the number of cables nor their bandwidth, so every level gets one parent and one cable of QDR's
/// 4 GB/s. All nodes are of `kind`. Several roots become several sites without WAN links, because Slurm keeps a job
/// under one root.
///
/// # Errors
/// With its line: a key that is unknown or without a value; a switch that is described twice, has both nodes and
/// switches, names one that is not described, or is in a cycle; a name with a control character; no node at all;
/// `Include`.
pub fn slurm_topology(text: &str, kind: NodeKind) -> Result<Description, InputError> {
    let (switches, _) = switches(&lines(text, &Included::new())?)?;
    of_switches(switches, kind, false).map(|read| read.description)
}

/// Reads a `topology.conf`: of switches as in [`slurm_topology`], or of lines `BlockName=b Nodes=hostlist` and one
/// `BlockSizes=18,36`. Every block becomes a domain, and a leaf of an assumed tree.
///
/// # Errors
/// With its line: lines of both kinds; a block that occurs twice; sizes that are not power-of-two multiples of the
/// first; and whatever [`slurm_topology`] refuses.
pub fn slurm_conf(text: &str, options: &MachineOptions) -> Result<Read, InputError> {
    let lines = lines(text, &options.included)?;
    let is = |line: &SlurmLine, key: &str| {
        let start = line.words.trim_start().get(..key.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(key))
    };
    let first_of = |key| lines.iter().position(|line| is(line, key));
    let block = first_of("BlockName").into_iter().chain(first_of("BlockSizes")).min();
    match (block, first_of("SwitchName")) {
        (None, _) => {
            let (switches, twice) = switches(&lines)?;
            let mut read = of_switches(switches, NodeKind::default(), options.only_trees)?;
            read.notes.splice(0..0, twice);
            Ok(read)
        }
        (Some(block), Some(switch)) => {
            let (first, second) =
                (&lines[block.min(switch)].place, &lines[block.max(switch)].place);
            let what = format!("blocks and switches in one file: the others begin on {first}");
            Err(second.refuse(what))
        }
        (Some(_), None) => of_blocks(&lines),
    }
}

fn of_blocks(lines: &[SlurmLine]) -> Result<Read, InputError> {
    let (mut all, mut sizes, mut warnings) = (Vec::new(), None, Vec::new());
    for line in lines {
        let words = line.words.trim_start().as_bytes();
        if words.get(..10).is_some_and(|start| start.eq_ignore_ascii_case(b"blocksizes")) {
            let [list] = values(line, ["blocksizes"], &mut warnings)?;
            let list = list.unwrap_or_default();
            let of_line =
                DescribedSizes::of(&list.split(',').collect::<Vec<_>>(), line.place.clone())?;
            if let Some(DescribedSizes { place: first, .. }) = sizes.replace(of_line) {
                let place = &line.place;
                warnings.push(format!(
                    "BlockSizes stands on {first} and on {place}: the last counts, as in Slurm"
                ));
            }
        } else {
            let [name, nodes] = values(line, ["blockname", "nodes"], &mut warnings)?;
            let name = name.unwrap_or_default();
            let nodes = nodes.unwrap_or_default();
            if no_hostlist(&nodes) {
                let message = format!("Nodes={nodes} of block {name} is no list of names");
                return Err(line.place.refuse(message));
            }
            all.push(DescribedBlock { name, nodes, place: line.place.clone() });
        }
    }
    let mut read = blocks(&all, sizes.unwrap_or_default())?;
    read.notes.splice(0..0, warnings);
    Ok(read)
}

/// The switches of the lines, and warnings like those of Slurm.
fn switches(lines: &[SlurmLine]) -> Result<(Vec<DescribedSwitch>, Vec<String>), InputError> {
    if lines.is_empty() {
        return Err(InputError::whole("there is no SwitchName= line"));
    }
    let mut warnings = Vec::new();
    let switches = lines.iter().map(|line| switch(line, &mut warnings));
    let switches = switches.collect::<Result<_, _>>()?;
    Ok((switches, warnings))
}

/// The values of a line for `keys`, which are in lower case; the line begins with the first. If a key occurs twice, the
/// last value counts and a note says so.
fn values<const N: usize>(
    line: &SlurmLine,
    keys: [&str; N],
    warnings: &mut Vec<String>,
) -> Result<[Option<String>; N], InputError> {
    let refuse = |message: String| Err(line.place.refuse(message));
    let mut found = [const { None }; N];
    for (number, (key, value)) in pairs(line)?.into_iter().enumerate() {
        let place = keys.iter().position(|known| known.eq_ignore_ascii_case(&key));
        let (known, first) = match keys[0] {
            "switchname" => {
                ("topology/tree has SwitchName, Nodes, Switches, LinkSpeed", "SwitchName")
            }
            _ => ("topology/block has BlockName, Nodes, BlockSizes", "BlockName or BlockSizes"),
        };
        let Some(place) = place else {
            return refuse(format!("unknown key {key} ({known})"));
        };
        if (number == 0) != (place == 0) {
            return refuse(match number {
                0 => format!("the line does not begin with {first} but with {key}"),
                _ => format!("{key} is given twice"),
            });
        }
        if place == 0 && value.is_empty() {
            return refuse(format!("{key} is empty"));
        }
        if found[place].replace(value).is_some() {
            let place = &line.place;
            warnings
                .push(format!("{key} stands twice on {place}: the last value counts, as in Slurm"));
        }
    }
    Ok(found)
}

/// Whether a hostlist cannot be expanded here. Slurm finds no node with the name ALL and leaves the switch empty; a
/// function in braces would need Slurm's own node list.
pub(super) fn no_hostlist(hosts: &str) -> bool {
    hosts.eq_ignore_ascii_case("all") || hosts.contains('{')
}

fn switch(line: &SlurmLine, warnings: &mut Vec<String>) -> Result<DescribedSwitch, InputError> {
    let refuse = |message: String| Err(line.place.refuse(message));
    let [name, nodes, switches, _] =
        values(line, ["switchname", "nodes", "switches", "linkspeed"], warnings)?;
    let name = name.unwrap_or_default();
    if let Some(hosts) = nodes.as_deref().filter(|hosts| no_hostlist(hosts)) {
        return refuse(format!("Nodes={hosts} of switch {name} is no list of names"));
    }
    let below = match (nodes, switches) {
        (Some(_), Some(_)) => return refuse(format!("switch {name} has both Nodes and Switches")),
        (None, Some(switches)) => Below::Switches(switches),
        (nodes, None) => Below::Nodes(nodes.unwrap_or_default()),
    };
    Ok(DescribedSwitch { name, switches: Vec::new(), below, place: line.place.clone() })
}
