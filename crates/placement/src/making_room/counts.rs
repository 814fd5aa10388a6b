//! Slots that another system counts: how many there are once some jobs are gone.

use std::sync::Arc;

use topolane_fabric::NodeIndex;

/// Amounts by node that another system keeps count of, from which slots follow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CountedAmounts {
    /// What a slot takes of each kind of amount. Kinds of which it takes nothing do not count.
    pub takes: Vec<i64>,
    /// What is free of each kind, node after node; below 0 where more is held than there is.
    pub free: Vec<i64>,
    /// The most slots of each node, whatever leaves it. Nodes beyond have none.
    pub most: Vec<u32>,
    /// What each job leaves, in the order of the jobs that are given.
    pub left: Vec<FreedAmounts>,
}

/// What a job leaves once it is gone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FreedAmounts {
    /// The nodes.
    pub nodes: Vec<NodeIndex>,
    /// The amount of each kind, node after node.
    pub amounts: Vec<i64>,
}

impl FreedAmounts {
    /// Each node with the amounts that the job leaves there.
    pub(super) fn rows(&self, kinds: usize) -> impl Iterator<Item = (NodeIndex, &[i64])> {
        self.nodes.iter().copied().zip(self.amounts.chunks_exact(kinds.max(1)))
    }
}

/// What of a node is short for the next slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Short {
    /// The kind of which there is least.
    pub kind: usize,
    /// How much of it is missing for one slot more.
    pub by: i128,
}

impl CountedAmounts {
    /// The slots of every node without some of the jobs.
    pub fn slots(&self, gone: impl IntoIterator<Item = usize>) -> Arc<[u32]> {
        let kinds = self.takes.len();
        let mut free = self.free.clone();
        for left in gone.into_iter().filter_map(|job| self.left.get(job)) {
            for (node, amounts) in left.rows(kinds) {
                let own = free.iter_mut().skip(node as usize * kinds);
                own.zip(amounts).for_each(|(free, left)| *free = free.saturating_add(*left));
            }
        }
        (0..self.most.len()).map(|node| self.slots_with(node, &free)).collect()
    }

    fn slots_with(&self, node: usize, free: &[i64]) -> u32 {
        let most = i64::from(self.most[node]);
        let kinds = self.takes.len();
        let of = |(kind, &takes): (usize, &i64)| {
            let free = free.get(node * kinds + kind).copied().unwrap_or(0);
            (takes > 0).then(|| free.max(0) / takes)
        };
        self.takes.iter().enumerate().filter_map(of).fold(most, i64::min).max(0) as u32
    }

    /// What a node has least of now, in slots.
    pub(super) fn short(&self, node: NodeIndex) -> Option<Short> {
        let kinds = self.takes.len();
        let free = |kind: usize| self.free.get(node as usize * kinds + kind).copied().unwrap_or(0);
        let used = (0..kinds).filter(|&kind| self.takes[kind] > 0);
        let kind = used.min_by_key(|&kind| free(kind).max(0) / self.takes[kind])?;
        let (free, takes) = (i128::from(free(kind)), i128::from(self.takes[kind]));
        Some(Short { kind, by: (free.max(0) / takes + 1) * takes - free })
    }
}
