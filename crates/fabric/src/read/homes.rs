//! Decides which leaf switches are the rails of one group, and which leaf a host belongs to if it is connected to
//! several.
//!
//! A group of the tree has one leaf switch, or one per rail if nodes have an adapter on every rail. A file server, a
//! login node or a bonded server may be connected to leaf switches of several groups. Its cables do not merge these
//! groups.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::subnet::{Cable, CableEnd, Subnet};
use super::union::Union;

/// The group of each leaf switch, identified by one of its switches, from the leaf switches of each host.
///
/// Two leaf switches are rails of one group if at least half of the hosts on each are also on the other. Such a group
/// has rails if two thirds of its hosts are on all its switches or, if there are many switches, on three quarters of
/// them. If more than half of all hosts are in such groups, the number of rails is the greatest that at least half of
/// these hosts have; groups with fewer switches lack some. Otherwise no group has rails. A group with more switches is
/// split up.
pub(super) fn leaf_groups(hosts: &[Vec<usize>]) -> HashMap<usize, usize> {
    let mut on: BTreeMap<usize, usize> = BTreeMap::new();
    let mut both: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for leaves in hosts {
        let leaves: BTreeSet<usize> = leaves.iter().copied().collect();
        for &leaf in &leaves {
            *on.entry(leaf).or_default() += 1;
        }
        // A host on more leaf switches than there can be rails proves nothing, and would make too many pairs.
        if leaves.len() <= MOST_RAILS {
            for (place, &one) in leaves.iter().enumerate() {
                for &other in leaves.iter().skip(place + 1) {
                    *both.entry((one, other)).or_default() += 1;
                }
            }
        }
    }
    let mut joined = Union::new(on.keys().max().map_or(0, |most| most + 1));
    for ((one, other), count) in both {
        if 2 * count >= on[&one].max(on[&other]) {
            joined.join(one, other);
        }
    }
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &leaf in on.keys() {
        members.entry(joined.find(leaf)).or_default().push(leaf);
    }
    let rails = rails(hosts, &members, &mut joined);
    let mut group_of = HashMap::new();
    for (group, leaves) in members {
        let parts = leaves.len() > rails;
        group_of.extend(leaves.into_iter().map(|leaf| (leaf, if parts { leaf } else { group })));
    }
    group_of
}

/// The most rails of a group: more than any vendor's node has adapters.
const MOST_RAILS: usize = 64;

/// The number of rails of all groups.
fn rails(hosts: &[Vec<usize>], members: &BTreeMap<usize, Vec<usize>>, joined: &mut Union) -> usize {
    let mut of_group: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for leaves in hosts {
        let leaves: BTreeSet<usize> = leaves.iter().copied().collect();
        let mut here: BTreeMap<usize, usize> = BTreeMap::new();
        for leaf in leaves {
            *here.entry(joined.find(leaf)).or_default() += 1;
        }
        if let Some((group, count)) = here.into_iter().max_by_key(|&(_, count)| count) {
            of_group.entry(group).or_default().push(count);
        }
    }
    // The hosts in groups with rails, by number of switches.
    let mut with: BTreeMap<usize, usize> = BTreeMap::new();
    let mut all = 0;
    for (group, counts) in of_group {
        let switches = members.get(&group).map_or(1, Vec::len);
        let full = counts.iter().filter(|&&count| 4 * count >= 3 * switches).count();
        all += counts.len();
        if switches > 1 && 3 * full >= 2 * counts.len() {
            *with.entry(switches).or_default() += counts.len();
        }
    }
    let on_rails: usize = with.values().sum();
    if 2 * on_rails <= all {
        return 1;
    }
    let mut more = 0;
    let has_half = |&(_, hosts): &(usize, usize)| {
        more += hosts;
        2 * more >= on_rails
    };
    with.into_iter().rev().find(has_half).map_or(1, |(rails, _)| rails)
}

/// Cables of hosts that are not used.
#[derive(Default)]
pub(super) struct SpareCables {
    /// Cables to leaf switches of other groups: their number, and the first such host with its leaf.
    pub elsewhere: Count,
    /// Cables beyond the usual number to one leaf switch: their number, and the first such host with its leaf.
    pub parallel: Count,
}

/// A number of cables, with a host and a switch as an example.
#[derive(Default)]
pub(super) struct Count {
    pub cables: usize,
    pub example: Option<(usize, usize)>,
}

impl Count {
    fn add(&mut self, host: usize, leaf: usize) {
        self.cables += 1;
        self.example.get_or_insert((host, leaf));
    }
}

/// Keeps for each host the cables to one group: the group with most of its cables, among equals that of its first port.
/// Of parallel cables to one leaf switch, a host keeps at most the number that half of the hosts have.
pub(super) fn keep_home_cables(subnet: &mut Subnet) -> SpareCables {
    let mut spare = SpareCables::default();
    let mut ends: BTreeMap<usize, Vec<(u32, usize)>> = BTreeMap::new();
    for cable in &subnet.cables {
        if let Some((host, leaf)) = host_and_leaf(subnet, cable) {
            ends.entry(host.vertex).or_default().push((host.port, leaf));
        }
    }
    for ends in ends.values_mut() {
        ends.sort_unstable();
    }
    let of_host = |ends: &Vec<(u32, usize)>| ends.iter().map(|&(_, leaf)| leaf).collect();
    let group_of = leaf_groups(&ends.values().map(of_host).collect::<Vec<Vec<usize>>>());
    let mut dropped: HashSet<(usize, u32)> = HashSet::new();
    let mut kept: BTreeMap<(usize, usize), Vec<u32>> = BTreeMap::new();
    for (&host, ends) in &ends {
        let Some(home) = home(ends, &group_of) else { continue };
        for &(port, leaf) in ends {
            if group_of.get(&leaf) == group_of.get(&home) {
                kept.entry((host, leaf)).or_default().push(port);
            } else {
                spare.elsewhere.add(host, home);
                dropped.insert((host, port));
            }
        }
    }
    let usual = usual_cables(&kept);
    for ((host, leaf), ports) in kept {
        for port in ports.into_iter().skip(usual) {
            spare.parallel.add(host, leaf);
            dropped.insert((host, port));
        }
    }
    subnet.drop_cables(|vertices, cable| {
        let is_dropped = |end: &CableEnd| {
            vertices[end.vertex].is_host && dropped.contains(&(end.vertex, end.port))
        };
        cable.ends.iter().any(is_dropped)
    });
    spare
}

/// The host end and the leaf switch of a cable; `None` if it does not connect a host to a switch.
fn host_and_leaf(subnet: &Subnet, cable: &Cable) -> Option<(CableEnd, usize)> {
    let [a, b] = cable.ends;
    match [a, b].map(|end| subnet.vertices[end.vertex].is_host) {
        [true, false] => Some((a, b.vertex)),
        [false, true] => Some((b, a.vertex)),
        _ => None,
    }
}

/// The first leaf switch of the group with most cables of a host. The cables are in port order.
fn home(ends: &[(u32, usize)], group_of: &HashMap<usize, usize>) -> Option<usize> {
    let mut count: HashMap<Option<&usize>, usize> = HashMap::new();
    for (_, leaf) in ends {
        *count.entry(group_of.get(leaf)).or_default() += 1;
    }
    let most = count.values().copied().max()?;
    ends.iter().map(|&(_, leaf)| leaf).find(|leaf| count[&group_of.get(leaf)] == most)
}

/// The greatest number of parallel cables that at least half of the hosts have to a leaf switch.
fn usual_cables(kept: &BTreeMap<(usize, usize), Vec<u32>>) -> usize {
    let mut most: BTreeMap<usize, usize> = BTreeMap::new();
    for (&(host, _), ports) in kept {
        let own = most.entry(host).or_default();
        *own = ports.len().max(*own);
    }
    let mut counts: Vec<usize> = most.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts.get(counts.len().div_ceil(2).saturating_sub(1)).copied().unwrap_or(1)
}
