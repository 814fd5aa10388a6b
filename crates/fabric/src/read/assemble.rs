//! Builds trees of groups from a list of switches that name their children.

use std::collections::{HashMap, HashSet};

use crate::check::DEEPEST;
use crate::description::{Children, Description, Group, NodeDescription};
use crate::error::InputError;
use crate::hostlist::{MOST_LETTERS, MOST_NAMES, expand};

use super::slurm_lines::LinePosition;

/// A switch as a file describes it.
pub(super) struct DescribedSwitch {
    pub name: String,
    /// Names of the group's parallel switches, if the file has them.
    pub switches: Vec<String>,
    pub below: Below<String>,
    pub place: LinePosition,
}

/// The children of a switch, as a hostlist or as a list of names.
pub(super) enum Below<Names> {
    Nodes(Names),
    Switches(Names),
}

/// A switch with the expanded names of its children.
pub(super) struct Listed {
    pub name: String,
    /// Names of the group's parallel switches, if the file has them.
    pub switches: Vec<String>,
    pub below: Below<Vec<String>>,
    pub place: LinePosition,
}

/// A tree with one root, and the place in the file where its root switch stands.
pub(super) struct RootedTree {
    pub root: Group,
    pub depth: usize,
    pub place: LinePosition,
}

/// Builds the trees that the switches form, in the order of their roots. All nodes get kind 0.
pub(super) fn assemble(switches: Vec<DescribedSwitch>) -> Result<Vec<RootedTree>, InputError> {
    trees(listed(switches)?)
}

/// Expands all names. Refuses more names than a machine may have.
pub(super) fn listed(switches: Vec<DescribedSwitch>) -> Result<Vec<Listed>, InputError> {
    let (mut count, mut letters) = (0, 0);
    let mut all = Vec::with_capacity(switches.len());
    let with_blanks: HashSet<String> = switches
        .iter()
        .filter(|switch| switch.name.contains(char::is_whitespace))
        .map(|switch| switch.name.clone())
        .collect();
    for DescribedSwitch { name, switches, below, place } in switches {
        let mut names = |list: &str| {
            let names = names_in(list, &with_blanks).map_err(|error| place.of(error))?;
            count += names.len();
            letters += names.iter().map(String::len).sum::<usize>();
            if count > 2 * MOST_NAMES {
                return Err(place.refuse(format!(
                    "the switches name more than {} others and nodes",
                    2 * MOST_NAMES
                )));
            }
            if letters > 2 * MOST_LETTERS {
                return Err(
                    place.refuse(format!("all names have more than {} letters", 2 * MOST_LETTERS))
                );
            }
            Ok(names)
        };
        let below = match below {
            Below::Nodes(list) => Below::Nodes(names(&list)?),
            Below::Switches(list) => Below::Switches(names(&list)?),
        };
        all.push(Listed { name, switches, below, place });
    }
    Ok(all)
}

/// Expands a hostlist that may contain names of switches with blanks. Blanks would otherwise separate names.
fn names_in(list: &str, with_blanks: &HashSet<String>) -> Result<Vec<String>, InputError> {
    if with_blanks.is_empty() {
        return expand(list);
    }
    let (mut names, mut plain) = (Vec::new(), String::new());
    for element in list.split(',') {
        if with_blanks.contains(element.trim()) {
            names.extend(expand(&std::mem::take(&mut plain))?);
            names.push(element.trim().to_owned());
        } else {
            plain.push_str(element);
            plain.push(',');
        }
    }
    names.extend(expand(&plain)?);
    Ok(names)
}

/// The index of every switch, by name.
pub(super) fn numbers(switches: &[Listed]) -> Result<HashMap<String, usize>, InputError> {
    let mut by_name = HashMap::with_capacity(switches.len());
    for (index, switch) in switches.iter().enumerate() {
        if let Some(first) = by_name.insert(switch.name.clone(), index) {
            let (name, other) = (&switch.name, &switches[first].place);
            return Err(switch.place.refuse(format!("switch {name} stands on {other} already")));
        }
    }
    Ok(by_name)
}

/// The index of a child switch.
pub(super) fn child(
    own: &Listed,
    name: &str,
    by_name: &HashMap<String, usize>,
) -> Result<usize, InputError> {
    by_name.get(name).copied().ok_or_else(|| {
        own.place.refuse(format!("switch {} names {name}, which is not described", own.name))
    })
}

/// Builds trees of switches. Each switch may have at most one parent, and each node must be on one switch.
pub(super) fn trees(switches: Vec<Listed>) -> Result<Vec<RootedTree>, InputError> {
    let by_name = numbers(&switches)?;
    let mut below = Vec::with_capacity(switches.len());
    let mut parent = vec![None; switches.len()];
    for (index, switch) in switches.iter().enumerate() {
        below.push(match &switch.below {
            Below::Nodes(_) => Vec::new(),
            Below::Switches(names) => adopt(&switches, index, names, &by_name, &mut parent)?,
        });
    }
    refuse_cycles(&switches, &parent)?;
    let mut switches = switches;
    let mut builder = TreeBuilder { leaves: leaf_nodes(&mut switches)?, below, switches };
    let roots: Vec<usize> =
        parent.iter().enumerate().filter(|(_, p)| p.is_none()).map(|(index, _)| index).collect();
    roots.into_iter().map(|root| builder.tree(root)).collect()
}

pub(super) fn at_line(error: InputError, line: usize) -> InputError {
    InputError { line, ..error }
}

/// Makes switch `index` the parent of the switches that it names.
fn adopt(
    switches: &[Listed],
    index: usize,
    names: &[String],
    by_name: &HashMap<String, usize>,
    parent: &mut [Option<usize>],
) -> Result<Vec<usize>, InputError> {
    let own = &switches[index];
    let mut children = Vec::with_capacity(names.len());
    for name in names {
        let child = child(own, name, by_name)?;
        if let Some(other) = parent[child].replace(index) {
            let (one, other): (_, &Listed) = (&own.name, &switches[other]);
            let what =
                format!("is named as a child by {one} and by {} on {}", other.name, other.place);
            return Err(own.place.refuse(format!("switch {name} {what}")));
        }
        children.push(child);
    }
    if children.is_empty() {
        return Err(own.place.refuse(format!("switch {} names no switches", own.name)));
    }
    Ok(children)
}

/// Refuses cycles. Every switch has at most one parent, so climbing from a switch meets a cycle again.
fn refuse_cycles(switches: &[Listed], parent: &[Option<usize>]) -> Result<(), InputError> {
    // For each switch, the walk (numbered from 1) that reached it first.
    let mut met = vec![0; switches.len()];
    for start in 0..switches.len() {
        let mut at = start;
        while met[at] == 0 {
            met[at] = start + 1;
            match parent[at] {
                Some(above) => at = above,
                None => break,
            }
        }
        if met[at] == start + 1 && parent[at].is_some() {
            let mut names = vec![switches[at].name.as_str()];
            let mut above = parent[at];
            while let Some(next) = above.filter(|&next| next != at) {
                names.push(&switches[next].name);
                above = parent[next];
            }
            names.push(names[0]);
            names.reverse();
            return Err(cycle(&switches[at].place, &names));
        }
    }
    Ok(())
}

/// Returns the error for a cycle of switches, from the top down.
pub(super) fn cycle(place: &LinePosition, names: &[&str]) -> InputError {
    place.refuse(format!("switches form a cycle: {}", shorten(names)))
}

fn shorten(names: &[&str]) -> String {
    match names {
        [first @ .., last] if names.len() > 12 => {
            format!("{} -> ... -> {last}", first[..8].join(" -> "))
        }
        _ => names.join(" -> "),
    }
}

/// Moves the node names out of the switches, for every leaf. Each node may be on one leaf only.
fn leaf_nodes(switches: &mut [Listed]) -> Result<Vec<Vec<String>>, InputError> {
    let mut leaf_of: HashMap<&str, usize> = HashMap::new();
    let mut letters = 0;
    for (index, switch) in switches.iter().enumerate() {
        let Below::Nodes(names) = &switch.below else { continue };
        let refuse = |message: String| Err(switch.place.refuse(message));
        if names.is_empty() {
            return refuse(format!("switch {} names no nodes", switch.name));
        }
        if leaf_of.len() + names.len() > MOST_NAMES {
            return refuse(format!("the machine has more than {MOST_NAMES} nodes"));
        }
        letters += names.iter().map(String::len).sum::<usize>();
        if letters > MOST_LETTERS {
            return refuse(format!("the names of all nodes have more than {MOST_LETTERS} letters"));
        }
        for name in names {
            if let Some(other) = leaf_of.insert(name, index) {
                let (own, other) = (&switch.name, &switches[other]);
                let what = format!("hangs on {own} and on {} of {}", other.name, other.place);
                return refuse(format!("node {name} {what}"));
            }
        }
    }
    let take = |switch: &mut Listed| match &mut switch.below {
        Below::Nodes(names) => std::mem::take(names),
        Below::Switches(_) => Vec::new(),
    };
    Ok(switches.iter_mut().map(take).collect())
}

struct TreeBuilder {
    switches: Vec<Listed>,
    below: Vec<Vec<usize>>,
    /// The node names of each leaf switch; removed as the tree is built.
    leaves: Vec<Vec<String>>,
}

impl TreeBuilder {
    fn tree(&mut self, root: usize) -> Result<RootedTree, InputError> {
        let place = self.switches[root].place.clone();
        let (root, depth) = self.group(root, 1)?;
        Ok(RootedTree { root, depth, place })
    }

    /// The group of a switch `down` levels below the top, and the number of its levels.
    fn group(&mut self, index: usize, down: usize) -> Result<(Group, usize), InputError> {
        if down > DEEPEST {
            let Listed { name, place, .. } = &self.switches[index];
            let message = format!("switch {name} lies more than {DEEPEST} levels deep");
            return Err(place.refuse(message));
        }
        let below = std::mem::take(&mut self.below[index]);
        let mut depth = 1;
        let children = if below.is_empty() {
            let names = std::mem::take(&mut self.leaves[index]);
            let node = |name| NodeDescription { name, kind: 0 };
            Children::Nodes(names.into_iter().map(node).collect())
        } else {
            let mut groups = Vec::with_capacity(below.len());
            for child in below {
                let (group, levels) = self.group(child, down + 1)?;
                depth = depth.max(levels + 1);
                groups.push(group);
            }
            Children::Groups(groups)
        };
        let Listed { name, switches, .. } = &mut self.switches[index];
        let group =
            Group { name: std::mem::take(name), switches: std::mem::take(switches), children };
        Ok((group, depth))
    }
}

/// All nodes of a description, in order.
pub(crate) fn nodes_mut(description: &mut Description) -> Vec<&mut NodeDescription> {
    let mut nodes = Vec::new();
    let mut groups: Vec<&mut Group> =
        description.sites.iter_mut().rev().map(|site| &mut site.root).collect();
    while let Some(group) = groups.pop() {
        match &mut group.children {
            Children::Nodes(own) => nodes.extend(own),
            Children::Groups(below) => groups.extend(below.iter_mut().rev()),
        }
    }
    nodes
}
