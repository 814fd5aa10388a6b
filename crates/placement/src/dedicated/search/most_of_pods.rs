//! Upper bounds of what pods can hold by condition (3), computed before any pods are chosen. They decide most refusals.

use crate::dedicated::condition::need::Need;
use crate::dedicated::search::Pod;
use crate::dedicated::search::candidates::Candidates;

/// What a pod could hold of a job that owns a given number of slots on each leaf.
#[derive(Debug, Clone, Copy)]
pub struct PodShare {
    /// Nodes, if each leaf holds at most what its slots serve.
    pub even: u32,
    /// Nodes, if one leaf may also hold over half of the job.
    pub most: u32,
    /// The largest number of core cables per slot ([`width`]).
    pub width: u32,
}

/// The largest number of core cables for each slot into a plane that a pod can own, at most `widest`. `planes` has, for
/// each plane, the slots into it and the links out of it. 0 if the pod cannot own `slots` slots at all.
pub fn width(planes: impl Iterator<Item = (u32, u32)>, slots: u32, widest: u32) -> u32 {
    let mut owned = [0u32; u64::BITS as usize + 1];
    for width in planes.flat_map(|(most, links)| widths(most, links)) {
        owned[width.min(widest) as usize] += 1;
    }
    let mut left = slots;
    for width in (1..=widest).rev() {
        left = left.saturating_sub(owned[width as usize]);
        if left == 0 {
            return width;
        }
    }
    0
}

/// The largest number of core cables per slot into a plane, for one slot, two slots, and so on up to `most`.
fn widths(most: u32, links: u32) -> impl Iterator<Item = u32> {
    (1..=most.min(links)).map(move |slots| links / slots)
}

/// The width from which on more core cables per slot add no nodes in a pod.
pub fn widest(need: &Need, nodes: u32, slots: u32) -> u32 {
    let enough = |&width: &u32| need.nodes_of_pod(width, slots) >= nodes;
    (1..u64::BITS).find(enough).unwrap_or(u64::BITS)
}

/// Whether pods could hold the job if all pods that are wide enough had the same links free. With `rest`, one narrower
/// pod may own only a part.
pub fn hold(need: &Need, slots: u32, shares: &[PodShare], rest: bool) -> bool {
    let wanted = need.total;
    let widest = shares.iter().map(|share| share.width).max().unwrap_or(0);
    let even = shares.iter().map(|share| share.even).max().unwrap_or(0);
    for width in 1..=widest {
        let most = need.nodes_of_pod(width, slots);
        let (mut nodes, mut of_rest, mut more) = (0u32, 0, 0);
        for share in shares {
            let held = share.even.min(most);
            if share.width >= width {
                nodes += held;
            } else if rest {
                of_rest = of_rest.max(held);
            }
            // One pod may hold over half of the job if the others hold few enough nodes.
            let largest = share.most.min(wanted - 1);
            if share.most > share.even || wanted - largest <= most {
                more = more.max(largest.saturating_sub(held));
            }
        }
        if nodes + of_rest + more >= wanted {
            return true;
        }
        // A larger width leaves fewer pods.
        if most >= even {
            break;
        }
    }
    false
}

/// A leaf: its idle nodes, its slots, and the index of its pod.
type OfLeaf = (u32, u64, usize);

/// The leaves and pods of a search, counted.
pub struct MostOfPods {
    need: Need,
    leaves: Vec<OfLeaf>,
    /// Row `n` has the width of every pod if the job owns `n` slots on each leaf, whichever these are.
    widths: Vec<Vec<u32>>,
    /// Entry `n` says whether the job could be held with `n` slots on each leaf.
    may_hold: Vec<bool>,
    /// The leaves that have a set of slots.
    members: Vec<OfLeaf>,
    shares: Vec<PodShare>,
}

impl MostOfPods {
    pub(super) fn new(candidates: &Candidates<'_>, pods: &[Pod<'_>]) -> Self {
        let need = candidates.need;
        let of_pod = |(at, pod): (usize, &Pod<'_>)| {
            pod.leaves.iter().map(|leaf| (leaf.idle, leaf.slots, at)).collect::<Vec<OfLeaf>>()
        };
        let leaves = pods.iter().enumerate().flat_map(of_pod);
        let leaves: Vec<OfLeaf> = leaves.filter(|leaf| leaf.1 != 0).collect();
        let largest = leaves.iter().map(|leaf| leaf.1.count_ones()).max().unwrap_or(0);
        let mut most = MostOfPods {
            need,
            widths: vec![Vec::new(); largest as usize + 1],
            may_hold: vec![false; largest as usize + 1],
            members: Vec::with_capacity(leaves.len()),
            shares: Vec::with_capacity(pods.len()),
            leaves,
        };
        let parallel = candidates.parallel(pods[0].leaves[0].leaf);
        let idle = pods.iter().map(|pod| pod.leaves.iter().map(|leaf| leaf.idle).sum::<u32>());
        let idle = idle.max().unwrap_or(0);
        // The largest number of core cables per slot, if a pod owns one slot, two, three and so on.
        let of_pod = |pod: &Pod<'_>| {
            let planes = pod.core.iter().map(|core| core.count_ones());
            let mut widths: Vec<u32> = planes.flat_map(|links| widths(parallel, links)).collect();
            widths.sort_unstable_by(|one, other| other.cmp(one));
            widths
        };
        let of_pods: Vec<Vec<u32>> = pods.iter().map(of_pod).collect();
        most.members.clone_from(&most.leaves);
        for slots in 1..=largest {
            most.members.retain(|leaf| leaf.1.count_ones() >= slots);
            if !most.have_nodes(slots) {
                continue;
            }
            let widest = widest(&need, idle, slots);
            let of_pod = |widths: &Vec<u32>| {
                widths.get(slots as usize - 1).map_or(0, |&width| width.min(widest))
            };
            most.widths[slots as usize] = of_pods.iter().map(of_pod).collect();
            most.may_hold[slots as usize] = most.pods_hold(slots);
        }
        most
    }

    /// The smallest number of slots on each leaf with which the pods could hold the job; `None` if no number works.
    pub fn fewest_slots(&self) -> Option<u32> {
        self.may_hold.iter().position(|&may| may).map(|slots| slots as u32)
    }

    /// Selects the leaves that have a set of slots, for the questions that follow.
    pub fn look_at(&mut self, set: u64) {
        self.members.clear();
        self.members.extend(self.leaves.iter().filter(|leaf| leaf.1 & set == set));
    }

    /// Whether the selected leaves could hold the job with `slots` slots on each.
    pub fn may_hold(&mut self, slots: u32) -> bool {
        self.may_hold.get(slots as usize).is_some_and(|&may| may)
            && self.have_nodes(slots)
            && self.pods_hold(slots)
    }

    /// Whether the selected leaves have enough nodes.
    fn have_nodes(&self, slots: u32) -> bool {
        let most = self.need.nodes(slots);
        let (mut nodes, mut largest) = (0, 0);
        for &(idle, ..) in &self.members {
            nodes += idle.min(most);
            largest = largest.max(idle);
        }
        nodes + largest >= self.need.total
    }

    /// Whether the pods of the selected leaves have enough links.
    fn pods_hold(&mut self, slots: u32) -> bool {
        let Some(widths) = self.widths.get(slots as usize).filter(|widths| !widths.is_empty())
        else {
            return false;
        };
        let (wanted, most) = (self.need.total, self.need.nodes(slots));
        self.shares.clear();
        self.shares.extend(widths.iter().map(|&width| PodShare { even: 0, most: 0, width }));
        for &(idle, _, pod) in &self.members {
            let share = &mut self.shares[pod];
            share.even += idle.min(most);
            // What the largest leaf holds in addition, counted once all leaves are known.
            let nodes = idle.min(wanted - 1);
            if nodes > most && wanted - nodes <= most {
                share.most = share.most.max(nodes - most);
            }
        }
        for share in &mut self.shares {
            share.most += share.even;
        }
        hold(&self.need, slots, &self.shares, true)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::width;

    proptest! {
        /// A pod can own its slots at a width if the slots into all planes that have links enough for that are as many.
        #[test]
        fn the_widest_at_which_enough_slots_have_their_links(
            planes in proptest::collection::vec((0u32..4, 0u32..20), 0..8),
            slots in 1u32..12,
            widest in 1u32..20,
        ) {
            let into = |width: u32| {
                planes.iter().map(|&(most, links)| most.min(links / width)).sum::<u32>()
            };
            let expected = (1..=widest).rev().find(|&width| into(width) >= slots).unwrap_or(0);
            prop_assert_eq!(width(planes.iter().copied(), slots, widest), expected);
        }
    }
}
