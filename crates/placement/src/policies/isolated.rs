use std::cmp::Reverse;

use topolane_fabric::{Fabric, GroupIndex, NodeIndex};

use crate::apart::choice_apart;
use crate::promise::Promise;
use crate::{
    Choice, FreeSlots, Homes, Looking, Obstacle, Occupancy, Policy, Refusal, Request, Traits,
    Wirings,
};

/// Interference-free allocation (SC'18): no link carries traffic of two jobs, whatever the routing.
///
/// The class of a job is the lowest level with a group large enough for it, counting slots on the empty machine: T1 a
/// leaf, T2 a pod, T3 the machine, and so on for deeper trees. A job of class k lies inside one group of level k. Of
/// every lower group that it crosses it is the only job to do so, so no other job uses the uplinks that it may use.
///
/// A job inside one domain uses no link of the tree and conflicts with no other job. If domains span leaves, a job that
/// fits in one goes to the domain with the fewest free slots that suffice.
///
/// On a dragonfly or HyperX, no other job may use a link on any minimal route between nodes of the job: see `dragonfly`
/// and `hyperx`. On a torus, a job has the links of a prism: see `torus`.
///
/// Otherwise the choice is as in the paper: groups that can hold the whole job are tried with the fewest free slots
/// first; inside, groups that the job may cross are filled with the most free slots first.
#[derive(Debug, Clone, Copy, Default)]
pub struct Isolated;

impl Policy for Isolated {
    fn name(&self) -> &'static str {
        "isolated"
    }

    fn traits(&self) -> Traits {
        Traits { wirings: Wirings::ANY, ..Traits::ISOLATES }
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<Choice, Refusal> {
        if !free.fabric().wiring().is_tree() {
            return choice_apart(Promise::AllLinks, request, free, occupancy);
        }
        if let Some(nodes) = in_one_domain(request, free) {
            return Ok(Choice::nodes(nodes));
        }
        let class = class_among(free, request, occupancy)?;
        let unshared = free.unshared(request, occupancy);
        let search = IsolatedSearch { free: &unshared, occupancy, class, wanted: request.nodes };
        let top = free.fabric().depth();
        let home =
            search.least_available(0..free.fabric().sites(), top, |site| search.home(top, site));
        let home = home.ok_or_else(|| free.would_share_links(request))?;
        let mut nodes = Vec::with_capacity(request.nodes as usize);
        search.fill(class, home, request.nodes, &mut nodes);
        nodes.sort_unstable();
        Ok(Choice::nodes(nodes))
    }

    fn has_place(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<(), Refusal> {
        if !free.fabric().wiring().is_tree() {
            return self.choose(request, free, occupancy).map(drop);
        }
        if in_one_domain(request, free).is_some() {
            return Ok(());
        }
        let class = class_among(free, request, occupancy)?;
        let unshared = free.unshared(request, occupancy);
        let search = IsolatedSearch { free: &unshared, occupancy, class, wanted: request.nodes };
        // If a group has enough slots, so have the groups around it, so one loop over the class is enough.
        let has_home = (0..free.fabric().groups(class)).any(|group| search.is_home(group));
        if has_home { Ok(()) } else { Err(free.would_share_links(request)) }
    }

    fn homes(&self, request: &Request, occupancy: &Occupancy) -> Option<Homes> {
        if !occupancy.fabric().wiring().is_tree() {
            return None;
        }
        let class = class_of(request, occupancy).ok()?;
        let fabric = occupancy.fabric();
        let mut homes = Homes::groups(fabric, class, request.nodes);
        if fabric.domains_span_leaves() {
            homes.sets.extend(Homes::domains(fabric, request.nodes).sets);
        }
        Some(homes)
    }

    fn obstacles(&self, looking: &Looking<'_>) -> (usize, Vec<Obstacle>) {
        let top = looking.occupancy.fabric().depth();
        if !looking.occupancy.fabric().wiring().is_tree() {
            return (top, Vec::new());
        }
        let class = class_of(looking.request, looking.occupancy).unwrap_or(top);
        (class, looking.crossed(class, true))
    }
}

/// Returns slots for the whole job in one domain, if domains span leaves: in the domain with the fewest free slots that
/// suffice.
fn in_one_domain(request: &Request, free: &FreeSlots<'_>) -> Option<Vec<NodeIndex>> {
    let fabric = free.fabric();
    if !fabric.domains_span_leaves() || !request.members.is_empty() {
        return None;
    }
    let slots = |domain| {
        let nodes = fabric.domain_nodes(domain).iter();
        nodes.map(|&node| free.count(0, node)).fold(0, u32::saturating_add)
    };
    let rooms = (0..fabric.domains()).map(|domain| (slots(domain), domain));
    let (_, domain) = rooms.filter(|&(slots, _)| slots >= request.nodes).min()?;
    let mut taken = Vec::with_capacity(request.nodes as usize);
    for &node in fabric.domain_nodes(domain) {
        let left = request.nodes - taken.len() as u32;
        let count = free.count(0, node).min(left);
        taken.extend(std::iter::repeat_n(node, count as usize));
    }
    Some(taken)
}

/// The lowest level with a group of at least `nodes` nodes, and all such groups of that level; an empty list if no site
/// is large enough.
pub fn homes(fabric: &Fabric, nodes: u32) -> (usize, Vec<GroupIndex>) {
    let holds = |level, group: &GroupIndex| {
        fabric.node_range(level, *group).len() as u64 >= u64::from(nodes)
    };
    let of = |level| (0..fabric.groups(level)).filter(move |group| holds(level, group)).collect();
    let levels = (1..=fabric.depth()).map(|level| (level, of(level)));
    levels.into_iter().find(|(_, groups): &(usize, Vec<_>)| !groups.is_empty()).unwrap_or_default()
}

/// The class of a job: the lowest level with a group that has enough slots on the empty machine.
fn class_of(request: &Request, occupancy: &Occupancy) -> Result<usize, Refusal> {
    let empty = slots_at_best(request, occupancy);
    class_in(empty.as_ref(), request, occupancy)
}

/// As [`class_of`]. Often the free slots are all that there are, so no slot has to be counted twice.
fn class_among(
    free: &FreeSlots<'_>,
    request: &Request,
    occupancy: &Occupancy,
) -> Result<usize, Refusal> {
    let empty = slots_at_best(request, occupancy);
    let empty = empty.as_ref().map(|empty| if free.equals(empty) { free } else { empty });
    class_in(empty, request, occupancy)
}

/// The slots of a request on the empty machine; `None` if each node has one.
fn slots_at_best<'a>(request: &Request, occupancy: &'a Occupancy) -> Option<FreeSlots<'a>> {
    (!occupancy.any_node_holds(request)).then(|| occupancy.empty().free_slots(request))
}

fn class_in(
    empty: Option<&FreeSlots<'_>>,
    request: &Request,
    occupancy: &Occupancy,
) -> Result<usize, Refusal> {
    let (wanted, top) = (request.nodes, occupancy.fabric().depth());
    let most = |level| match empty {
        Some(empty) => empty.largest(level),
        None => occupancy.largest_group(level),
    };
    let class = (1..=top).find(|&level| most(level) >= wanted);
    class.ok_or_else(|| Refusal::Never { wanted, most: most(top) })
}

struct IsolatedSearch<'a> {
    free: &'a FreeSlots<'a>,
    occupancy: &'a Occupancy,
    class: usize,
    wanted: u32,
}

impl IsolatedSearch<'_> {
    /// Calls `ask` for the groups with enough slots, fewest free slots first. Returns its first answer.
    fn least_available(
        &self,
        groups: std::ops::Range<GroupIndex>,
        level: usize,
        ask: impl Fn(GroupIndex) -> Option<GroupIndex>,
    ) -> Option<GroupIndex> {
        let holds = |&group: &GroupIndex| self.free.count(level, group) >= self.wanted;
        let mut groups: Vec<GroupIndex> = groups.filter(holds).collect();
        groups.sort_by_key(|&group| (self.free.count(level, group), group));
        groups.into_iter().find_map(ask)
    }

    /// The group of the job's class that can hold it: `group` itself or one below.
    fn home(&self, level: usize, group: GroupIndex) -> Option<GroupIndex> {
        if level == self.class {
            return self.is_home(group).then_some(group);
        }
        let children = self.free.fabric().children(level, group);
        self.least_available(children, level - 1, |child| self.home(level - 1, child))
    }

    /// Whether this group of the job's class can hold it.
    fn is_home(&self, group: GroupIndex) -> bool {
        self.free.count(self.class, group) >= self.wanted
            && self.usable(self.class, group) >= self.wanted
    }

    /// The slots of a group that can be reached without a group that another job crosses.
    fn usable(&self, level: usize, group: GroupIndex) -> u32 {
        if level == 1 {
            return self.free.count(1, group);
        }
        self.uncrossed(level, group).map(|child| self.usable(level - 1, child)).sum()
    }

    /// The groups directly below that no job crosses.
    fn uncrossed(&self, level: usize, group: GroupIndex) -> impl Iterator<Item = GroupIndex> + '_ {
        let children = self.free.fabric().children(level, group);
        children.filter(move |&child| self.occupancy.crossing(level - 1, child) == 0)
    }

    /// Takes `wanted` slots of a group; its uncrossed subgroups with most free slots come first. Returns the number
    /// taken.
    fn fill(
        &self,
        level: usize,
        group: GroupIndex,
        wanted: u32,
        nodes: &mut Vec<NodeIndex>,
    ) -> u32 {
        if level == 1 {
            return self.free.take(1, group, wanted, nodes);
        }
        let mut children: Vec<GroupIndex> = self.uncrossed(level, group).collect();
        children.sort_by_key(|&child| (Reverse(self.free.count(level - 1, child)), child));
        let mut left = wanted;
        for child in children {
            if left == 0 {
                break;
            }
            left -= self.fill(level - 1, child, left, nodes);
        }
        wanted - left
    }
}
