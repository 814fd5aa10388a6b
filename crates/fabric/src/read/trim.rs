//! Reduces a subnet to its tree of nodes. Removes hosts on switches above the leaves, further cables of hosts that are
//! on several leaf switches, and switches that lead to no node.
//!
//! The level of a switch is counted from the leaves, and a leaf is a switch with hosts. Two situations would confuse
//! leaves and other switches. They are recognised by the shape of the cabling:
//!
//! - A host on a spine or a core switch. Such a switch is cabled to several switches with hosts and has at most half of
//!   the hosts of one of them. Or it connects switches that nothing below it connects, from leaves with at least twice
//!   its hosts upwards.
//! - A leaf whose hosts are off or elsewhere. It is cabled to spines like a core switch, but connects only what is
//!   connected already. It is skipped, because it leads to no node.

use std::collections::{BTreeSet, HashSet, VecDeque};

use super::homes::{Count, keep_home_cables};
use super::subnet::{Cable, Subnet, Vertex};
use super::union::Union;
use crate::error::shown;

/// The names of the hosts that are nodes; `None` for all hosts.
pub(super) type Nodes<'a> = Option<HashSet<&'a str>>;

/// Skips everything outside the tree of nodes. Returns a sentence for each kind of thing skipped.
pub(super) fn trim(subnet: &mut Subnet, nodes: &Nodes) -> Vec<String> {
    let mut notes = Vec::new();
    let unnamed = |name: &str| nodes.as_ref().is_some_and(|nodes| !nodes.contains(name));
    let others = subnet.skip(|_, vertex| vertex.is_host && unnamed(&vertex.name));
    notes.extend(sentence(subnet, &others, ["host", "hosts"], "not named by --hosts"));
    let above = switches_above(subnet);
    skip_hosts_above(subnet, &above, &mut notes);
    let hosts = hosts_on(subnet);
    let leaves: Vec<usize> = (0..hosts.len()).filter(|&switch| !hosts[switch].is_empty()).collect();
    let spare = keep_home_cables(subnet);
    let counted = |count: &Count, why: &str| {
        let (host, leaf) = count.example?;
        let (host, leaf) = (&subnet.vertices[host].name, &subnet.vertices[leaf].name);
        let (cables, are) = if count.cables == 1 { ("cable", "is") } else { ("cables", "are") };
        let number = count.cables;
        Some(format!("{number} further {cables} of hosts {are} skipped: host {host} {why} {leaf}"))
    };
    notes.extend(counted(&spare.elsewhere, "hangs on several leaf switches and counts on"));
    notes.extend(counted(&spare.parallel, "has more cables than most hosts to"));
    let idle = idle_switches(subnet, &leaves);
    let idle = subnet.skip(|index, _| idle.contains(&index));
    notes.extend(sentence(subnet, &idle, ["switch", "switches"], "without nodes"));
    notes
}

/// Skips hosts whose cables all lead to switches above the leaves, and drops such cables of other hosts.
fn skip_hosts_above(subnet: &mut Subnet, above: &HashSet<usize>, notes: &mut Vec<String>) {
    let (mut up, mut elsewhere) = (Vec::new(), HashSet::new());
    for cable in &subnet.cables {
        match host_and_switch(&subnet.vertices, cable) {
            Some((host, switch)) if above.contains(&switch) => up.push(host),
            Some((host, _)) => {
                elsewhere.insert(host);
            }
            None => {}
        }
    }
    let (further, alone): (Vec<usize>, Vec<usize>) =
        up.into_iter().partition(|host| elsewhere.contains(host));
    subnet.drop_cables(|vertices, cable| {
        host_and_switch(vertices, cable).is_some_and(|(_, switch)| above.contains(&switch))
    });
    let alone: HashSet<usize> = alone.into_iter().collect();
    let skipped = subnet.skip(|index, _| alone.contains(&index));
    notes.extend(sentence(subnet, &skipped, ["host", "hosts"], "on a switch above the leaves"));
    let what = "to a switch above the leaves, of a host on a leaf,";
    notes.extend(sentence(subnet, &further, ["cable", "cables"], what));
}

/// The host and the switch that a cable connects; `None` for other cables.
fn host_and_switch(vertices: &[Vertex], cable: &Cable) -> Option<(usize, usize)> {
    let [a, b] = cable.ends.map(|end| end.vertex);
    match [a, b].map(|vertex| vertices[vertex].is_host) {
        [true, false] => Some((a, b)),
        [false, true] => Some((b, a)),
        _ => None,
    }
}

/// A sentence like `2 hosts not named by --hosts, such as "oss1", are skipped`; `None` if nothing was skipped.
pub(super) fn sentence(
    subnet: &Subnet,
    which: &[usize],
    unit: [&str; 2],
    what: &str,
) -> Option<String> {
    let name = shown(&subnet.vertices[*which.first()?].name);
    Some(match which.len() {
        1 => format!("1 {} {what} is skipped: {name}", unit[0]),
        count => format!("{count} {} {what} are skipped, such as {name}", unit[1]),
    })
}

/// For each vertex, the hosts with a cable to it.
fn hosts_on(subnet: &Subnet) -> Vec<BTreeSet<usize>> {
    let mut on = vec![BTreeSet::new(); subnet.vertices.len()];
    for cable in &subnet.cables {
        if let Some((host, switch)) = host_and_switch(&subnet.vertices, cable) {
            on[switch].insert(host);
        }
    }
    on
}

/// The switches with hosts that are above the leaves.
fn switches_above(subnet: &Subnet) -> HashSet<usize> {
    let mut hosts: Vec<usize> = hosts_on(subnet).iter().map(BTreeSet::len).collect();
    let mut above = HashSet::new();
    let cabling = SubnetTree::over(subnet, std::iter::empty(), &HashSet::new());
    // Start with the clearest case: without its hosts, another switch may turn out to be a leaf.
    while let Some(spine) = clearest_spine(&cabling, &hosts) {
        hosts[spine] = 0;
        above.insert(spine);
    }
    let few: BTreeSet<usize> = hosts.iter().copied().filter(|&count| count > 0).collect();
    for count in few {
        let leaves: Vec<usize> =
            (0..hosts.len()).filter(|&leaf| hosts[leaf] >= 2 * count).collect();
        if leaves.is_empty() {
            break;
        }
        let tree = SubnetTree::over(subnet, leaves.into_iter(), &HashSet::new());
        let joins = |&core: &usize| hosts[core] == count && tree.parts_below(core).len() > 1;
        above.extend((0..hosts.len()).filter(joins));
    }
    above
}

/// The switch with the smallest share of hosts, among those cabled to at least two others with hosts and having at most
/// half of the hosts of one of these.
fn clearest_spine(cabling: &SubnetTree, hosts: &[usize]) -> Option<usize> {
    let share = |&spine: &usize| {
        let near: BTreeSet<usize> = cabling.near(spine).filter(|&near| hosts[near] > 0).collect();
        let most = near.iter().map(|&near| hosts[near]).max()?;
        (near.len() > 1 && 2 * hosts[spine] <= most)
            .then(|| (spine, hosts[spine] as f64 / most as f64))
    };
    let with_hosts = (0..hosts.len()).filter(|&switch| hosts[switch] > 0);
    let all = with_hosts.filter_map(|spine| share(&spine));
    all.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(spine, _)| spine)
}

/// The switches that lead to no node: leaves without a node, and switches above that connect nothing.
fn idle_switches(subnet: &Subnet, leaves: &[usize]) -> HashSet<usize> {
    let hosts = hosts_on(subnet);
    let (with, without): (Vec<usize>, Vec<usize>) =
        leaves.iter().copied().partition(|&leaf| !hosts[leaf].is_empty());
    let mut idle: HashSet<usize> = without.into_iter().collect();
    let tree = SubnetTree::over(subnet, with.iter().copied(), &idle);
    let is_high = |&switch: &usize| tree.levels[switch] > 2 && tree.levels[switch] != usize::MAX;
    let mut from_the_top: Vec<usize> = (0..hosts.len()).filter(is_high).collect();
    from_the_top.sort_by_key(|&switch| (usize::MAX - tree.levels[switch], switch));
    for switch in from_the_top {
        let carries =
            |near: usize| tree.levels[near] >= tree.levels[switch] && !idle.contains(&near);
        if !tree.near(switch).any(carries) && tree.joins_nothing(switch, &idle) {
            idle.insert(switch);
        }
    }
    // Switches that only idle ones lead to.
    let near_idle = |&switch: &usize| {
        tree.levels[switch] == usize::MAX && tree.near(switch).any(|near| idle.contains(&near))
    };
    let mut lost: Vec<usize> = (0..hosts.len()).filter(near_idle).collect();
    while let Some(switch) = lost.pop() {
        if idle.insert(switch) {
            lost.extend(tree.near(switch).filter(|&near| tree.levels[near] == usize::MAX));
        }
    }
    idle
}

/// The switches of a subnet, by distance from some leaves.
struct SubnetTree {
    /// The cables of each switch to others: the other switch and the own port.
    cables: Vec<Vec<(usize, u32)>>,
    /// 1 for the leaves; `usize::MAX` for hosts and for switches that are not reached.
    levels: Vec<usize>,
    /// A number per switch: equal for switches of one level that lower switches connect.
    part: Vec<usize>,
}

impl SubnetTree {
    /// Returns the tree over the given leaves. It does not pass through switches in `idle`, but keeps their cables.
    fn over(
        subnet: &Subnet,
        leaves: impl Iterator<Item = usize>,
        idle: &HashSet<usize>,
    ) -> SubnetTree {
        let count = subnet.vertices.len();
        let mut tree = SubnetTree {
            cables: vec![Vec::new(); count],
            levels: vec![usize::MAX; count],
            part: Vec::new(),
        };
        for cable in &subnet.cables {
            let [a, b] = cable.ends;
            if !subnet.vertices[a.vertex].is_host && !subnet.vertices[b.vertex].is_host {
                tree.cables[a.vertex].push((b.vertex, a.port));
                tree.cables[b.vertex].push((a.vertex, b.port));
            }
        }
        let mut reached: VecDeque<usize> = leaves.collect();
        for &leaf in &reached {
            tree.levels[leaf] = 1;
        }
        let mut order = Vec::new();
        while let Some(switch) = reached.pop_front() {
            order.push(switch);
            for &(near, _) in &tree.cables[switch] {
                if tree.levels[near] == usize::MAX && !idle.contains(&near) {
                    tree.levels[near] = tree.levels[switch] + 1;
                    reached.push_back(near);
                }
            }
        }
        tree.join_parts(&order);
        tree
    }

    /// Computes which switches of a level are connected by lower ones; `order` is from the leaves up.
    fn join_parts(&mut self, order: &[usize]) {
        self.part = vec![usize::MAX; self.levels.len()];
        let mut joined = Union::new(self.levels.len());
        for same in order.chunk_by(|&a, &b| self.levels[a] == self.levels[b]) {
            for &switch in same {
                let below = |near: &usize| self.levels[*near] < self.levels[switch];
                self.near(switch).filter(below).for_each(|near| joined.join(near, switch));
            }
            for &switch in same {
                self.part[switch] = joined.find(switch);
            }
        }
    }

    /// The switches at the other ends of a switch's cables.
    fn near(&self, switch: usize) -> impl Iterator<Item = usize> + '_ {
        self.cables[switch].iter().map(|&(near, _)| near)
    }

    fn below(&self, switch: usize) -> BTreeSet<usize> {
        self.near(switch).filter(|&near| self.levels[near] < self.levels[switch]).collect()
    }

    /// The parts of the level below that a switch connects.
    fn parts_below(&self, switch: usize) -> BTreeSet<usize> {
        self.below(switch).into_iter().map(|near| self.part[near]).collect()
    }

    /// Whether a switch above the spines is really a leaf cabled to them, and not a switch above them.
    fn joins_nothing(&self, switch: usize, idle: &HashSet<usize>) -> bool {
        let below = self.below(switch);
        if self.parts_below(switch).len() > 1 {
            return false;
        }
        let (Some(&spine), 1) = (below.first(), below.len()) else { return true };
        let level = self.levels[switch];
        let alike = |&near: &usize| near != switch && self.levels[near] == level;
        let joining: Vec<usize> = self
            .near(spine)
            .filter(|near| alike(near) && !idle.contains(near))
            .filter(|&near| self.parts_below(near).len() > 1)
            .collect();
        let alone = (0..self.levels.len()).all(|other| {
            other == spine
                || self.part[other] != self.part[spine]
                || self.levels[other] != level - 1
        });
        // A core switch may have lost its cables to all spines except this one. A leaf has the same ports as other
        // leaves.
        let ports = |of: usize, to: &dyn Fn(usize) -> bool| -> BTreeSet<u32> {
            let cables = self.cables[of].iter();
            cables.filter(|&&(near, _)| to(near)).map(|&(_, port)| port).collect()
        };
        let own = ports(switch, &|near| near == spine);
        let leaves = self.below(spine);
        if leaves.iter().any(|&leaf| ports(leaf, &|near| near == spine) == own) {
            return true;
        }
        if joining.is_empty() {
            // A leaf would be cabled to all spines. A switch's first ports usually lead down to other switches.
            return alone && !own.contains(&1);
        }
        let mut upper =
            joining.iter().flat_map(|&core| ports(core, &|near| self.levels[near] < level));
        let mut lower = leaves
            .iter()
            .flat_map(|&leaf| ports(leaf, &|near| self.levels[near] > self.levels[leaf]));
        lower.any(|port| own.contains(&port)) && !upper.any(|port| own.contains(&port))
    }
}
