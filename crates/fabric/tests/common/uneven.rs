//! Trees that are put together group by group.

use topolane_fabric::{Children, Group, NodeDescription};

/// A leaf with the nodes `{name}n0`, `{name}n1` and so on.
pub fn leaf(name: &str, nodes: usize) -> Group {
    let nodes = (0..nodes).map(|i| NodeDescription { name: format!("{name}n{i}"), kind: 0 });
    Group {
        name: name.to_owned(),
        switches: Vec::new(),
        children: Children::Nodes(nodes.collect()),
    }
}

/// A group of these groups.
pub fn over(name: &str, groups: Vec<Group>) -> Group {
    Group { name: name.to_owned(), switches: Vec::new(), children: Children::Groups(groups) }
}
