use topolane_fabric::BlockIndex;

use super::{Parts, Plan};
use crate::policies::isolated::class_of;
use crate::policies::{Dedicated, Isolated};
use crate::{
    Choice, DedicatesLinks, FreeSlots, Occupancy, Policy, Refusal, Request, RoomHelps, Traits,
};

/// Blocks that are tried for a request that fits one: each costs a search for links.
const TRIED: usize = 16;

/// Segments as of [`Segments`](super::Segments), on links that no other job uses: whether links can be had is asked of another
/// rule, for the nodes of one plan after another. It may miss a placement, because it does not try all plans.
#[derive(Debug)]
pub struct LinkedSegments {
    name: &'static str,
    links: Links,
}

/// The rule that gives links.
#[derive(Debug)]
enum Links {
    Isolated(Isolated),
    Dedicated(Box<Dedicated>),
}

impl LinkedSegments {
    /// Links that no other job may use, whatever the routes.
    pub fn isolated() -> Self {
        LinkedSegments { name: "segments-isolated", links: Links::Isolated(Isolated) }
    }

    /// Links of its own for every job.
    pub fn dedicated() -> Self {
        let links = Links::Dedicated(Box::new(Dedicated::new()));
        LinkedSegments { name: "segments-dedicated", links }
    }

    fn rule(&self) -> &dyn Policy {
        match &self.links {
            Links::Isolated(rule) => rule,
            Links::Dedicated(rule) => &**rule,
        }
    }

    /// Slots of every block that may come with links to other blocks: those on leaves with uplinks left.
    fn reaching(&self, free: &FreeSlots<'_>, counts: &[u32], occupancy: &Occupancy) -> Vec<u32> {
        let fabric = free.fabric();
        let within_leaves = !fabric.domains_span_leaves();
        let mut reaching = counts.to_vec();
        for leaf in 0..fabric.groups(1) {
            let all = free.count(1, leaf);
            let mut left = self.uplinks(occupancy, leaf);
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

    /// Nodes of a leaf that may send to others at full rate on uplinks that no job has.
    fn uplinks(&self, occupancy: &Occupancy, leaf: u32) -> u32 {
        match self.links {
            Links::Isolated(_) if occupancy.crossing(1, leaf) > 0 => 0,
            Links::Isolated(_) => u32::MAX,
            Links::Dedicated(_) => occupancy.free_uplink_slots(1, leaf, 0).count_ones(),
        }
    }

    /// The plan's nodes with links, if the rule finds any.
    fn with_links(
        &self,
        plan: &Plan,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Option<Choice> {
        let nodes = plan.nodes(free);
        let mut inside = nodes.clone();
        inside.sort_unstable();
        let narrowed = free.on(inside.iter().copied());
        let choice = self.rule().choose(request, &narrowed, occupancy).ok()?;
        let mut chosen = choice.nodes.clone();
        chosen.sort_unstable();
        // The order of the plan keeps segments together; stacked slots may have been taken otherwise.
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
        self.rule().choose(request, &narrowed, occupancy).ok()
    }

    /// The first blocks to try for a request that fits one: those with jobs first, the tightest of them first.
    fn holding(parts: Parts, counts: &[u32], occupancy: &Occupancy) -> Vec<BlockIndex> {
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

    /// The first of what `ask` finds for the plans over several blocks, without those that are known to have no links.
    fn over_blocks<T>(
        &self,
        parts: Parts,
        counts: &[u32],
        (request, free, occupancy): (&Request, &FreeSlots<'_>, &Occupancy),
        ask: impl Fn(&Plan) -> Option<T>,
    ) -> Option<T> {
        let fabric = free.fabric();
        let class = match self.links {
            Links::Isolated(_) if tells_by_blocks(request, free) => {
                Some(class_of(request, occupancy).ok()?)
            }
            _ => None,
        };
        let is_empty = |block| occupancy.held_in_block(block) == 0;
        let reaching = self.reaching(free, counts, occupancy);
        for counts in [&reaching[..], counts] {
            // Blocks with jobs are preferred, and if that finds no links all blocks are alike.
            for prefers in [true, false] {
                let mut home = None;
                let accepts = |block| {
                    let Some(class) = class else { return true };
                    let node = fabric.block_nodes(block)[0];
                    let own = fabric.group(class, node);
                    let is_clear =
                        |level| occupancy.crossing(level, fabric.group(level, node)) == 0;
                    *home.get_or_insert(own) == own && (1..class).all(is_clear)
                };
                let plan = Plan::accepted(parts, counts, |b| prefers && is_empty(b), accepts);
                let found = plan.filter(|plan| plan.blocks() > 1).and_then(|plan| ask(&plan));
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }
}

/// Whether the blocks of a plan tell if isolated jobs have links there: every block is on one leaf, and every node is one slot.
/// Then a block that holds a job is a place for it under any rule.
fn tells_by_blocks(request: &Request, free: &FreeSlots<'_>) -> bool {
    !free.fabric().domains_span_leaves() && !request.stacked
}

impl Policy for LinkedSegments {
    fn name(&self) -> &'static str {
        self.name
    }

    fn traits(&self) -> Traits {
        Traits { room_helps: RoomHelps::Mostly, ..Traits::ISOLATES }
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<Choice, Refusal> {
        let free = &free.unshared(request, occupancy);
        let parts = Parts::of(request, occupancy);
        parts.check(free)?;
        let counts = free.in_blocks();
        // What is isolated on some of the nodes is so on all.
        if let Links::Isolated(rule) = &self.links
            && rule.has_place(request, free, occupancy).is_err()
        {
            return Err(Refusal::would_share(request, free));
        }
        let mut blocks = LinkedSegments::holding(parts, &counts, occupancy).into_iter();
        if let Some(choice) =
            blocks.find_map(|block| self.in_block(block, request, free, occupancy))
        {
            return Ok(choice);
        }
        let found = self.over_blocks(parts, &counts, (request, free, occupancy), |plan| {
            self.with_links(plan, request, free, occupancy)
        });
        found.ok_or_else(|| Refusal::would_share(request, free))
    }

    fn has_place(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<(), Refusal> {
        let free = &free.unshared(request, occupancy);
        let parts = Parts::of(request, occupancy);
        parts.check(free)?;
        let counts = free.in_blocks();
        let by_blocks = tells_by_blocks(request, free);
        if by_blocks && counts.iter().any(|&count| count >= parts.wanted()) {
            return Ok(());
        }
        if let Links::Isolated(rule) = &self.links
            && rule.has_place(request, free, occupancy).is_err()
        {
            return Err(Refusal::would_share(request, free));
        }
        let has_place =
            |narrowed: &FreeSlots<'_>| self.rule().has_place(request, narrowed, occupancy).is_ok();
        let in_block = |block: BlockIndex| {
            has_place(&free.on(free.fabric().block_nodes(block).iter().copied()))
        };
        if LinkedSegments::holding(parts, &counts, occupancy).into_iter().any(in_block) {
            return Ok(());
        }
        let found = self.over_blocks(parts, &counts, (request, free, occupancy), |plan| {
            let is_known = by_blocks && matches!(self.links, Links::Isolated(_));
            (is_known || has_place(&free.on(plan.nodes(free)))).then_some(())
        });
        found.ok_or_else(|| Refusal::would_share(request, free))
    }

    fn dedicates_links(&self) -> Option<&dyn DedicatesLinks> {
        self.rule().dedicates_links()
    }
}
