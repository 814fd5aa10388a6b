//! Slurm's `topology.conf` for `topology/tree`.

use super::UNNAMED;
use super::assemble::{Below, Switch, assemble};
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

fn switch(line: usize, words: &str) -> Result<Switch, InputError> {
    let refuse = |message: String| InputError::at(line, message);
    let [mut name, mut nodes, mut switches, mut speed] = [const { None }; 4];
    for word in words.split_ascii_whitespace() {
        let (key, value) = word
            .split_once('=')
            .ok_or_else(|| refuse(format!("{} is not of the form key=value", shown(word))))?;
        let place = match key.to_ascii_lowercase().as_str() {
            "switchname" => &mut name,
            "nodes" => &mut nodes,
            "switches" => &mut switches,
            "linkspeed" => &mut speed,
            _ => {
                return Err(refuse(format!(
                    "unknown key {key} (topology/tree has SwitchName, Nodes, Switches, LinkSpeed)"
                )));
            }
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
    let name = name.ok_or_else(|| refuse("the line has no SwitchName".to_owned()))?;
    // Slurm finds no node of that name and leaves the switch empty; a function would need Slurm's own nodes.
    let not_names = |hosts: &Option<String>| {
        hosts
            .as_deref()
            .is_some_and(|hosts| hosts.eq_ignore_ascii_case("all") || hosts.contains('{'))
    };
    if not_names(&nodes) {
        let hosts = nodes.unwrap_or_default();
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
