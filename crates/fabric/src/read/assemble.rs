//! From a list of switches that name their children to trees of groups.

use std::collections::HashMap;

use crate::description::{Children, Description, Group, NodeDescription};
use crate::error::InputError;
use crate::fabric::DEEPEST;
use crate::hostlist::{MOST_LETTERS, MOST_NAMES, expand};

/// One switch as a file describes it.
pub(super) struct Switch {
    pub name: String,
    /// Names of the group's parallel switches, where the file has them.
    pub switches: Vec<String>,
    pub below: Below,
    pub line: usize,
}

/// What a switch joins: a hostlist of one or the other.
pub(super) enum Below {
    Nodes(String),
    Switches(String),
}

/// The tree of one root, and the line its switch stands on.
pub(super) struct Tree {
    pub root: Group,
    pub depth: usize,
    pub line: usize,
}

/// The trees that the switches form, in the order of their roots. All nodes are of kind 0.
pub(super) fn assemble(switches: Vec<Switch>) -> Result<Vec<Tree>, InputError> {
    let mut by_name = HashMap::new();
    for (index, switch) in switches.iter().enumerate() {
        if let Some(first) = by_name.insert(switch.name.clone(), index) {
            return Err(InputError::at(
                switch.line,
                format!("switch {} stands on line {} already", switch.name, switches[first].line),
            ));
        }
    }
    let mut below = Vec::with_capacity(switches.len());
    let mut parent = vec![None; switches.len()];
    for (index, switch) in switches.iter().enumerate() {
        below.push(match &switch.below {
            Below::Nodes(_) => Vec::new(),
            Below::Switches(list) => {
                let names = expand(list).map_err(|error| at_line(error, switch.line))?;
                adopt(&switches, index, &names, &by_name, &mut parent)?
            }
        });
    }
    refuse_cycles(&switches, &parent)?;
    let mut builder = Builder { leaves: leaf_nodes(&switches)?, below, switches };
    let roots: Vec<usize> =
        parent.iter().enumerate().filter(|(_, p)| p.is_none()).map(|(index, _)| index).collect();
    roots.into_iter().map(|root| builder.tree(root)).collect()
}

pub(super) fn at_line(error: InputError, line: usize) -> InputError {
    InputError { line, ..error }
}

/// Makes switch `index` the parent of the switches it names.
fn adopt(
    switches: &[Switch],
    index: usize,
    names: &[String],
    by_name: &HashMap<String, usize>,
    parent: &mut [Option<usize>],
) -> Result<Vec<usize>, InputError> {
    let own = &switches[index];
    let mut children = Vec::with_capacity(names.len());
    for name in names {
        let Some(&child) = by_name.get(name) else {
            let message = format!("switch {} names {name}, which is not described", own.name);
            return Err(InputError::at(own.line, message));
        };
        if let Some(other) = parent[child].replace(index) {
            let other: &Switch = &switches[other];
            return Err(InputError::at(
                own.line,
                format!(
                    "switch {name} is named as a child by {} and by {} on line {}",
                    own.name, other.name, other.line
                ),
            ));
        }
        children.push(child);
    }
    if children.is_empty() {
        return Err(InputError::at(own.line, format!("switch {} names no switches", own.name)));
    }
    Ok(children)
}

/// Every switch has one parent at most, so a cycle is met again by climbing.
fn refuse_cycles(switches: &[Switch], parent: &[Option<usize>]) -> Result<(), InputError> {
    // The walk (by number, from 1) in which a switch was first met.
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
            let message = format!("switches form a cycle: {}", shorten(&names));
            return Err(InputError::at(switches[at].line, message));
        }
    }
    Ok(())
}

fn shorten(names: &[&str]) -> String {
    match names {
        [first @ .., last] if names.len() > 12 => {
            format!("{} -> ... -> {last}", first[..8].join(" -> "))
        }
        _ => names.join(" -> "),
    }
}

/// The nodes of every leaf, each in one leaf only.
fn leaf_nodes(switches: &[Switch]) -> Result<Vec<Vec<String>>, InputError> {
    let mut leaf_of: HashMap<String, usize> = HashMap::new();
    let mut leaves = Vec::with_capacity(switches.len());
    let mut letters = 0;
    for (index, switch) in switches.iter().enumerate() {
        let Below::Nodes(list) = &switch.below else {
            leaves.push(Vec::new());
            continue;
        };
        let names = expand(list).map_err(|error| at_line(error, switch.line))?;
        let refuse = |message| Err(InputError::at(switch.line, message));
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
        for name in &names {
            if let Some(other) = leaf_of.insert(name.clone(), index) {
                let other = &switches[other];
                return refuse(format!(
                    "node {name} hangs on {} and on {} of line {}",
                    switch.name, other.name, other.line
                ));
            }
        }
        leaves.push(names);
    }
    Ok(leaves)
}

struct Builder {
    switches: Vec<Switch>,
    below: Vec<Vec<usize>>,
    /// Node names of the switches that are leaves; taken as the tree grows.
    leaves: Vec<Vec<String>>,
}

impl Builder {
    fn tree(&mut self, root: usize) -> Result<Tree, InputError> {
        let line = self.switches[root].line;
        let (root, depth) = self.group(root, 1)?;
        Ok(Tree { root, depth, line })
    }

    /// The group of a switch `down` levels under the top, and its levels.
    fn group(&mut self, index: usize, down: usize) -> Result<(Group, usize), InputError> {
        if down > DEEPEST {
            let Switch { name, line, .. } = &self.switches[index];
            let message = format!("switch {name} lies more than {DEEPEST} levels deep");
            return Err(InputError::at(*line, message));
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
        let Switch { name, switches, .. } = &mut self.switches[index];
        let group =
            Group { name: std::mem::take(name), switches: std::mem::take(switches), children };
        Ok((group, depth))
    }
}

/// All nodes of a description, in order.
pub(super) fn nodes_mut(description: &mut Description) -> Vec<&mut NodeDescription> {
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
