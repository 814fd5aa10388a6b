//! Writes Slurm's `topology.conf` for `topology/tree`.

use std::fmt::Write;

use super::names::{NameLimits, Names};
use crate::description::{Children, Group};
use crate::fabric::Fabric;
use crate::hostlist::compress;

/// Returns the fabric as a `topology.conf`, with every switch after those that it names.
///
/// Slurm's format cannot represent cables and their bandwidth, parallel switches, WAN links (the sites become separate
/// trees), node kinds and the machine's name: these are skipped. If a group's name occurs at another site too, its
/// site's name is put before it.
pub fn slurm_topology(fabric: &Fabric) -> String {
    slurm_topology_named(fabric, &mut Names::new(NameLimits::SLURM))
}

pub(super) fn slurm_topology_named(fabric: &Fabric, names: &mut Names) -> String {
    let mut text = String::new();
    each_switch(fabric, names, |name, is_leaf, below| {
        let key = if is_leaf { "Nodes" } else { "Switches" };
        let _ = writeln!(text, "SwitchName={name} {key}={below}");
    });
    text
}

/// Calls `see` for every switch, children first: its name, whether it is a leaf, and the hostlist of its children.
pub(super) fn each_switch(
    fabric: &Fabric,
    names: &mut Names,
    mut see: impl FnMut(&str, bool, &str),
) {
    names.begin(NameLimits::SLURM);
    let mut nodes = names.nodes(fabric).into_iter();
    names.begin(NameLimits::SLURM);
    for site in fabric.description().sites {
        put_group(&site.root, &site.root.name, &mut nodes, names, &mut see);
    }
}

/// Visits a group and returns the name that it got.
fn put_group(
    group: &Group,
    site: &str,
    nodes: &mut impl Iterator<Item = String>,
    names: &mut Names,
    see: &mut impl FnMut(&str, bool, &str),
) -> String {
    let (is_leaf, below): (bool, Vec<String>) = match &group.children {
        Children::Nodes(own) => (true, nodes.by_ref().take(own.len()).collect()),
        Children::Groups(groups) => {
            let names = groups.iter().map(|group| put_group(group, site, nodes, names, see));
            (false, names.collect())
        }
    };
    let name = names.unique("switch", &group.name, site);
    see(&name, is_leaf, &compress(below.iter().map(String::as_str)));
    name
}
