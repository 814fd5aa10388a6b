//! Combines two descriptions of the same machine.

mod inside;

use std::collections::HashMap;

use crate::description::{Children, Description, Group, MissingCable, NodeDescription};
use crate::error::{InputError, shown};

/// The result of [`join`].
#[derive(Debug, Clone, PartialEq)]
pub struct Joined {
    /// The machine.
    pub description: Description,
    /// Nodes that only the tree names and that were added to its leaves.
    pub added: Vec<String>,
    /// Nodes that only the tree names and that were skipped, because the wiring has no other node of their leaf.
    pub skipped: Vec<String>,
    /// Anything else that was added or skipped, a sentence each.
    pub notes: Vec<String>,
}

impl Joined {
    /// Everything that was added or skipped, a sentence each.
    pub fn sentences(&self) -> Vec<String> {
        let plural = |names: &[String]| match names {
            [only] => format!("node {only}"),
            [first, ..] => format!("{} nodes, such as {first}", names.len()),
            [] => String::new(),
        };
        let mut sentences = Vec::new();
        if !self.added.is_empty() {
            sentences.push(format!(
                "the wiring does not name {}: each is assumed to hang on the switch of its neighbours",
                plural(&self.added)
            ));
        }
        if !self.skipped.is_empty() {
            sentences.push(format!(
                "the wiring names no node of the switch of {}: skipped",
                plural(&self.skipped)
            ));
        }
        sentences.extend(self.notes.iter().cloned());
        sentences
    }
}

/// Returns the machine of `wiring` plus the nodes that only `tree` names. Leaves are matched by their nodes, not by
/// their names.
///
/// Slurm's `topology.conf` names all nodes but has no cables. `ibnetdiscover` has the cables but only the nodes that
/// were up. Nodes that only `wiring` names, such as file servers, stay. An added node gets the kind of the first node
/// of its leaf. The nodes of a leaf are in the order of `tree`.
///
/// If `tree` has domains, as blocks of Slurm and labels of Kubernetes have, only these are used, with their block
/// sizes, because the tree in such a file is often assumed. A node that only `tree` names is then skipped, with a note.
/// Node kinds are taken if `wiring` has only default ones.
///
/// # Errors
/// The nodes of one leaf of `tree` are on two leaves of `wiring`, or those of two leaves on one; both have domains; no
/// node is in both.
pub fn join(wiring: &Description, tree: &Description) -> Result<Joined, InputError> {
    let mut joined = if tree.domains.is_empty() {
        leaves_joined(wiring, tree)?
    } else {
        inside::domains_joined(wiring, tree)?
    };
    inside::take_kinds(&mut joined, wiring, tree);
    Ok(joined)
}

/// Returns the machine of `wiring` with the nodes of the leaves of `tree`.
fn leaves_joined(wiring: &Description, tree: &Description) -> Result<Joined, InputError> {
    let mut joined = Joined {
        description: wiring.clone(),
        added: Vec::new(),
        skipped: Vec::new(),
        notes: Vec::new(),
    };
    let before: Vec<Vec<String>> = joined
        .description
        .sites
        .iter()
        .map(|site| {
            leaves(&site.root)
                .into_iter()
                .flat_map(|(_, nodes)| nodes.iter().map(|node| node.name.clone()))
                .collect()
        })
        .collect();
    let homes = homes(wiring);
    let mut taken: HashMap<usize, String> = HashMap::new();
    let mut plans: HashMap<usize, Vec<String>> = HashMap::new();
    for site in &tree.sites {
        for (leaf, nodes) in leaves(&site.root) {
            let Some(home) = home_of(leaf, nodes, &homes, &mut joined)? else { continue };
            if let Some(other) = taken.insert(home, leaf.to_owned()) {
                return Err(InputError::whole(format!(
                    "the nodes of the switches {} and {} hang on one switch of the wiring",
                    shown(&other),
                    shown(leaf)
                )));
            }
            plans.insert(home, nodes.iter().map(|node| node.name.clone()).collect());
        }
    }
    let mut index = 0;
    for site in &mut joined.description.sites {
        arrange(&mut site.root, &mut index, &plans);
    }
    for (site, before) in joined.description.sites.iter_mut().zip(&before) {
        let now: HashMap<&str, u32> = leaves(&site.root)
            .into_iter()
            .flat_map(|(_, nodes)| nodes)
            .zip(0..)
            .map(|(node, place)| (node.name.as_str(), place))
            .collect();
        for missing in site.missing.iter_mut().filter(|missing| missing.level == 0) {
            renumber(missing, before, &now);
        }
    }
    Ok(joined)
}

/// The leaf of the wiring with the nodes of a leaf of the tree; `None` if the wiring has none of them.
fn home_of(
    leaf: &str,
    nodes: &[NodeDescription],
    homes: &HashMap<&str, usize>,
    joined: &mut Joined,
) -> Result<Option<usize>, InputError> {
    let known: Vec<(&str, usize)> = nodes
        .iter()
        .filter_map(|node| homes.get(node.name.as_str()).map(|&home| (node.name.as_str(), home)))
        .collect();
    let new = nodes.iter().filter(|node| !homes.contains_key(node.name.as_str()));
    let new = new.map(|node| node.name.clone());
    let Some(&(first, home)) = known.first() else {
        joined.skipped.extend(new);
        return Ok(None);
    };
    if let Some((other, _)) = known.iter().find(|&&(_, other)| other != home) {
        return Err(InputError::whole(format!(
            "switch {} has the nodes {} and {}, which hang on two switches of the wiring",
            shown(leaf),
            shown(first),
            shown(other)
        )));
    }
    joined.added.extend(new);
    Ok(Some(home))
}

/// The leaves below a group, in order: their names and nodes.
fn leaves(group: &Group) -> Vec<(&str, &[NodeDescription])> {
    match &group.children {
        Children::Nodes(nodes) => vec![(group.name.as_str(), nodes.as_slice())],
        Children::Groups(groups) => groups.iter().flat_map(leaves).collect(),
    }
}

/// The leaf of each node, numbered over all sites.
fn homes(description: &Description) -> HashMap<&str, usize> {
    let all = description.sites.iter().flat_map(|site| leaves(&site.root));
    all.enumerate()
        .flat_map(|(index, (_, nodes))| nodes.iter().map(move |node| (node.name.as_str(), index)))
        .collect()
}

/// Sorts the nodes of every leaf: first those of its plan, in that order, then the others.
fn arrange(group: &mut Group, index: &mut usize, plans: &HashMap<usize, Vec<String>>) {
    match &mut group.children {
        Children::Groups(groups) => groups.iter_mut().for_each(|each| arrange(each, index, plans)),
        Children::Nodes(nodes) => {
            if let Some(plan) = plans.get(index) {
                let kinds: HashMap<String, u32> =
                    nodes.iter().map(|node| (node.name.clone(), node.kind)).collect();
                let first = nodes.first().map_or(0, |node| node.kind);
                let kind = |name: &String| kinds.get(name).copied().unwrap_or(first);
                let mut all: Vec<NodeDescription> = plan
                    .iter()
                    .map(|name| NodeDescription { name: name.clone(), kind: kind(name) })
                    .collect();
                all.extend(nodes.drain(..).filter(|node| !plan.contains(&node.name)));
                *nodes = all;
            }
            *index += 1;
        }
    }
}

fn renumber(missing: &mut MissingCable, before: &[String], now: &HashMap<&str, u32>) {
    let name = before.get(missing.group as usize);
    if let Some(&place) = name.and_then(|name| now.get(name.as_str())) {
        missing.group = place;
    }
}
