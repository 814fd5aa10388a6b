//! Numbers of nodes, groups and cables.

/// A node. Nodes are numbered in leaf order.
pub type NodeIndex = u32;
/// A group. The groups of a level are numbered in node order.
pub type GroupIndex = u32;
/// A cable of the tree or, with higher numbers, a WAN link.
pub type CableId = u32;
