//! What a policy answers: the nodes, and what they imply.

use std::collections::BTreeSet;

use topolane_fabric::{CableId, Fabric, GroupIndex, NodeIndex};

use crate::gpus::GpuSet;
use crate::job_traffic::LaidTraffic;
use crate::request::Share;

/// The nodes given to a request, in rank order; a node stands once per slot on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Placement {
    nodes: Box<[NodeIndex]>,
    share: Share,
    is_isolated: bool,
    reach: Reach,
    /// Groups of level 1 and above with nodes of the placement inside and outside; none in one domain.
    crossed: Box<[(u8, GroupIndex)]>,
    /// Ascending.
    links: Box<[CableId]>,
    bandwidth_share: f64,
    /// Held, but not used.
    spare: Box<[NodeIndex]>,
    /// Of each slot held; empty if they are not named.
    gpus: Box<[GpuSet]>,
    traffic: Option<LaidTraffic>,
}

/// Over what its nodes reach each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Links of the tree, if it has several nodes.
    Tree,
    /// The network of the one domain that all its nodes are in.
    Domain,
    /// Links of the tree, which do not count as used.
    Uncounted,
    /// It has a part where the machine does not reach.
    Beyond,
}

impl Placement {
    /// A placement of slots that each take `share` on `nodes`.
    pub fn new(fabric: &Fabric, nodes: Vec<NodeIndex>, share: Share) -> Self {
        let reach = if fabric.lie_in_one_domain(&nodes) { Reach::Domain } else { Reach::Tree };
        let crossed = groups_crossed(fabric, &nodes);
        Placement {
            nodes: nodes.into(),
            share,
            is_isolated: false,
            reach,
            crossed: crossed.into(),
            links: Box::default(),
            bandwidth_share: 1.0,
            spare: Box::default(),
            gpus: Box::default(),
            traffic: None,
        }
    }

    /// The same with all uplinks that it uses, if no other job uses them: a job inside one leaf needs none. `bandwidth_share`
    /// is the share of full bandwidth that it has on them.
    #[must_use]
    pub fn with_links(self, mut links: Vec<CableId>, bandwidth_share: f64) -> Self {
        links.sort_unstable();
        Placement { links: links.into(), bandwidth_share, ..self }
    }

    /// The same with nodes that it holds in addition to its own and does not use, for a rule that gives more than was asked for.
    #[must_use]
    pub fn with_spare(self, spare: Vec<NodeIndex>) -> Self {
        Placement { spare: spare.into(), ..self }
    }

    /// The same with the GPUs of every slot that it holds, in the order of [`Placement::held`]. Without them, a state takes the number
    /// of GPUs only (see [`Occupancy::name_gpus`](crate::Occupancy::name_gpus)).
    #[must_use]
    pub fn with_gpus(self, gpus: Vec<GpuSet>) -> Self {
        Placement { gpus: gpus.into(), ..self }
    }

    /// The same with what it sends, for a state that keeps count of it.
    #[must_use]
    pub fn with_traffic(self, traffic: Option<LaidTraffic>) -> Self {
        Placement { traffic, ..self }
    }

    /// The same with a part where the machine does not reach: it crosses every group that it is in.
    #[must_use]
    pub fn reaching_beyond(self, fabric: &Fabric) -> Self {
        let groups =
            |level| self.nodes.iter().map(move |&node| (level as u8, fabric.group(level, node)));
        let crossed: BTreeSet<_> = (1..=fabric.depth()).flat_map(groups).collect();
        Placement { crossed: crossed.into_iter().collect(), reach: Reach::Beyond, ..self }
    }

    /// The same; if `is_isolated`, no other job may use its links.
    #[must_use]
    pub fn isolated(self, is_isolated: bool) -> Self {
        Placement { is_isolated, ..self }
    }

    /// The same on nodes alone: other jobs are placed as if it used no link.
    #[must_use]
    pub fn without_links(self) -> Self {
        let reach = if self.reach == Reach::Beyond { Reach::Beyond } else { Reach::Uncounted };
        Placement { crossed: Box::default(), reach, ..self }
    }

    /// The same with its nodes in another order.
    #[must_use]
    pub(crate) fn in_order(self, nodes: Vec<NodeIndex>) -> Self {
        Placement { nodes: nodes.into(), ..self }
    }

    /// The nodes in rank order.
    pub fn nodes(&self) -> &[NodeIndex] {
        &self.nodes
    }

    /// Nodes that it holds in addition and does not use.
    pub fn spare(&self) -> &[NodeIndex] {
        &self.spare
    }

    /// What it sends, where the state keeps count of that.
    pub fn traffic(&self) -> Option<&LaidTraffic> {
        self.traffic.as_ref()
    }

    /// All nodes that it holds, once per slot.
    pub fn held(&self) -> impl Iterator<Item = NodeIndex> + '_ {
        self.nodes.iter().chain(&*self.spare).copied()
    }

    /// The GPUs of every slot held, in the order of [`Placement::held`]; empty for whole nodes, for slots that take no GPU, and
    /// where they are not named.
    pub fn gpus(&self) -> &[GpuSet] {
        &self.gpus
    }

    /// The slots held, each with its GPUs.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (NodeIndex, GpuSet)> + '_ {
        let gpus = self.gpus.iter().copied().chain(std::iter::repeat(GpuSet::EMPTY));
        self.held().zip(gpus)
    }

    /// What each slot takes from its node.
    pub fn share(&self) -> &Share {
        &self.share
    }

    /// Whether no other job may use the links that it may use.
    pub fn is_isolated(&self) -> bool {
        self.is_isolated
    }

    /// The groups it crosses, level 1 and above: it may use their uplinks. None for a job in one domain.
    pub fn crossed(&self) -> &[(u8, GroupIndex)] {
        &self.crossed
    }

    /// Uplinks of leaves and of the switches above that only this job uses, ascending. If it crosses groups and has none
    /// it may use any of theirs.
    pub fn links(&self) -> &[CableId] {
        &self.links
    }

    /// The share of full bandwidth that it has on its links.
    pub fn bandwidth_share(&self) -> f64 {
        self.bandwidth_share
    }

    /// Whether it may use a cable: one that it owns, or if it owns none any uplink of a group that it crosses, and those of
    /// its nodes if it has several.
    pub fn may_use(&self, fabric: &Fabric, cable: CableId) -> bool {
        match fabric.cable_place(cable) {
            Some((0, node, ..)) => self.spans_nodes() && self.nodes.contains(&node),
            Some((level, group, ..)) if self.links.is_empty() => {
                self.crossed.contains(&(level as u8, group))
            }
            Some(_) => self.links.binary_search(&cable).is_ok(),
            None => false,
        }
    }

    /// Whether it holds more than one node, not all in one domain, and so uses the links of its nodes.
    pub fn spans_nodes(&self) -> bool {
        match self.reach {
            Reach::Tree => self.nodes.iter().any(|&node| node != self.nodes[0]),
            Reach::Domain | Reach::Uncounted => false,
            Reach::Beyond => true,
        }
    }
}

/// The groups whose uplinks a job on these nodes may use, by level and index: none if all are in one domain, otherwise those
/// that hold some of the nodes but not all. A pair of nodes in one domain does not use them; but if a group has nodes of the
/// job inside and outside, all such pairs are in one domain only if all nodes of the job are.
pub fn groups_crossed(fabric: &Fabric, nodes: &[NodeIndex]) -> Vec<(u8, GroupIndex)> {
    if fabric.lie_in_one_domain(nodes) {
        return Vec::new();
    }
    crossed_groups(fabric.depth(), |level, node| fabric.group(level, node), nodes)
}

/// Groups of levels 1 to `depth` that hold some of `nodes` but not all of them, by level and index: the nodes' job
/// crosses them. `group` returns the group of a level that a node is in.
pub fn crossed_groups(
    depth: usize,
    group: impl Fn(usize, NodeIndex) -> GroupIndex,
    nodes: &[NodeIndex],
) -> Vec<(u8, GroupIndex)> {
    let mut crossed = Vec::new();
    for level in 1..=depth {
        let before = crossed.len();
        for &node in nodes {
            let entry = (level as u8, group(level, node));
            if crossed.last() != Some(&entry) {
                crossed.push(entry);
            }
        }
        crossed[before..].sort_unstable();
        let mut kept = before;
        for index in before..crossed.len() {
            if kept == before || crossed[kept - 1] != crossed[index] {
                crossed[kept] = crossed[index];
                kept += 1;
            }
        }
        crossed.truncate(kept);
        if crossed.len() - before <= 1 {
            crossed.truncate(before);
            break;
        }
    }
    crossed
}
