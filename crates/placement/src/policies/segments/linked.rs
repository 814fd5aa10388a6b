use topolane_fabric::BlockIndex;

use super::{Parts, Plan};
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
    fn reaching(&self, free: &FreeSlots<'_>, occupancy: &Occupancy) -> Vec<u32> {
        let fabric = free.fabric();
        let mut uplinks: Vec<u32> =
            (0..fabric.groups(1)).map(|leaf| self.uplinks(occupancy, leaf)).collect();
        let mut counts = vec![0u32; fabric.blocks() as usize];
        for node in free.nodes() {
            let left = &mut uplinks[fabric.group(1, node) as usize];
            if *left > 0 {
                *left -= 1;
                let count = &mut counts[fabric.block(node) as usize];
                *count = count.saturating_add(free.count(0, node));
            }
        }
        counts
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
        let is_empty = |block| occupancy.held_in_block(block) == 0;
        let mut holding: Vec<BlockIndex> = (0..free.fabric().blocks())
            .filter(|&block| counts[block as usize] >= parts.wanted())
            .collect();
        holding.sort_by_key(|&block| (is_empty(block), counts[block as usize]));
        let mut blocks = holding.into_iter().take(TRIED);
        if let Some(choice) =
            blocks.find_map(|block| self.in_block(block, request, free, occupancy))
        {
            return Ok(choice);
        }
        // Blocks with jobs are preferred, and if that finds no links all blocks are alike.
        let reaching = self.reaching(free, occupancy);
        let of = |counts: &[u32]| {
            let preferring = Plan::of(parts, counts, is_empty);
            [preferring, Plan::of(parts, counts, |_| false)]
        };
        let plans = [&reaching[..], &counts].into_iter().flat_map(of).flatten();
        let mut plans = plans.filter(|plan| plan.blocks() > 1);
        let found = plans.find_map(|plan| self.with_links(&plan, request, free, occupancy));
        found.ok_or_else(|| Refusal::would_share(request, free))
    }

    fn dedicates_links(&self) -> Option<&dyn DedicatesLinks> {
        self.rule().dedicates_links()
    }
}
