use topolane_fabric::GroupIndex;

use crate::{Choice, FreeSlots, Occupancy, Policy, Refusal, Request, Traits};

/// Level-Spread (Zhang et al., IPDPS 2018, rebuilt): the smallest level that holds the job, and there evenly over as
/// many routers as possible.
///
/// A job goes to one router if one has enough free nodes, else to one group if one has, else over the whole machine.
/// Of several routers or groups it takes the one with the fewest free nodes that suffice. Inside, each group below
/// gets as many nodes as any other, as far as it has them. The paper does not say how ties break: by index here.
#[derive(Debug, Clone, Copy, Default)]
pub struct LevelSpread;

impl Policy for LevelSpread {
    fn name(&self) -> &'static str {
        "level-spread"
    }

    fn traits(&self) -> Traits {
        Traits::COUNT_ONLY
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        _: &Occupancy,
    ) -> Result<Choice, Refusal> {
        let top = free.fabric().depth();
        let home = (1..=top).find_map(|level| {
            let able = free.groups_with(level, request.nodes);
            able.min_by_key(|&group| free.count(level, group)).map(|group| (level, group))
        });
        let mut homes = home.map_or_else(
            || (0..free.fabric().sites()).map(|site| (top, site)).collect(),
            |home| vec![home],
        );
        let mut nodes = Vec::with_capacity(request.nodes as usize);
        while let Some((level, group)) = homes.pop() {
            let left = request.nodes - nodes.len() as u32;
            spread(free, level, group, left.min(free.count(level, group)), &mut nodes);
        }
        nodes.sort_unstable();
        Ok(Choice::nodes(nodes))
    }
}

/// Takes `wanted` slots of a group, which has as many, evenly from the groups below it; in no order.
pub(super) fn spread(
    free: &FreeSlots<'_>,
    level: usize,
    group: GroupIndex,
    wanted: u32,
    nodes: &mut Vec<u32>,
) {
    if level == 1 {
        free.take(1, group, wanted, nodes);
        return;
    }
    let mut below: Vec<GroupIndex> = free.fabric().children(level, group).collect();
    below.sort_by_key(|&child| free.count(level - 1, child));
    let mut left = wanted;
    for (place, &child) in below.iter().enumerate() {
        // Those with the fewest slots come first, so the others can make up for what these lack.
        let share = left.div_ceil((below.len() - place) as u32);
        let taken = share.min(free.count(level - 1, child));
        spread(free, level - 1, child, taken, nodes);
        left -= taken;
    }
}
