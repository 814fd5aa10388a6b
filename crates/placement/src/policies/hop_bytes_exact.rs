use topolane_fabric::{Fabric, GroupIndex, NodeIndex};

use crate::{Occupancy, Policy, Refusal, Request, Room};

/// The least hop-bytes there can be for uniform traffic, members already running included: to
/// compare with. Dynamic programming over the tree, since with uniform traffic only the number
/// of members in each group counts; O(depth x slots x wanted) time and memory. Exact on one site
/// and on sites that are all one WAN hop apart.
#[derive(Debug, Clone, Copy, Default)]
pub struct HopBytesExact;

impl Policy for HopBytesExact {
    fn name(&self) -> &'static str {
        "hop-bytes-exact"
    }

    fn choose(
        &self,
        request: &Request,
        room: &Room<'_>,
        _: &Occupancy,
    ) -> Result<Vec<NodeIndex>, Refusal> {
        let search =
            Search { room, request, all: u64::from(request.nodes) + request.members.len() as u64 };
        let top = room.fabric().depth();
        let machine = search.merged(top, 0..room.fabric().sites());
        let mut nodes = Vec::with_capacity(request.nodes as usize);
        search.take(top, &machine, request.nodes, &mut nodes);
        nodes.sort_unstable();
        Ok(nodes)
    }

    fn count_only(&self) -> bool {
        true
    }
}

/// The best cost of every number of slots taken from some groups, and how to get there.
struct Table {
    /// Cost by number of slots.
    cost: Vec<u64>,
    parts: Vec<Part>,
}

/// One group among those merged.
struct Part {
    group: GroupIndex,
    below: Option<Table>,
    /// By number of slots in this part and all before it: how many are in this part.
    share: Vec<u32>,
}

struct Search<'a> {
    room: &'a Room<'a>,
    request: &'a Request,
    all: u64,
}

impl Search<'_> {
    /// Pairs that leave a group of `level` when it holds `inside` of all members.
    fn cost(&self, level: usize, group: GroupIndex, inside: u64) -> u64 {
        let apart = inside * (self.all - inside);
        let fabric = self.room.fabric();
        if level < fabric.depth() {
            let above = fabric.parent(level, group);
            apart * 2 * u64::from(!fabric.is_padding(level + 1, above))
        } else {
            // Each pair of nodes at two sites is counted from both, as on every level.
            apart * u64::from(fabric.sites() > 1)
        }
    }

    fn merged(&self, level: usize, groups: std::ops::Range<GroupIndex>) -> Table {
        let wanted = self.request.nodes as usize;
        let mut merged = Table { cost: vec![0], parts: Vec::new() };
        for group in groups {
            let (below, own) = self.one(level, group);
            let most = (merged.cost.len() + own.len() - 2).min(wanted);
            let mut cost = vec![u64::MAX; most + 1];
            let mut share = vec![0; most + 1];
            for (before, &so_far) in merged.cost.iter().enumerate() {
                for (here, &add) in own.iter().enumerate().take(most + 1 - before.min(most + 1)) {
                    let both = so_far + add;
                    if both < cost[before + here] {
                        cost[before + here] = both;
                        share[before + here] = here as u32;
                    }
                }
            }
            merged.cost = cost;
            merged.parts.push(Part { group, below, share });
        }
        merged
    }

    /// Costs of one group by slots taken from it, with the table of what is below.
    fn one(&self, level: usize, group: GroupIndex) -> (Option<Table>, Vec<u64>) {
        let fabric: &Fabric = self.room.fabric();
        let inside = |&&member: &&NodeIndex| fabric.group(level, member) == group;
        let members = self.request.members.iter().filter(inside).count() as u64;
        let slots = self.room.count(level, group).min(self.request.nodes) as usize;
        let below = (level > 1).then(|| self.merged(level - 1, fabric.children(level, group)));
        let lower = |taken: usize| below.as_ref().map_or(0, |table| table.cost[taken]);
        let costs = (0..=slots)
            .map(|taken| lower(taken) + self.cost(level, group, members + taken as u64))
            .collect();
        (below, costs)
    }

    fn take(&self, level: usize, table: &Table, wanted: u32, nodes: &mut Vec<NodeIndex>) {
        let mut left = wanted;
        for part in table.parts.iter().rev() {
            let here = part.share[left as usize];
            left -= here;
            match &part.below {
                Some(below) => self.take(level - 1, below, here, nodes),
                None => {
                    self.room.take(level, part.group, here, nodes);
                }
            }
        }
    }
}
