//! Slurm's `topology.conf` for `topology/tree`.

use std::fmt::Write;

use super::wiring::Names;
use crate::description::{Children, Group};
use crate::fabric::Fabric;
use crate::hostlist::{compress, plain};

/// The fabric as a `topology.conf`, every switch after those it names.
///
/// What Slurm's format cannot hold is left out: cables and their speed, parallel switches, WAN
/// links (the sites become trees of their own), the inside of nodes, the machine's name. A group
/// whose name stands at another site too gets its site's name before it.
pub fn slurm_topology(fabric: &Fabric) -> String {
    let mut text = String::new();
    let mut taken = Names::default();
    for site in fabric.description().sites {
        put_group(&mut text, &site.root, &site.root.name, &mut taken);
    }
    text
}

/// Writes the lines of a group and gives the name it got.
fn put_group(text: &mut String, group: &Group, site: &str, taken: &mut Names) -> String {
    let (key, below): (_, Vec<String>) = match &group.children {
        Children::Nodes(nodes) => ("Nodes", nodes.iter().map(|node| plain(&node.name)).collect()),
        Children::Groups(groups) => {
            ("Switches", groups.iter().map(|group| put_group(text, group, site, taken)).collect())
        }
    };
    let name = taken.unique(&group.name, site);
    let below = compress(below.iter().map(String::as_str));
    let _ = writeln!(text, "SwitchName={name} {key}={below}");
    name
}
