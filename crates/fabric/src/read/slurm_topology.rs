//! Slurm's `topology.conf`: the switches of `topology/tree`, the blocks of `topology/block`.

use super::assemble::{Below, Switch, assemble};
use super::blocks::{Block, Sizes, blocks};
use super::{Read, UNNAMED};
use crate::description::{Cabling, Description, SiteDescription};
use crate::error::{InputError, is_printable, shown};
use crate::node_kind::NodeKind;
use crate::presets::QDR;

/// Reads a `topology.conf` of lines `SwitchName=s Nodes=hostlist` and
/// `SwitchName=s Switches=hostlist`. Keys are of any case; `#` starts a comment, a backslash at
/// the end of a line continues it, and `LinkSpeed`, of which Slurm makes nothing, is left out.
///
/// The file says neither how many cables there are nor how fast: every level gets one parent
/// and one cable of QDR's 4 GB/s. All nodes are of `kind`. Several roots give several sites that
/// no WAN joins, as Slurm keeps a job under one root.
///
/// # Errors
/// With its line: a key that is unknown, given twice or without a value; a switch that is
/// described twice, has both nodes and switches or neither, names what is not described, or lies
/// under two switches or in a cycle; a node in two leaves; a name with a control character.
pub fn slurm_topology(text: &str, kind: NodeKind) -> Result<Description, InputError> {
    let mut switches = Vec::new();
    for (line, words) in logical_lines(text) {
        if !words.trim().is_empty() {
            switches.push(switch(line, &words)?);
        }
    }
    if switches.is_empty() {
        return Err(InputError::whole("there is no SwitchName= line"));
    }
    trees(switches, kind)
}

/// Reads a `topology.conf`, of switches as [`slurm_topology`] or of lines `BlockName=b Nodes=hostlist` and one
/// `BlockSizes=18,36`. Every block is a domain, and a leaf of a tree that is assumed.
///
/// # Errors
/// With its line: lines of both kinds; a block without nodes or given twice; a node in two blocks; sizes that are no power-of-two
/// multiples of the first; and what [`slurm_topology`] refuses.
pub fn slurm_conf(text: &str) -> Result<Read, InputError> {
    let lines = logical_lines(text);
    let starts = |words: &str, key: &str| {
        let start = words.trim_start().get(..key.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(key))
    };
    let line_of = |key| lines.iter().find(|(_, words)| starts(words, key)).map(|&(line, _)| line);
    let block = line_of("BlockName").or(line_of("BlockSizes"));
    match (block, line_of("SwitchName")) {
        (None, _) => Ok(Read::of(slurm_topology(text, NodeKind::default())?)),
        (Some(block), Some(switch)) => Err(InputError::at(
            block.max(switch),
            format!(
                "blocks and switches in one file: the others begin on line {}",
                block.min(switch)
            ),
        )),
        (Some(_), None) => {
            let (mut all, mut sizes) = (Vec::new(), None);
            for (line, words) in lines.iter().filter(|(_, words)| !words.trim().is_empty()) {
                if starts(words, "BlockSizes") {
                    let [list] = values(*line, words, ["blocksizes"])?;
                    let list = list.unwrap_or_default();
                    let of_line = Sizes::of(&list.split(',').collect::<Vec<_>>(), *line)?;
                    if let Some(Sizes { line: first, .. }) = sizes.replace(of_line) {
                        let message = format!("BlockSizes stands on line {first} already");
                        return Err(InputError::at(*line, message));
                    }
                } else {
                    all.push(a_block(*line, words)?);
                }
            }
            blocks(&all, sizes.unwrap_or_default())
        }
    }
}

fn a_block(line: usize, words: &str) -> Result<Block, InputError> {
    let [name, nodes] = values(line, words, ["blockname", "nodes"])?;
    let name = name.ok_or_else(|| InputError::at(line, "the line has no BlockName"))?;
    let nodes = nodes.unwrap_or_default();
    if no_hostlist(&nodes) {
        let message = format!("Nodes={nodes} of block {name} is no list of names");
        return Err(InputError::at(line, message));
    }
    Ok(Block { name, nodes, line })
}

/// The trees of the switches, each a site.
pub(super) fn trees(switches: Vec<Switch>, kind: NodeKind) -> Result<Description, InputError> {
    let cabling = Cabling::new(1, 1, QDR);
    let sites = assemble(switches)?
        .into_iter()
        .map(|tree| SiteDescription {
            cabling: vec![cabling; tree.depth],
            root: tree.root,
            missing: Vec::new(),
        })
        .collect();
    Ok(Description {
        name: UNNAMED.to_owned(),
        sites,
        wans: Vec::new(),
        kinds: vec![kind],
        domains: Vec::new(),
        block_sizes: Vec::new(),
    })
}

/// Lines without comments, continued ones joined, with the number of their first line.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut continues = false;
    for (index, line) in text.lines().enumerate() {
        let line = without_comment(line).trim_end();
        let (line, goes_on) = line.strip_suffix('\\').map_or((line, false), |line| (line, true));
        match lines.last_mut() {
            Some((_, joined)) if continues => joined.push_str(line),
            _ => lines.push((index + 1, line.to_owned())),
        }
        continues = goes_on;
    }
    lines
}

/// The line up to a `#` that no backslash protects.
fn without_comment(line: &str) -> &str {
    let comment = line
        .char_indices()
        .find(|&(place, letter)| letter == '#' && !line[..place].ends_with('\\'));
    comment.map_or(line, |(place, _)| &line[..place])
}

/// The values of a line of words `key=value`, in the order of `keys`, which are in small letters.
fn values<const N: usize>(
    line: usize,
    words: &str,
    keys: [&str; N],
) -> Result<[Option<String>; N], InputError> {
    let refuse = |message: String| InputError::at(line, message);
    let mut found = [const { None }; N];
    for word in words.split_ascii_whitespace() {
        let (key, value) = word
            .split_once('=')
            .ok_or_else(|| refuse(format!("{} is not of the form key=value", shown(word))))?;
        let place = keys.iter().position(|known| known.eq_ignore_ascii_case(key));
        let Some(place) = place.map(|place| &mut found[place]) else {
            return Err(refuse(match keys[0] {
                "switchname" => format!(
                    "unknown key {key} (topology/tree has SwitchName, Nodes, Switches, LinkSpeed)"
                ),
                _ => format!("unknown key {key} (topology/block has BlockName, Nodes, BlockSizes)"),
            }));
        };
        let value = value.trim_matches('"');
        if value.is_empty() {
            return Err(refuse(format!("{key} has no value")));
        }
        if !value.chars().all(is_printable) {
            return Err(refuse(format!("{key} holds a control character: {}", shown(value))));
        }
        if place.replace(value.to_owned()).is_some() {
            return Err(refuse(format!("{key} is given twice")));
        }
    }
    Ok(found)
}

/// Slurm finds no node of the name ALL and leaves the switch empty; a function would need Slurm's own nodes.
pub(super) fn no_hostlist(hosts: &str) -> bool {
    hosts.eq_ignore_ascii_case("all") || hosts.contains('{')
}

fn switch(line: usize, words: &str) -> Result<Switch, InputError> {
    let refuse = |message: String| InputError::at(line, message);
    let [name, nodes, switches, _] =
        values(line, words, ["switchname", "nodes", "switches", "linkspeed"])?;
    let name = name.ok_or_else(|| refuse("the line has no SwitchName".to_owned()))?;
    if let Some(hosts) = nodes.as_deref().filter(|hosts| no_hostlist(hosts)) {
        return Err(refuse(format!("Nodes={hosts} of switch {name} is no list of names")));
    }
    let below = match (nodes, switches) {
        (Some(nodes), None) => Below::Nodes(nodes),
        (None, Some(switches)) => Below::Switches(switches),
        (Some(_), Some(_)) => {
            return Err(refuse(format!("switch {name} has both Nodes and Switches")));
        }
        (None, None) => {
            return Err(refuse(format!("switch {name} has neither Nodes nor Switches")));
        }
    };
    Ok(Switch { name, switches: Vec::new(), below, line })
}
