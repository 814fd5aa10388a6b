//! Joins domains, block sizes and node kinds of two machines by node name.

use std::collections::{HashMap, HashSet};

use super::{Joined, leaves};
use crate::description::{Children, Description, Group, NodeDescription};
use crate::error::{InputError, shown};
use crate::node_kind::NodeKind;

/// Returns the machine of `wiring` with the domains and block sizes of `other`.
pub(super) fn domains_joined(
    wiring: &Description,
    other: &Description,
) -> Result<Joined, InputError> {
    if let Some(domain) = wiring.domains.first() {
        return Err(InputError::whole(format!(
            "both machines have domains, such as {} and {}",
            shown(&domain.name),
            shown(other.domains.first().map_or("", |domain| &domain.name))
        )));
    }
    let known: HashSet<&str> = nodes(wiring).map(|node| node.name.as_str()).collect();
    let (mut unknown, mut gone, mut taken) = (Vec::new(), Vec::new(), HashSet::new());
    let mut domains = other.domains.clone();
    domains.retain_mut(|domain| {
        domain.nodes.retain(|node| {
            let is_known = known.contains(node.as_str());
            if is_known {
                taken.insert(node.clone());
            } else {
                unknown.push(node.clone());
            }
            is_known
        });
        if domain.nodes.is_empty() {
            gone.push(domain.name.clone());
        }
        !domain.nodes.is_empty()
    });
    if domains.is_empty() {
        let first = |machine| nodes(machine).next().map_or("", |node| &node.name);
        return Err(InputError::whole(format!(
            "no node is in both machines: one has {}, the other {}",
            shown(first(wiring)),
            shown(unknown.first().map_or("", String::as_str))
        )));
    }
    let outside: Vec<String> = nodes(wiring)
        .filter(|node| !taken.contains(&node.name))
        .map(|node| node.name.clone())
        .collect();
    let notes = [
        several("node", &unknown, "not in the machine: skipped in domains"),
        several("domain", &gone, "without a node of the machine: skipped"),
        several("node", &outside, "in no domain"),
    ];
    let block_sizes = other.block_sizes.clone();
    Ok(Joined {
        description: Description { domains, block_sizes, ..wiring.clone() },
        added: Vec::new(),
        skipped: Vec::new(),
        notes: notes.into_iter().flatten().collect(),
    })
}

/// Takes the node kinds of `other` if `wiring` has only default ones.
pub(super) fn take_kinds(joined: &mut Joined, wiring: &Description, other: &Description) {
    let default = NodeKind::default();
    let says_nothing = |machine: &Description| machine.kinds.iter().all(|kind| *kind == default);
    if !says_nothing(wiring) || says_nothing(other) {
        return;
    }
    let kinds: HashMap<&str, u32> =
        nodes(other).map(|node| (node.name.as_str(), node.kind)).collect();
    let machine = &mut joined.description;
    machine.kinds = std::iter::once(default).chain(other.kinds.iter().cloned()).collect();
    for site in &mut machine.sites {
        set_kinds(&mut site.root, &kinds);
    }
}

fn set_kinds(group: &mut Group, kinds: &HashMap<&str, u32>) {
    match &mut group.children {
        Children::Groups(groups) => groups.iter_mut().for_each(|child| set_kinds(child, kinds)),
        Children::Nodes(nodes) => {
            for node in nodes {
                node.kind = kinds.get(node.name.as_str()).map_or(0, |kind| kind + 1);
            }
        }
    }
}

fn nodes(machine: &Description) -> impl Iterator<Item = &NodeDescription> {
    machine.sites.iter().flat_map(|site| leaves(&site.root)).flat_map(|(_, nodes)| nodes)
}

/// A sentence about some names; `None` if there are none.
fn several(what: &str, names: &[String], are: &str) -> Option<String> {
    match names {
        [] => None,
        [only] => Some(format!("{what} {} is {are}", shown(only))),
        [first, ..] => {
            Some(format!("{} {what}s, such as {}, are {are}", names.len(), shown(first)))
        }
    }
}
