//! A partition as it is found, before its nodes and cables have numbers.

use topolane_fabric::GroupIndex;

use crate::owned::board::Board;
use crate::owned::fill::one_leaf;
use crate::owned::site::lowest;
use crate::{Choice, FreeSlots};

/// Nodes and lanes of each leaf, lanes to the core of each plane of each pod.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    pub leaves: Vec<(GroupIndex, u32, u64)>,
    /// Pod, plane, lanes.
    pub core: Vec<(GroupIndex, u32, u64)>,
    /// What it takes from those who come later; the less the better.
    pub cost: f64,
}

impl Plan {
    /// All of the job on the leaf that it fits best.
    pub fn on_one_leaf(board: &Board<'_>) -> Option<Self> {
        let (leaf, cost) = one_leaf(&board.leaves, board.wanted)?;
        Some(Plan { leaves: vec![(leaf, board.wanted, 0)], core: Vec::new(), cost })
    }

    /// The same on a share of the planes, the lowest: what is left of the bandwidth for a job that accepts so much. The
    /// remainder, leaves that own fewer planes than the others, keeps its share of its own.
    pub fn shrunk(mut self, board: &Board<'_>, bandwidth_share: f64) -> Self {
        let set = self.leaves.iter().fold(0, |set, leaf| set | leaf.2);
        let part =
            self.leaves.iter().map(|leaf| leaf.2).min_by_key(|set| set.count_ones()).unwrap_or(0);
        let is_plain = self.leaves.iter().all(|leaf| leaf.2 == set || leaf.2 == part);
        if !is_plain || self.leaves.first().is_some_and(|leaf| board.parallel(leaf.0) > 1) {
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

    /// The nodes and cables.
    pub fn choice(&self, board: &Board<'_>, free: &FreeSlots<'_>) -> Choice {
        let mut choice = Choice::nodes(Vec::new());
        for &(leaf, nodes, lanes) in &self.leaves {
            free.take(1, leaf, nodes, &mut choice.nodes);
            board.occupancy.cables_of((1, leaf, 0), lanes, &mut choice.links);
        }
        for &(pod, plane, lanes) in &self.core {
            board.occupancy.cables_of((2, pod, plane), lanes, &mut choice.links);
        }
        choice.nodes.sort_unstable();
        choice
    }
}
