//! Restricts a machine to some of its nodes, with the switches above them.

use super::Fabric;
use crate::description::{Children, Group, SiteDescription};
use crate::error::InputError;
use crate::ids::NodeIndex;
use crate::nodeset::NodeSet;

impl Fabric {
    /// Returns the machine with only these nodes, for example those of a partition. Switches without remaining nodes
    /// are removed; the others keep their cables.
    ///
    /// # Errors
    /// No node is left.
    pub fn only(&self, nodes: &NodeSet) -> Result<Fabric, InputError> {
        let mut description = self.description();
        let mut next = 0;
        description.sites.retain_mut(|site| {
            let mut part = KeptPart { nodes, next, kept: vec![Vec::new(); self.depth() + 1] };
            let depth = depth_of(&site.root);
            let any = part.prune(&mut site.root, depth);
            next = part.next;
            site.missing.retain_mut(|cable| {
                let kept = part.kept.get(cable.level).and_then(|of_level| {
                    let is_kept = *of_level.get(cable.group as usize)?;
                    let before = of_level[..cable.group as usize].iter().filter(|&&kept| kept);
                    is_kept.then(|| before.count() as u32)
                });
                cable.group = kept.unwrap_or_default();
                kept.is_some()
            });
            if any {
                take_out_padding(site, depth - depth_of(&site.root));
            }
            any
        });
        let left: Vec<String> =
            description.sites.iter().map(|site| site.root.name.clone()).collect();
        description
            .wans
            .retain(|wan| left.contains(&wan.between.0) && left.contains(&wan.between.1));
        for domain in &mut description.domains {
            let is_left =
                |name: &String| self.node_named(name).is_some_and(|node| nodes.contains(node));
            domain.nodes.retain(is_left);
        }
        description.domains.retain(|domain| !domain.nodes.is_empty());
        if description.domains.is_empty() {
            description.block_sizes.clear();
        }
        Fabric::build(&description)
    }
}

/// Removes the levels above the leaves that are padding on all remaining branches. Their cabling connects nothing,
/// except that only each `step`-th of the switches above has a cable down: those switches stay.
fn take_out_padding(site: &mut SiteDescription, levels: usize) {
    let above_leaves = (site.cabling.len() - levels).min(2);
    let padding = site.cabling.drain(above_leaves..above_leaves + levels);
    let step = padding.map(|cabling| cabling.parents).product::<u32>();
    site.missing.retain_mut(|cable| {
        let above = cable.level >= above_leaves + levels;
        let stays = !above || cable.switch % step == 0;
        if above {
            cable.level -= levels;
            cable.switch /= step;
        }
        stays
    });
}

fn depth_of(group: &Group) -> usize {
    match &group.children {
        Children::Nodes(_) => 1,
        Children::Groups(groups) => 1 + groups.iter().map(depth_of).max().unwrap_or_default(),
    }
}

struct KeptPart<'a> {
    nodes: &'a NodeSet,
    /// The index of the next node in the whole machine.
    next: NodeIndex,
    /// By level: for each group of the site in order, whether it is kept.
    kept: Vec<Vec<bool>>,
}

impl KeptPart<'_> {
    /// Removes unwanted nodes and groups below a group of `level`. Returns whether anything is left.
    fn prune(&mut self, group: &mut Group, level: usize) -> bool {
        let place = self.kept[level].len();
        self.kept[level].push(false);
        let any = match &mut group.children {
            // On a short branch, there is padding between this level and the leaf.
            Children::Nodes(_) if level > 1 => self.prune(group, level - 1),
            Children::Nodes(nodes) => {
                nodes.retain(|_| {
                    let keep = self.nodes.contains(self.next);
                    self.next += 1;
                    self.kept[0].push(keep);
                    keep
                });
                !nodes.is_empty()
            }
            Children::Groups(groups) => {
                groups.retain_mut(|child| self.prune(child, level - 1));
                !groups.is_empty()
            }
        };
        self.kept[level][place] = any;
        any
    }
}
