//! What a wiring must know of the hierarchy above which it is laid.

use std::ops::Range;

use crate::ids::GroupIndex;

/// The switches that have nodes.
pub(crate) struct Leaves<'a> {
    /// The name of the machine.
    pub machine: &'a str,
    pub nodes: u32,
    pub depth: usize,
    /// Whether there is one site, and all of it is equally deep.
    pub is_even: bool,
    /// The name of each leaf.
    pub names: Vec<&'a str>,
    /// The name of each group of level 2, and its leaves. Empty if there is no such level.
    pub groups: Vec<(&'a str, Range<GroupIndex>)>,
}
