//! Plans how many slots a request takes from each block.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use topolane_fabric::{BlockIndex, NodeIndex};

use super::SegmentParts;
use crate::FreeSlots;

/// The slots to take from each block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SegmentPlan {
    /// Blocks, and the slots of whole segments to take from each; ascending in a finished plan.
    whole: Vec<(BlockIndex, u32)>,
    /// The block of the rest, and the number of its slots.
    rest: Option<(BlockIndex, u32)>,
}

/// A block that could be used.
#[derive(Debug, Clone, Copy)]
struct UsableBlock {
    index: BlockIndex,
    free: u32,
    is_empty: bool,
}

impl UsableBlock {
    /// A sort key: blocks with jobs before empty ones, then the tightest first.
    fn tightness(&self) -> (bool, u32, BlockIndex) {
        (self.is_empty, self.free, self.index)
    }
}

/// A block in the order in which blocks take whole segments: fewest slots left over first, then the fullest.
#[derive(Debug, Clone, Copy)]
struct Ranked {
    over: u32,
    block: UsableBlock,
}

impl Ranked {
    fn key(&self) -> (u32, Reverse<u32>, BlockIndex) {
        (self.over, Reverse(self.block.free), self.block.index)
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl SegmentPlan {
    /// Plans a request, given the free slots of each block; `None` if the parts do not fit.
    pub fn of(
        parts: SegmentParts,
        counts: &[u32],
        is_empty: impl Fn(BlockIndex) -> bool,
    ) -> Option<SegmentPlan> {
        let wanted = parts.wanted();
        let holding = |(index, &free): (BlockIndex, &u32)| {
            (free >= wanted).then(|| UsableBlock { index, free, is_empty: is_empty(index) })
        };
        let one = (0..).zip(counts).filter_map(holding).min_by_key(UsableBlock::tightness);
        let in_one = |block: UsableBlock| SegmentPlan::in_one(parts, block.index);
        match one {
            Some(block) if !block.is_empty => return Some(in_one(block)),
            Some(block) if parts.segment == wanted => return Some(in_one(block)),
            None if parts.segment == wanted => return None,
            _ => {}
        }
        let block = |(index, &free)| UsableBlock { index, free, is_empty: is_empty(index) };
        let blocks: Vec<UsableBlock> =
            (0..).zip(counts).map(block).filter(|b| b.free > 0).collect();
        let Some(one) = one else { return SegmentPlan::over(parts, blocks) };
        let with_jobs = blocks.into_iter().filter(|block| !block.is_empty).collect();
        SegmentPlan::over(parts, with_jobs).or_else(|| Some(in_one(one)))
    }

    /// Returns a plan in one block, which must hold all parts.
    pub fn in_one(parts: SegmentParts, block: BlockIndex) -> SegmentPlan {
        let rest = (parts.rest > 0).then_some((block, parts.rest));
        SegmentPlan { whole: vec![(block, parts.whole * parts.segment)], rest }
    }

    /// Returns a plan over several blocks. Blocks where whole segments leave the fewest slots over come first.
    fn over(parts: SegmentParts, blocks: Vec<UsableBlock>) -> Option<SegmentPlan> {
        if !parts.fit_in(blocks.iter().map(|block| block.free)) {
            return None;
        }
        let SegmentParts { segment, .. } = parts;
        let most = blocks.iter().map(|block| block.free).max().unwrap_or(0);
        // A heap, because a plan takes only a few of the blocks.
        let ranked = |block: UsableBlock| Reverse(Ranked { over: block.free % segment, block });
        let mut left_over: BinaryHeap<Reverse<Ranked>> = blocks.into_iter().map(ranked).collect();
        let mut taken: Vec<UsableBlock> = Vec::new();
        let mut plan = SegmentPlan::default();
        let mut left = parts.whole;
        while left > 0 {
            // Take the tightest block that holds all that is left, if there is one.
            let all = left * segment + parts.rest;
            if all <= most
                && let Some(last) = tightest(left_over.iter().map(|ranked| &ranked.0.block), all)
            {
                plan.whole.push((last, left * segment));
                plan.rest = (parts.rest > 0).then_some((last, parts.rest));
                return Some(plan.sorted());
            }
            let mut block = left_over.pop()?.0.block;
            let segments = (block.free / segment).min(left);
            if segments > 0 {
                plan.whole.push((block.index, segments * segment));
                block.free -= segments * segment;
                block.is_empty = false;
                left -= segments;
            }
            taken.push(block);
        }
        if parts.rest > 0 {
            let blocks = left_over.iter().map(|ranked| &ranked.0.block).chain(&taken);
            let last = tightest(blocks, parts.rest)?;
            plan.rest = Some((last, parts.rest));
        }
        Some(plan.sorted())
    }

    /// The number of blocks used.
    pub fn blocks(&self) -> usize {
        let of_rest = self.rest.filter(|rest| self.whole.iter().all(|whole| whole.0 != rest.0));
        self.whole.len() + usize::from(of_rest.is_some())
    }

    fn sorted(mut self) -> SegmentPlan {
        self.whole.sort_unstable();
        self
    }

    /// The nodes of the plan: segment after segment, then the rest.
    pub fn nodes(&self, free: &FreeSlots<'_>) -> Vec<NodeIndex> {
        let (mut nodes, mut last) = (Vec::new(), Vec::new());
        for &(block, slots) in &self.whole {
            let rest = self.rest.filter(|rest| rest.0 == block).map_or(0, |rest| rest.1);
            free.take_in_block(block, slots + rest, &mut nodes);
            last.extend(nodes.drain(nodes.len().saturating_sub(rest as usize)..));
        }
        if let Some((block, rest)) = self.rest.filter(|_| last.is_empty()) {
            free.take_in_block(block, rest, &mut last);
        }
        nodes.append(&mut last);
        nodes
    }
}

/// The block that can hold `slots` slots and leaves the fewest over; blocks with jobs before empty ones.
fn tightest<'b>(blocks: impl Iterator<Item = &'b UsableBlock>, slots: u32) -> Option<BlockIndex> {
    let holding = blocks.filter(|block| block.free >= slots);
    holding.min_by_key(|block| block.tightness()).map(|block| block.index)
}
