use topolane_fabric::BlockIndex;

use super::{SegmentParts, SegmentPlan};
use crate::policies::Dedicated;
use crate::{
    Choice, DedicatesLinks, FreeSlots, Homes, Occupancy, Policy, Refusal, Request, RoomHelps,
    Traits,
};

/// The most blocks tried for a request that fits in one. Each try searches for links.
const TRIED: usize = 16;

/// Segments as in [`Segments`](super::Segments), with links of its own for every job. It makes one plan after another
/// and asks [`Dedicated`] whether links are free for the nodes. It may miss a placement, because it does not try all
/// plans.
#[derive(Debug)]
pub struct DedicatedSegments {
    links: Dedicated,
}

impl Default for DedicatedSegments {
    fn default() -> Self {
        DedicatedSegments { links: Dedicated::new() }
    }
}

impl DedicatedSegments {
    /// For each block, the slots on leaves with free uplinks: those that can communicate with other blocks.
    fn reaching(free: &FreeSlots<'_>, counts: &[u32], occupancy: &Occupancy) -> Vec<u32> {
        let fabric = free.fabric();
        let within_leaves = !fabric.domains_span_leaves();
        let mut reaching = counts.to_vec();
        for leaf in 0..fabric.groups(1) {
            let all = free.count(1, leaf);
            let mut left = occupancy.free_uplink_slots(1, leaf, 0).count_ones();
            if left >= all {
                continue;
            }
            let nodes = fabric.node_range(1, leaf);
            if left == 0 && within_leaves {
                let mut blocks = nodes.map(|node| fabric.block(node)).peekable();
                while let Some(block) = blocks.next() {
                    reaching[block as usize] = 0;
                    while blocks.next_if_eq(&block).is_some() {}
                }
                continue;
            }
            for node in nodes {
                let slots = free.count(0, node);
                if slots == 0 {
                    continue;
                }
                if left > 0 {
                    left -= 1;
                } else {
                    let count = &mut reaching[fabric.block(node) as usize];
                    *count = count.saturating_sub(slots);
                }
            }
        }
        reaching
    }

    /// The nodes of the plan with links of their own; `None` if there are no free links.
    fn with_links(
        &self,
        plan: &SegmentPlan,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Option<Choice> {
        let nodes = plan.nodes(free);
        let mut inside = nodes.clone();
        inside.sort_unstable();
        let narrowed = free.on(inside.iter().copied());
        let choice = self.links.choose(request, &narrowed, occupancy).ok()?;
        let mut chosen = choice.nodes.clone();
        chosen.sort_unstable();
        // The order of the plan keeps segments together. Stacked slots may have been taken in another order.
        Some(if chosen == inside { Choice { nodes, ..choice } } else { choice })
    }

    fn in_block(
        &self,
        block: BlockIndex,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Option<Choice> {
        let narrowed = free.on(free.fabric().block_nodes(block).iter().copied());
        self.links.choose(request, &narrowed, occupancy).ok()
    }

    /// The first blocks to try for a request that fits in one: blocks with jobs first, the tightest of them first.
    fn holding(parts: SegmentParts, counts: &[u32], occupancy: &Occupancy) -> Vec<BlockIndex> {
        let wanted = parts.wanted();
        let holds = |&(_, &count): &(BlockIndex, &u32)| count >= wanted;
        let mut holding: Vec<(bool, u32, BlockIndex)> = (0..)
            .zip(counts)
            .filter(holds)
            .map(|(block, &count)| (occupancy.held_in_block(block) == 0, count, block))
            .collect();
        holding.sort_unstable();
        holding.into_iter().take(TRIED).map(|(.., block)| block).collect()
    }

    /// Calls `ask` for plans over several blocks, each plan once. Returns its first answer.
    fn over_blocks<T>(
        parts: SegmentParts,
        counts: &[u32],
        (free, occupancy): (&FreeSlots<'_>, &Occupancy),
        ask: impl Fn(&SegmentPlan) -> Option<T>,
    ) -> Option<T> {
        let is_empty = |block| occupancy.held_in_block(block) == 0;
        let reaching = DedicatedSegments::reaching(free, counts, occupancy);
        // Usually all free nodes have free uplinks, so both counts are equal.
        let other = (reaching != counts).then_some(counts);
        let mut asked: Vec<SegmentPlan> = Vec::new();
        for counts in std::iter::once(&reaching[..]).chain(other) {
            // Prefer blocks with jobs; if that finds no links, treat all blocks alike.
            for prefers in [true, false] {
                let plan = SegmentPlan::of(parts, counts, |block| prefers && is_empty(block));
                let is_new = |plan: &SegmentPlan| plan.blocks() > 1 && !asked.contains(plan);
                let Some(plan) = plan.filter(is_new) else { continue };
                let found = ask(&plan);
                if found.is_some() {
                    return found;
                }
                asked.push(plan);
            }
        }
        None
    }
}

/// Whether any block with enough slots gives a placement: every block is on one leaf, and every slot is on a node of
/// its own.
fn is_decided_by_blocks(request: &Request, free: &FreeSlots<'_>) -> bool {
    !free.fabric().domains_span_leaves() && !request.stacked
}

impl Policy for DedicatedSegments {
    fn name(&self) -> &'static str {
        "segments-dedicated"
    }

    fn traits(&self) -> Traits {
        Traits { room_helps: RoomHelps::Mostly, ..Traits::ISOLATES }
    }

    fn homes(&self, request: &Request, occupancy: &Occupancy) -> Option<Homes> {
        SegmentParts::of(request, occupancy).homes(occupancy)
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<Choice, Refusal> {
        let free = &free.unshared(request, occupancy);
        let parts = SegmentParts::of(request, occupancy);
        parts.check(free)?;
        let counts = free.in_blocks();
        let mut blocks = DedicatedSegments::holding(parts, &counts, occupancy).into_iter();
        if let Some(choice) =
            blocks.find_map(|block| self.in_block(block, request, free, occupancy))
        {
            return Ok(choice);
        }
        let found = DedicatedSegments::over_blocks(parts, &counts, (free, occupancy), |plan| {
            self.with_links(plan, request, free, occupancy)
        });
        found.ok_or_else(|| free.would_share_links(request))
    }

    fn has_place(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<(), Refusal> {
        let free = &free.unshared(request, occupancy);
        let parts = SegmentParts::of(request, occupancy);
        parts.check(free)?;
        let counts = free.in_blocks();
        let by_blocks = is_decided_by_blocks(request, free);
        if by_blocks && counts.iter().any(|&count| count >= parts.wanted()) {
            return Ok(());
        }
        let has_place =
            |narrowed: &FreeSlots<'_>| self.links.has_place(request, narrowed, occupancy).is_ok();
        let in_block = |block: BlockIndex| {
            has_place(&free.on(free.fabric().block_nodes(block).iter().copied()))
        };
        if DedicatedSegments::holding(parts, &counts, occupancy).into_iter().any(in_block) {
            return Ok(());
        }
        let found = DedicatedSegments::over_blocks(parts, &counts, (free, occupancy), |plan| {
            has_place(&free.on(plan.nodes(free))).then_some(())
        });
        found.ok_or_else(|| free.would_share_links(request))
    }

    fn dedicates_links(&self) -> Option<&dyn DedicatesLinks> {
        Some(&self.links)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::Arc;

    use topolane_fabric::{Fabric, pgft};

    use super::*;
    use crate::{Placement, Share};

    /// The plans are made for both kinds of counts, with and without preferred blocks, each once and in that order.
    #[test]
    fn every_plan_is_asked_about_once() -> Result<(), Box<dyn std::error::Error>> {
        let fabric = Arc::new(Fabric::build(&pgft("n", &[4, 4], &[1, 4], &[1, 1]))?);
        let mut fewer = 0;
        // Bit b of `held` says whether node b is held.
        for held in (0u32..1 << 16).step_by(97) {
            let nodes: Vec<u32> = (0..16).filter(|node| held >> node & 1 == 1).collect();
            let mut occupancy = Occupancy::new(Arc::clone(&fabric));
            // One job over all leaves without links of its own leaves no uplink on the leaves that it crosses.
            if !nodes.is_empty() {
                occupancy.claim(&Placement::new(&fabric, nodes, Share::Whole))?;
            }
            for (wanted, segment) in [(5, 1), (6, 2), (7, 3), (8, 4)] {
                let request =
                    Request { segment: Some(segment), ..Request::whole_nodes(1, wanted, 1.0) };
                let (free, parts) =
                    (occupancy.free_slots(&request), SegmentParts::of(&request, &occupancy));
                let counts = free.in_blocks();
                let reaching = DedicatedSegments::reaching(&free, &counts, &occupancy);
                let mut slow = Vec::new();
                for counts in [&reaching[..], &counts] {
                    for prefers in [true, false] {
                        let is_empty = |block| prefers && occupancy.held_in_block(block) == 0;
                        slow.extend(
                            SegmentPlan::of(parts, counts, is_empty).filter(|p| p.blocks() > 1),
                        );
                    }
                }
                let all = slow.len();
                let mut once: Vec<SegmentPlan> = Vec::new();
                for plan in slow {
                    if !once.contains(&plan) {
                        once.push(plan);
                    }
                }
                let asked = RefCell::new(Vec::new());
                DedicatedSegments::over_blocks(parts, &counts, (&free, &occupancy), |plan| {
                    asked.borrow_mut().push(plan.clone());
                    None::<()>
                });
                assert_eq!(asked.into_inner(), once, "{held:b} {wanted}");
                fewer += usize::from(once.len() < all);
            }
        }
        assert!(fewer > 0, "some plans are alike");
        Ok(())
    }
}
