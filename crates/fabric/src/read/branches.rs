//! Builds a machine from the path to each of its leaves, as host aggregates of a cloud give it.

use crate::check::DEEPEST;
use crate::description::{
    Cabling, Children, Description, Group, NodeDescription, SiteDescription, WanDescription,
};
use crate::error::{InputError, shown};
use crate::node_kind::NodeKind;
use crate::presets::QDR;

/// A leaf: the names of the groups from its site down to itself, and its hosts.
pub type LeafBranch = (Vec<String>, Vec<String>);

/// Returns the machine with its leaves at these paths. Groups are in order of first mention.
///
/// The input has no cables, so they are assumed: every level gets one parent and one cable of QDR's 4 GB/s, and every
/// pair of sites a link of one millisecond and the same bandwidth. All nodes are of `kind`.
///
/// # Errors
/// A path that is empty or too deep, or that ends at a leaf which another path passes through.
pub fn branches(
    name: &str,
    branches: &[LeafBranch],
    kind: NodeKind,
) -> Result<Description, InputError> {
    let mut sites: Vec<Group> = Vec::new();
    for (way, hosts) in branches {
        if way.is_empty() || way.len() > DEEPEST {
            let leaf = way.last().map_or("", String::as_str);
            let message =
                format!("leaf {} lies {} levels deep, not 1 to {DEEPEST}", shown(leaf), way.len());
            return Err(InputError::whole(message));
        }
        hang(&mut sites, way, hosts)?;
    }
    let cabling = Cabling::new(1, 1, QDR);
    let mut wans = Vec::new();
    for (index, a) in sites.iter().enumerate() {
        for b in &sites[..index] {
            let between = (b.name.clone(), a.name.clone());
            wans.push(WanDescription { between, latency: 1e-3, bandwidth: QDR });
        }
    }
    let site = |root: Group| SiteDescription {
        cabling: vec![cabling; depth(&root)],
        root,
        missing: Vec::new(),
    };
    let sites = sites.into_iter().map(site).collect();
    Ok(Description {
        name: name.to_owned(),
        sites,
        wans,
        kinds: vec![kind],
        domains: Vec::new(),
        ..Description::default()
    })
}

fn hang(groups: &mut Vec<Group>, way: &[String], hosts: &[String]) -> Result<(), InputError> {
    let (name, below) = (&way[0], &way[1..]);
    let both = || InputError::whole(format!("{name} is a leaf and has groups below it"));
    let place = groups.iter().position(|group| group.name == *name).unwrap_or_else(|| {
        let children =
            if below.is_empty() { Children::Nodes(vec![]) } else { Children::Groups(vec![]) };
        groups.push(Group { name: name.clone(), switches: Vec::new(), children });
        groups.len() - 1
    });
    match (&mut groups[place].children, below.is_empty()) {
        (Children::Nodes(nodes), true) => {
            nodes.extend(hosts.iter().map(|host| NodeDescription { name: host.clone(), kind: 0 }));
            Ok(())
        }
        (Children::Groups(groups), false) => hang(groups, below, hosts),
        _ => Err(both()),
    }
}

fn depth(group: &Group) -> usize {
    match &group.children {
        Children::Nodes(_) => 1,
        Children::Groups(groups) => 1 + groups.iter().map(depth).max().unwrap_or(0),
    }
}
