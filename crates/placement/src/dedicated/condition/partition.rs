//! A job's nodes and cables, sorted by leaf and pod.

use std::collections::BTreeMap;

use topolane_fabric::{CableId, Fabric, GroupIndex, NodeIndex};

use crate::dedicated::condition::violation::Violation;

/// Cables to each parent of a switch. Parallel cables are alike, so their number is all that matters.
pub(crate) type Cables = Vec<u32>;

/// A leaf with nodes of the job.
#[derive(Debug, Clone)]
pub(crate) struct LeafPart {
    pub leaf: GroupIndex,
    /// Index of its pod in the job's list of pods.
    pub pod: usize,
    pub nodes: u32,
    pub cables: Cables,
}

/// A pod with nodes of the job.
#[derive(Debug, Clone)]
pub(crate) struct PodPart {
    pub pod: GroupIndex,
    pub nodes: u32,
    /// For each plane, the cables to the core.
    pub planes: Vec<Cables>,
}

/// The nodes and cables that a job holds, by leaf and pod.
#[derive(Debug, Clone, Default)]
pub(crate) struct NetworkPartition {
    pub nodes: u32,
    pub leaves: Vec<LeafPart>,
    pub pods: Vec<PodPart>,
}

impl NetworkPartition {
    /// Sorts nodes and cables by leaf and pod. Skips cables of other rails and cables of leaves and pods without nodes
    /// of the job.
    pub fn of(
        fabric: &Fabric,
        nodes: &[NodeIndex],
        links: &[CableId],
        rail: u32,
    ) -> Result<Self, Violation> {
        let mut nodes = nodes.to_vec();
        nodes.sort_unstable();
        nodes.dedup();
        if let Some(&node) = nodes.last().filter(|&&node| node >= fabric.nodes()) {
            return Err(Violation::NoSuchNode { node });
        }
        let mut partition =
            NetworkPartition { nodes: nodes.len() as u32, ..NetworkPartition::default() };
        for node in nodes {
            partition.add_node(fabric, node);
        }
        partition.add_links(fabric, links, rail)?;
        Ok(partition)
    }

    fn add_node(&mut self, fabric: &Fabric, node: NodeIndex) {
        let leaf = fabric.group(1, node);
        if let Some(part) = self.leaves.last_mut().filter(|part| part.leaf == leaf) {
            part.nodes += 1;
            self.pods[part.pod].nodes += 1;
            return;
        }
        let site = fabric.site_of_group(1, leaf);
        let parents = |level| {
            if level < fabric.depth() { fabric.cabling(site, level).parents as usize } else { 0 }
        };
        let pod = if fabric.depth() > 1 { fabric.group(2, node) } else { leaf };
        if self.pods.last().is_none_or(|part| part.pod != pod) {
            // No job owns links above the level where rails meet.
            let own = fabric.depth() > 2 && fabric.rails_at(site, 2) == fabric.rails(site);
            let planes = vec![vec![0; if own { parents(2) } else { 0 }]; parents(1)];
            self.pods.push(PodPart { pod, nodes: 0, planes });
        }
        let at = self.pods.len() - 1;
        self.pods[at].nodes += 1;
        self.leaves.push(LeafPart { leaf, pod: at, nodes: 1, cables: vec![0; parents(1)] });
    }

    fn add_links(
        &mut self,
        fabric: &Fabric,
        links: &[CableId],
        rail: u32,
    ) -> Result<(), Violation> {
        let leaves: BTreeMap<GroupIndex, usize> =
            self.leaves.iter().enumerate().map(|(at, part)| (part.leaf, at)).collect();
        let pods: BTreeMap<GroupIndex, usize> =
            self.pods.iter().enumerate().map(|(at, part)| (part.pod, at)).collect();
        let mut links = links.to_vec();
        links.sort_unstable();
        for (index, &cable) in links.iter().enumerate() {
            if !fabric.has_cable(cable) {
                return Err(Violation::NoSuchCable { cable });
            }
            if index > 0 && links[index - 1] == cable {
                return Err(Violation::CableTwice { cable });
            }
            match fabric.cable_place(cable) {
                Some((1, leaf, switch, parent, _)) if switch == rail => {
                    if let Some(&at) = leaves.get(&leaf) {
                        self.leaves[at].cables[parent as usize] += 1;
                    }
                }
                Some((2, pod, plane, parent, _)) => {
                    let width = fabric.rail_width(fabric.site_of_group(2, pod), 2);
                    let plane = plane.checked_sub(rail * width).filter(|&plane| plane < width);
                    let (Some(plane), Some(&at)) = (plane, pods.get(&pod)) else { continue };
                    if let Some(cables) =
                        self.pods[at].planes[plane as usize].get_mut(parent as usize)
                    {
                        *cables += 1;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}
