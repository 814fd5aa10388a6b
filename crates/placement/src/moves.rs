//! Moves of running members: the fewest moves that reduce a group's hops the most.

use topolane_fabric::{Fabric, GroupIndex, NodeIndex};

use crate::group_costs::{GroupLoad, LeastCosts, hops};
use crate::least_sums::FORBIDDEN;
use crate::occupancy::Occupancy;
use crate::quality::Quality;
use crate::request::Request;

/// A running group whose members may be moved.
#[derive(Debug, Clone, Copy)]
pub struct RunningGroup<'a> {
    /// The nodes of the members that may move, once per member.
    pub members: &'a [NodeIndex],
    /// The nodes of members that must stay.
    pub fixed: &'a [NodeIndex],
    /// For each node, its free slots now.
    pub slots: &'a [u32],
    /// Whether several members may lie on one node.
    pub stacked: bool,
    /// Whether the group needs links that no other job uses.
    pub isolates: bool,
}

/// The move of one member to another node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemberMove {
    /// Index of the member in the list of members.
    pub member: usize,
    /// The node that the member leaves.
    pub from: NodeIndex,
    /// The node that the member goes to; it is free at that moment.
    pub to: NodeIndex,
    /// The sum of hops over all pairs of the group before this move.
    pub before: f64,
    /// The sum of hops after this move.
    pub after: f64,
}

/// Returns the moves to make, in this order, to reduce hops by at least `price` per move.
///
/// The final placement has the least possible sum of hops plus `price` times the number of moves. This is exact for
/// uniform traffic ([`LeastCosts`]). After each move the group is no worse off than at the start. If the way to the
/// best placement does not allow that, only moves that pay on their own are made. Sharing links that other jobs own, or
/// sharing any link if the group isolates, counts as worse than any number of hops.
pub fn moves(group: RunningGroup<'_>, occupancy: &Occupancy, price: u32) -> Vec<MemberMove> {
    let search = MoveSearch { group, occupancy, fabric: occupancy.fabric() };
    let start = search.badness(group.members);
    let found = search.best(price).map(|counts| search.towards(&counts)).unwrap_or_default();
    let stays_good = found.iter().all(|(_, badness)| *badness <= start);
    let found = if stays_good { found } else { search.incremental(f64::from(price)) };
    found.into_iter().map(|(step, _)| step).collect()
}

struct MoveSearch<'a> {
    group: RunningGroup<'a>,
    occupancy: &'a Occupancy,
    fabric: &'a Fabric,
}

/// The number of crossed groups whose links other jobs hold, then the sum of hops over pairs. Lower is better.
type Badness = (usize, f64);

impl MoveSearch<'_> {
    fn floor(&self) -> usize {
        usize::from(!self.group.stacked)
    }

    fn taken(&self, level: usize, group: GroupIndex) -> bool {
        let others = if self.group.isolates {
            self.occupancy.crossing(level, group)
        } else {
            self.occupancy.isolated_crossing(level, group)
        };
        others > 0
    }

    fn inside(&self, nodes: &[NodeIndex], level: usize, group: GroupIndex) -> usize {
        nodes.iter().filter(|&&node| self.fabric.group(level, node) == group).count()
    }

    /// How bad it is if the members that may move are on `nodes`.
    fn badness(&self, nodes: &[NodeIndex]) -> Badness {
        let nodes = &[nodes, self.group.fixed].concat()[..];
        let mut shared = 0;
        for level in self.floor()..=self.fabric.depth() {
            let mut groups: Vec<GroupIndex> =
                nodes.iter().map(|&node| self.fabric.group(level, node)).collect();
            groups.sort_unstable();
            groups.dedup();
            let crossed = groups.len() > 1;
            shared += groups.iter().filter(|&&group| crossed && self.taken(level, group)).count();
        }
        (shared, Quality::of(self.fabric, nodes).pair_hops)
    }

    /// The best number of members for every group of the floor's level.
    fn best(&self, price: u32) -> Option<Vec<u32>> {
        let (members, floor) = (self.group.members, self.floor());
        let own = |node| members.iter().filter(|&&member| member == node).count() as u32;
        let free = |node: NodeIndex| self.group.slots.get(node as usize).copied().unwrap_or(0);
        let slots = (0..self.fabric.nodes()).map(|node| free(node).saturating_add(own(node)));
        let request = Request {
            slots: Some(slots.collect()),
            stacked: self.group.stacked,
            members: self.group.fixed.to_vec(),
            ..Request::whole_nodes(0, members.len() as u32, f64::INFINITY)
        };
        let mut here = vec![0; self.fabric.groups(floor) as usize];
        for &member in members {
            here[self.fabric.group(floor, member) as usize] += 1;
        }
        let cost = |load: GroupLoad| {
            let parted = load.parted();
            if parted > 0 && self.taken(load.level, load.group) {
                return FORBIDDEN;
            }
            // Costs are four times the hops. The extra 1 per move favours staying among equals.
            let arrivals = if load.level == floor {
                load.taken.saturating_sub(here[load.group as usize])
            } else {
                0
            };
            let moved = u64::from(arrivals) * (4 * u64::from(price) + 1);
            let apart = if load.level == 0 { 0 } else { parted * hops(self.fabric, &load) };
            2 * apart + moved
        };
        let free = self.occupancy.free_slots(&request);
        let nodes = LeastCosts::new(&request, &free, &cost).nodes()?;
        let mut wanted = vec![0; here.len()];
        for node in nodes {
            wanted[self.fabric.group(floor, node) as usize] += 1;
        }
        Some(wanted)
    }

    /// The moves that bring every group to its wanted number of members, the best move first.
    fn towards(&self, wanted: &[u32]) -> Vec<(MemberMove, Badness)> {
        let floor = self.floor();
        self.steps(|nodes, node, to| {
            let (from, to) = (self.fabric.group(floor, node), self.fabric.group(floor, to));
            self.inside(nodes, floor, from) > wanted[from as usize] as usize
                && self.inside(nodes, floor, to) < wanted[to as usize] as usize
        })
    }

    /// The best move, then the next best, as long as each reduces hops by `price` or shared links.
    fn incremental(&self, price: f64) -> Vec<(MemberMove, Badness)> {
        let leaf = |node| self.fabric.group(1, node);
        let mut steps = self.steps(|_, node, to| leaf(node) != leaf(to));
        let mut before = self.badness(self.group.members);
        let mut kept = 0;
        for &(_, after) in &steps {
            let pays = after.0 < before.0 || after.0 == before.0 && before.1 - after.1 >= price;
            if !pays || after == before {
                break;
            }
            kept += 1;
            before = after;
        }
        steps.truncate(kept);
        steps
    }

    /// Moves for which `may` holds, one after another, each the best at its time. At most one per member.
    fn steps(
        &self,
        may: impl Fn(&[NodeIndex], NodeIndex, NodeIndex) -> bool,
    ) -> Vec<(MemberMove, Badness)> {
        let mut nodes = self.group.members.to_vec();
        let mut slots = self.group.slots.to_vec();
        let mut steps = Vec::new();
        let mut moved = vec![false; nodes.len()];
        while let Some((step, badness)) = self.best_step(&nodes, &moved, &slots, &may) {
            nodes[step.member] = step.to;
            moved[step.member] = true;
            slots[step.to as usize] -= 1;
            slots[step.from as usize] += 1;
            steps.push((step, badness));
        }
        steps
    }

    fn best_step(
        &self,
        nodes: &[NodeIndex],
        moved: &[bool],
        slots: &[u32],
        may: &impl Fn(&[NodeIndex], NodeIndex, NodeIndex) -> bool,
    ) -> Option<(MemberMove, Badness)> {
        let before = self.badness(nodes).1;
        let floor = self.floor();
        let mut best: Option<(MemberMove, Badness)> = None;
        // All members in one group that may still move are alike, and so are its free nodes: try one of each.
        let mut tried = vec![false; self.fabric.groups(floor) as usize];
        for (member, &from) in nodes.iter().enumerate().filter(|&(member, _)| !moved[member]) {
            let group = self.fabric.group(floor, from);
            if std::mem::replace(&mut tried[group as usize], true) {
                continue;
            }
            for target in 0..self.fabric.groups(floor) {
                let mut free = self.fabric.node_range(floor, target);
                let fits = |to: &NodeIndex| slots.get(*to as usize).is_some_and(|&slots| slots > 0);
                let Some(to) =
                    free.find(fits).filter(|&to| target != group && may(nodes, from, to))
                else {
                    continue;
                };
                let mut after = nodes.to_vec();
                after[member] = to;
                let badness = self.badness(&after);
                if best.is_none_or(|(_, least)| badness < least) {
                    best =
                        Some((MemberMove { member, from, to, before, after: badness.1 }, badness));
                }
            }
        }
        best
    }
}
