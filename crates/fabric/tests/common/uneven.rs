//! Trees put together by hand.

use topolane_fabric::{Children, Group, NodeDescription};

/// A leaf of nodes `{name}n0`, ...
pub fn leaf(name: &str, nodes: usize) -> Group {
    let nodes = (0..nodes).map(|i| NodeDescription { name: format!("{name}n{i}"), kind: 0 });
    Group {
        name: name.to_owned(),
        switches: Vec::new(),
        children: Children::Nodes(nodes.collect()),
    }
}

/// A group of groups.
pub fn over(name: &str, groups: Vec<Group>) -> Group {
    Group { name: name.to_owned(), switches: Vec::new(), children: Children::Groups(groups) }
}
