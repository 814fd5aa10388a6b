//! A partition as a search finds it, before nodes and cables are chosen.

use topolane_fabric::GroupIndex;

use crate::dedicated::search::candidates::Candidates;
use crate::dedicated::search::leaf::Leaf;
use crate::dedicated::search::slot_sets::lowest;
use crate::{Choice, FreeSlots, Occupancy};

/// The nodes and slots taken on each leaf, and the core slots of each pod in each plane.
#[derive(Debug, Clone, Default)]
pub struct DedicatedPlan {
    pub leaves: Vec<(GroupIndex, u32, u64)>,
    /// For each pod and plane, the core slots taken.
    pub core: Vec<(GroupIndex, u32, u64)>,
    /// The cost to later jobs; lower is better.
    pub cost: f64,
}

impl DedicatedPlan {
    /// Puts the whole job on the leaf where it costs least.
    pub fn on_one_leaf(candidates: &Candidates<'_>) -> Option<Self> {
        let wanted = candidates.wanted;
        let holds = |leaf: &&Leaf| leaf.idle >= wanted;
        let costs = candidates.leaves.iter().filter(holds);
        let costs = costs.map(|leaf| (leaf.leaf, candidates.weights.cost(leaf, wanted, 0)));
        let (leaf, cost) =
            costs.min_by(|one, other| one.1.total_cmp(&other.1).then(one.0.cmp(&other.0)))?;
        Some(DedicatedPlan { leaves: vec![(leaf, wanted, 0)], core: Vec::new(), cost })
    }

    /// The cheaper of two plans, the first if they cost the same.
    pub fn cheaper(one: Option<Self>, other: Self) -> Self {
        match one {
            Some(one) if one.cost <= other.cost => one,
            _ => other,
        }
    }

    /// Reduces the plan to what a job needs that accepts the share `bandwidth_share`: the lowest planes only. The
    /// remainder, leaves that own fewer planes, keeps the same share of its own planes.
    pub fn shrunk(mut self, candidates: &Candidates<'_>, bandwidth_share: f64) -> Self {
        let set = self.leaves.iter().fold(0, |set, leaf| set | leaf.2);
        let part =
            self.leaves.iter().map(|leaf| leaf.2).min_by_key(|set| set.count_ones()).unwrap_or(0);
        let is_plain = self.leaves.iter().all(|leaf| leaf.2 == set || leaf.2 == part);
        if !is_plain || self.leaves.first().is_some_and(|leaf| candidates.parallel(leaf.0) > 1) {
            return self;
        }
        let share = |set: u64| (f64::from(set.count_ones()) * bandwidth_share).ceil() as u32;
        let kept_part = lowest(part, share(part));
        let kept = kept_part | lowest(set & !part, share(set).saturating_sub(share(part)));
        for leaf in &mut self.leaves {
            leaf.2 &= kept;
        }
        self.core.retain(|&(_, plane, _)| kept >> plane & 1 == 1);
        self
    }

    /// Adds nodes on leaves that own these slots.
    pub fn add(
        &mut self,
        candidates: &Candidates<'_>,
        leaves: &[Leaf],
        taken: &[(usize, u32)],
        slots: u64,
    ) {
        for &(at, nodes) in taken {
            self.leaves.push((leaves[at].leaf, nodes, slots));
            self.cost += candidates.weights.cost(&leaves[at], nodes, slots.count_ones());
        }
    }

    /// Chooses the nodes and cables of the plan.
    pub fn choice(&self, occupancy: &Occupancy, free: &FreeSlots<'_>) -> Choice {
        let mut choice = Choice::nodes(Vec::new());
        for &(leaf, nodes, slots) in &self.leaves {
            free.take(1, leaf, nodes, &mut choice.nodes);
            occupancy.cables_of((1, leaf, 0), slots, &mut choice.links);
        }
        for &(pod, plane, slots) in &self.core {
            occupancy.cables_of((2, pod, plane), slots, &mut choice.links);
        }
        choice.nodes.sort_unstable();
        choice
    }
}
