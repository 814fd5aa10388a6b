//! Replaces the resources of nodes by what a scheduler counts there.

use super::Fabric;
use crate::description::{Children, Group};
use crate::error::InputError;
use crate::node_kind::NodeKind;
use crate::resources::ResourceCounts;

impl Fabric {
    /// Returns the machine with these numbers of cores and other resources on each node, by node index. Everything else
    /// stays the same. Nodes beyond the end of the list are unchanged.
    ///
    /// # Errors
    /// A count that no node can have: no core, or a count that [`ResourceCounts::check`] refuses.
    pub fn counting(&self, counts: &[(u32, ResourceCounts)]) -> Result<Fabric, InputError> {
        let mut description = self.description();
        let (old, mut kinds) = (description.kinds.clone(), Vec::new());
        let mut next = counts.iter();
        for site in &mut description.sites {
            recount(&mut site.root, &old, &mut kinds, &mut next);
        }
        description.kinds = kinds;
        Fabric::build(&description)
    }
}

fn recount<'a>(
    group: &mut Group,
    old: &[NodeKind],
    kinds: &mut Vec<NodeKind>,
    next: &mut impl Iterator<Item = &'a (u32, ResourceCounts)>,
) {
    match &mut group.children {
        Children::Groups(groups) => {
            for each in groups {
                recount(each, old, kinds, next);
            }
        }
        Children::Nodes(nodes) => {
            for node in nodes {
                let mut kind = old[node.kind as usize].clone();
                if let Some((cores, counts)) = next.next() {
                    if kind.sockets == 0 || cores % kind.sockets != 0 {
                        kind.sockets = 1;
                    }
                    kind.cores_per_socket = cores / kind.sockets;
                    kind.resources = counts.clone();
                }
                let known = kinds.iter().position(|each| *each == kind);
                node.kind = known.unwrap_or(kinds.len()) as u32;
                if known.is_none() {
                    kinds.push(kind);
                }
            }
        }
    }
}
