//! A placement: the nodes that a request got, and the groups, links and GPUs that follow from them.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use topolane_fabric::{CableId, Fabric, GroupIndex, LinkSet, NodeIndex};

use crate::detours::Spread;
use crate::gpus::GpuSet;
use crate::job_traffic::LaidTraffic;
use crate::request::Share;

/// The nodes given to a request, in rank order, once per slot.
#[derive(Debug, Clone, PartialEq)]
pub struct Placement {
    nodes: Box<[NodeIndex]>,
    share: Share,
    is_isolated: bool,
    reach: Reach,
    /// Groups of level 1 and above with nodes of the placement both inside and outside; none within one domain.
    crossed: Box<[(u8, GroupIndex)]>,
    /// Uplinks that only this job uses, ascending.
    links: Box<[CableId]>,
    bandwidth_share: f64,
    /// Nodes that the job holds and does not use.
    spare: Box<[NodeIndex]>,
    /// The GPUs of each held slot; empty if they are not named.
    gpus: Box<[GpuSet]>,
    traffic: Option<LaidTraffic>,
    /// The links that the job may use on a wiring that is not a tree; in a box of their own, because placements on trees
    /// have none and are copied often.
    wired: Option<Box<WiredLinks>>,
}

/// The links of a job on a wiring that is not a tree.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WiredLinks {
    /// All links that the job may use.
    uses: LinkSet,
    /// The first of the words of `uses` that no other job may use; those after it are not shared either.
    owns_from: usize,
    /// Whether no other job may use the links between groups of a dragonfly.
    is_apart: bool,
    /// The nodes in each group of a dragonfly, if messages of the job may take detours.
    spread: Option<Spread>,
}

impl WiredLinks {
    fn of(fabric: &Fabric, nodes: &[NodeIndex]) -> Self {
        let uses = fabric.links_of(nodes);
        let spread = Spread::of(fabric, nodes);
        WiredLinks { owns_from: uses.words().len(), uses, is_apart: false, spread }
    }

    /// The nodes in each group of a dragonfly, if messages of the job may take detours.
    pub fn spread(&self) -> Option<&Spread> {
        self.spread.as_ref()
    }

    /// Whether some links were promised to the job.
    pub fn has_promise(&self) -> bool {
        self.is_apart || !self.owned_words().is_empty()
    }

    /// Number and bits of the words of all links that the job may use.
    pub fn used_words(&self) -> &[(u32, u64)] {
        self.uses.words()
    }

    /// The words of the links that no other job may use.
    pub fn owned_words(&self) -> &[(u32, u64)] {
        &self.uses.words()[self.owns_from..]
    }
}

/// The links of a placement that has none.
static NO_LINKS: LazyLock<LinkSet> = LazyLock::new(LinkSet::default);

/// The network over which the nodes of a placement reach each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// The links of the tree, if the placement has several nodes.
    Tree,
    /// The network of the one domain that holds all its nodes.
    Domain,
    /// Links of the tree, but other jobs are placed as if it used none.
    Uncounted,
    /// The job also has a part outside this machine.
    Beyond,
}

impl Placement {
    /// Returns a placement on `nodes` whose slots each take `share`.
    pub fn new(fabric: &Fabric, nodes: Vec<NodeIndex>, share: Share) -> Self {
        let reach = if fabric.lie_in_one_domain(&nodes) { Reach::Domain } else { Reach::Tree };
        let crossed = groups_crossed(fabric, &nodes);
        let is_wired = reach == Reach::Tree && !fabric.wiring().is_tree();
        let wired = is_wired.then(|| Box::new(WiredLinks::of(fabric, &nodes)));
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
            wired,
        }
    }

    /// Returns the placement with all uplinks that it uses and no other job may use; on a dragonfly, cables between
    /// groups. A job inside one leaf or group needs none. `bandwidth_share` is the share of full bandwidth that the job
    /// has on them.
    #[must_use]
    pub fn with_links(
        mut self,
        fabric: &Fabric,
        mut links: Vec<CableId>,
        bandwidth_share: f64,
    ) -> Self {
        links.sort_unstable();
        if let Some(wired) = self.wired.as_mut().filter(|_| !links.is_empty()) {
            wired.uses = fabric.links_over(&self.nodes, &links);
            wired.owns_from = 0;
        }
        Placement { links: links.into(), bandwidth_share, ..self }
    }

    /// Returns the placement with spare nodes: the job holds them and does not use them.
    #[must_use]
    pub fn with_spare(self, spare: Vec<NodeIndex>) -> Self {
        Placement { spare: spare.into(), ..self }
    }

    /// Returns the placement with the GPUs of every held slot, in the order of [`Placement::held`]. Without them, an
    /// occupancy only counts GPUs (see [`Occupancy::name_gpus`](crate::Occupancy::name_gpus)).
    #[must_use]
    pub fn with_gpus(self, gpus: Vec<GpuSet>) -> Self {
        Placement { gpus: gpus.into(), ..self }
    }

    /// Returns the placement with its traffic, for an occupancy that tracks traffic.
    #[must_use]
    pub fn with_traffic(self, traffic: Option<LaidTraffic>) -> Self {
        Placement { traffic, ..self }
    }

    /// Returns the placement of a job with a part outside this machine: it crosses every group that holds its nodes.
    #[must_use]
    pub fn reaching_beyond(self, fabric: &Fabric) -> Self {
        let groups =
            |level| self.nodes.iter().map(move |&node| (level as u8, fabric.group(level, node)));
        let crossed: BTreeSet<_> = (1..=fabric.depth()).flat_map(groups).collect();
        Placement { crossed: crossed.into_iter().collect(), reach: Reach::Beyond, ..self }
    }

    /// Returns the placement with this isolation; if `is_isolated`, no other job may use its links.
    #[must_use]
    pub fn isolated(self, is_isolated: bool) -> Self {
        let mut placement = Placement { is_isolated, ..self };
        if let Some(wired) = placement.wired.as_mut().filter(|_| is_isolated) {
            wired.owns_from = 0;
        }
        placement
    }

    /// Returns the placement with the isolation of another.
    #[must_use]
    pub fn isolated_as(self, other: &Placement, fabric: &Fabric) -> Self {
        let placement = self.isolated(other.is_isolated);
        if other.is_isolated_between_groups() {
            placement.isolated_between_groups(fabric)
        } else {
            placement
        }
    }

    /// Returns the placement such that no other job may use its links between the groups of a dragonfly.
    #[must_use]
    pub fn isolated_between_groups(mut self, fabric: &Fabric) -> Self {
        if let (Some(dragonfly), Some(wired)) = (fabric.wiring().dragonfly(), &mut self.wired) {
            let between = dragonfly.between_groups(&wired.uses).len();
            wired.owns_from = wired.uses.words().len() - between;
            wired.is_apart = true;
        }
        self
    }

    /// On a wiring that is not a tree: all directed links between switches that the job may use.
    pub fn uses(&self) -> &LinkSet {
        self.wired.as_ref().map_or_else(|| &*NO_LINKS, |wired| &wired.uses)
    }

    /// The links that the job may use on a wiring that is not a tree.
    #[inline]
    pub(crate) fn wired(&self) -> Option<&WiredLinks> {
        self.wired.as_deref()
    }

    /// Returns the placement as if it used no link, so that other jobs may use all of them.
    #[must_use]
    pub fn without_links(self) -> Self {
        let reach = if self.reach == Reach::Beyond { Reach::Beyond } else { Reach::Uncounted };
        Placement { crossed: Box::default(), wired: None, reach, ..self }
    }

    /// Returns the placement with its nodes in another order.
    #[must_use]
    pub(crate) fn in_order(self, nodes: Vec<NodeIndex>) -> Self {
        Placement { nodes: nodes.into(), ..self }
    }

    /// The nodes in rank order.
    pub fn nodes(&self) -> &[NodeIndex] {
        &self.nodes
    }

    /// Nodes that the job holds and does not use.
    pub fn spare(&self) -> &[NodeIndex] {
        &self.spare
    }

    /// The job's traffic, if the occupancy tracks it.
    pub fn traffic(&self) -> Option<&LaidTraffic> {
        self.traffic.as_ref()
    }

    /// All nodes that the job holds, once per slot.
    pub fn held(&self) -> impl Iterator<Item = NodeIndex> + '_ {
        self.nodes.iter().chain(&*self.spare).copied()
    }

    /// The GPUs of every held slot, in the order of [`Placement::held`]. Empty for whole nodes, for slots without GPUs,
    /// and if GPUs are not named.
    pub fn gpus(&self) -> &[GpuSet] {
        &self.gpus
    }

    /// Every held slot with its GPUs.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (NodeIndex, GpuSet)> + '_ {
        let gpus = self.gpus.iter().copied().chain(std::iter::repeat(GpuSet::EMPTY));
        self.held().zip(gpus)
    }

    /// What each slot takes from its node.
    pub fn share(&self) -> &Share {
        &self.share
    }

    /// Whether no other job may use the links that this job may use.
    pub fn is_isolated(&self) -> bool {
        self.is_isolated
    }

    /// Whether no other job may use the links of this job between groups of a dragonfly.
    pub fn is_isolated_between_groups(&self) -> bool {
        self.wired.as_ref().is_some_and(|wired| wired.is_apart)
    }

    /// The groups of level 1 and above that the job crosses, so that it may use their uplinks. Empty for a job in one
    /// domain.
    pub fn crossed(&self) -> &[(u8, GroupIndex)] {
        &self.crossed
    }

    /// Uplinks of leaves and higher switches that only this job uses, ascending. If empty, the job may use any uplink
    /// of the groups that it crosses.
    pub fn links(&self) -> &[CableId] {
        &self.links
    }

    /// The share of full bandwidth that the job has on its links.
    pub fn bandwidth_share(&self) -> f64 {
        self.bandwidth_share
    }

    /// Whether the job may use a cable. These are the cables it owns or, if it owns none, all uplinks of the groups
    /// that it crosses. A job of several nodes may also use the links of its nodes.
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

    /// Whether the job has several nodes that are not all in one domain, and so uses the links of its nodes.
    pub fn spans_nodes(&self) -> bool {
        match self.reach {
            Reach::Tree => self.nodes.iter().any(|&node| node != self.nodes[0]),
            Reach::Domain | Reach::Uncounted => false,
            Reach::Beyond => true,
        }
    }
}

/// The groups whose uplinks a job on these nodes may use, by level and index. Empty if all nodes are in one domain,
/// otherwise the groups that hold some of the nodes but not all. Two nodes in one domain do not use uplinks, but if a
/// group has nodes of the job inside and outside, all such pairs share a domain only if all nodes do.
pub fn groups_crossed(fabric: &Fabric, nodes: &[NodeIndex]) -> Vec<(u8, GroupIndex)> {
    if fabric.lie_in_one_domain(nodes) {
        return Vec::new();
    }
    crossed_groups(fabric.depth(), |level, node| fabric.group(level, node), nodes)
}

/// Groups of levels 1 to `depth` that hold some of `nodes` but not all of them, by level and index: a job on these
/// nodes crosses them. `group` returns the group of a level that holds a node.
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
