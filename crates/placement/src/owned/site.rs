//! Partitions over several pods.

use std::cmp::Reverse;

use topolane_fabric::GroupIndex;

use crate::owned::board::{Board, Leaf};
use crate::owned::closed::{Members, closed_sets};
use crate::owned::fill::{fill, rarest};
use crate::owned::odd_pods::across;
use crate::owned::plan::Plan;
use crate::owned::tidy::Tidy;

/// Sets of lanes looked at.
const SETS: usize = 256;
/// Choices of pods looked at in one search.
const BUDGET: u32 = 512;
/// Plans among which the best is taken.
const ENOUGH: u32 = 4;
/// What an uplink of a pod counts that is owned and that no flow needs, in nodes.
pub const CORE: f64 = 0.3;
/// What it counts to be in one more pod.
pub const POD: f64 = 2.0;

/// A pod and its leaves.
pub struct Pod<'a> {
    pub pod: GroupIndex,
    pub leaves: &'a [Leaf],
    /// Free lanes to the core by plane.
    pub core: Vec<u64>,
}

/// The best partition over several pods, and whether the search was cut short.
pub fn across_pods(board: &Board<'_>, leaves: &[Leaf]) -> (Option<Plan>, bool) {
    if !board.may_hold(leaves) {
        return (None, false);
    }
    let (sets, mut cut) = closed_sets(by_weight(leaves).into_iter(), SETS);
    let pods: Vec<Pod<'_>> = leaves
        .chunk_by(|one, other| one.pod == other.pod)
        .map(|leaves| Pod { pod: leaves[0].pod, leaves, core: board.core(leaves[0].pod) })
        .collect();
    let mut best: Option<Plan> = None;
    let mut budget = BUDGET;
    let mut plans = 0;
    // The quick searches take every lane of a leaf for a plane of its own.
    let quick = if board.parallel(leaves[0].leaf) == 1 { &sets[..] } else { &[] };
    'sets: for &set in quick {
        let members = Members::of(leaves, set);
        for lanes in (1..=set.count_ones()).rev() {
            let most = board.need.nodes(lanes);
            if most == 0 || members.holding(most) < board.wanted / most {
                continue;
            }
            let Some(search) = Tidy::new(board, &pods, widest(set, lanes, &pods)) else {
                continue;
            };
            if let Some(plan) = search.run(&mut budget) {
                plans += 1;
                if best.as_ref().is_none_or(|best| plan.cost < best.cost) {
                    best = Some(plan);
                }
            }
            if plans == ENOUGH || budget == 0 {
                break 'sets;
            }
        }
    }
    if best.is_some() {
        return (best, cut);
    }
    for &set in quick {
        let members = Members::of(leaves, set);
        for lanes in (1..=set.count_ones()).rev() {
            if members.nodes(board.need.nodes(lanes)) < board.wanted {
                break;
            }
            let search = Search::new(board, &pods, set, lanes);
            if let Some(plan) = search.run(&mut budget)
                && best.as_ref().is_none_or(|best| plan.cost < best.cost)
            {
                best = Some(plan);
            }
        }
    }
    if best.is_none() {
        let (found, was_cut) = across(board, &pods, &sets);
        return (found, cut || was_cut);
    }
    cut |= budget == 0;
    (best, cut)
}

/// The distinct sets of lanes of leaves, those with most free nodes first.
fn by_weight(leaves: &[Leaf]) -> Vec<u64> {
    let mut weights: Vec<(u64, u32)> = leaves.iter().map(|leaf| (leaf.lanes, leaf.idle)).collect();
    weights.sort_unstable();
    weights.dedup_by(|one, kept| {
        let same = one.0 == kept.0;
        if same {
            kept.1 += one.1;
        }
        same
    });
    weights.sort_by_key(|&(lanes, idle)| (Reverse(idle), lanes));
    weights.into_iter().map(|(lanes, _)| lanes).collect()
}

/// The search for pods, given a set of planes and how many of them the job owns on each leaf.
struct Search<'a> {
    board: &'a Board<'a>,
    pods: &'a [Pod<'a>],
    set: u64,
    lanes: u32,
    /// Nodes that each pod's leaves with the set could hold, most first.
    capacity: Vec<(usize, u32)>,
}

impl<'a> Search<'a> {
    fn new(board: &'a Board<'a>, pods: &'a [Pod<'a>], set: u64, lanes: u32) -> Self {
        let most = board.need.nodes(lanes);
        let capacity = |pod: &Pod<'_>| {
            let members = pod.leaves.iter().filter(|leaf| leaf.lanes & set == set);
            members.map(|leaf| leaf.idle.min(most)).sum::<u32>()
        };
        let mut capacity: Vec<(usize, u32)> =
            pods.iter().map(capacity).enumerate().filter(|&(_, nodes)| nodes > 0).collect();
        capacity.sort_by_key(|&(at, nodes)| (Reverse(nodes), at));
        Search { board, pods, set, lanes, capacity }
    }

    fn run(&self, budget: &mut u32) -> Option<Plan> {
        let width = self.pods.first().map_or(0, |pod| pod.core.len());
        self.choose(0, &mut Vec::new(), &vec![!0; width], budget)
    }

    /// Adds pods from `at` on to those chosen, which have `common` lanes to the core.
    fn choose(
        &self,
        at: usize,
        chosen: &mut Vec<(usize, u32)>,
        common: &[u64],
        budget: &mut u32,
    ) -> Option<Plan> {
        *budget = budget.checked_sub(1)?;
        if chosen.len() > 1
            && let Some(plan) = self.plan(chosen, common)
        {
            return Some(plan);
        }
        let left: u32 = self.capacity[at..].iter().map(|&(_, nodes)| nodes).sum();
        let had: u32 = chosen.iter().map(|&(_, nodes)| nodes).sum();
        if had + left < self.board.wanted || at == self.capacity.len() {
            return None;
        }
        let (pod, nodes) = self.capacity[at];
        let narrowed: Vec<u64> =
            common.iter().zip(&self.pods[pod].core).map(|(one, other)| one & other).collect();
        if self.links(&narrowed) > 0 || chosen.is_empty() {
            chosen.push((pod, nodes));
            let found = self.choose(at + 1, chosen, &narrowed, budget);
            chosen.pop();
            if found.is_some() {
                return found;
            }
        }
        self.choose(at + 1, chosen, common, budget)
    }

    /// Links to the core that as many planes of the set as lanes are wanted have at least.
    fn links(&self, common: &[u64]) -> u32 {
        let mut links: Vec<u32> = self.planes().map(|plane| common[plane].count_ones()).collect();
        links.sort_unstable_by_key(|&links| Reverse(links));
        links.get(self.lanes as usize - 1).copied().unwrap_or(0)
    }

    fn planes(&self) -> impl Iterator<Item = usize> + use<> {
        let set = self.set;
        (0..u64::BITS as usize).filter(move |plane| set >> plane & 1 == 1)
    }

    /// The job on exactly these pods, if they hold it.
    fn plan(&self, chosen: &[(usize, u32)], common: &[u64]) -> Option<Plan> {
        let links = self.links(common);
        let wanted = self.board.wanted;
        let most = self.board.need.nodes_of_pod(links, self.lanes);
        // One pod may hold more than half of the job if the others together are few enough.
        let giant = chosen[0].1.min(wanted - 1);
        let first = if wanted - giant <= most { giant } else { giant.min(most) };
        let mut left = wanted - first;
        let mut parts = vec![(chosen[0].0, first)];
        for &(pod, nodes) in &chosen[1..] {
            let part = nodes.min(most).min(left);
            if part == 0 {
                return None;
            }
            parts.push((pod, part));
            left -= part;
        }
        (left == 0).then(|| self.lay_out(&parts, common)).flatten()
    }

    fn lay_out(&self, parts: &[(usize, u32)], common: &[u64]) -> Option<Plan> {
        let need = &self.board.need;
        let links = parts.iter().map(|&(_, nodes)| need.core(nodes, self.lanes)).max()?;
        let able = self
            .planes()
            .filter(|&plane| common[plane].count_ones() >= links)
            .fold(0u64, |planes, plane| planes | 1 << plane);
        let all: Vec<Leaf> =
            parts.iter().flat_map(|&(pod, _)| self.pods[pod].leaves).copied().collect();
        let set = rarest(able, self.lanes, &all);
        if set.count_ones() < self.lanes {
            return None;
        }
        let mut plan = Plan { cost: POD * parts.len() as f64, ..Plan::default() };
        for &(pod, nodes) in parts {
            let pod = &self.pods[pod];
            let (taken, cost) = fill(pod.leaves, set, nodes, need, false)?;
            plan.leaves.extend(
                taken.into_iter().map(|(at, nodes, lanes)| (pod.leaves[at].leaf, nodes, lanes)),
            );
            plan.cost += cost + CORE * (f64::from(links * self.lanes) - f64::from(nodes)).max(0.0);
        }
        // One pod, here the one with fewest nodes, may own only a part of what the others own.
        let smallest = parts.iter().min_by_key(|part| part.1)?.0;
        for plane in (0..u64::BITS as usize).filter(|plane| set >> plane & 1 == 1) {
            let owned = lowest(common[plane], links);
            for &(pod, nodes) in parts {
                let own = if pod == smallest {
                    lowest(owned, need.core(nodes, self.lanes))
                } else {
                    owned
                };
                plan.core.push((self.pods[pod].pod, plane as u32, own));
            }
        }
        Some(plan)
    }
}

/// The planes of a set, ascending.
pub fn planes_of(set: u64) -> impl Iterator<Item = usize> {
    (0..u64::BITS as usize).filter(move |plane| set >> plane & 1 == 1)
}

/// The `count` planes of a set with most free links to the core.
fn widest(set: u64, count: u32, pods: &[Pod<'_>]) -> u64 {
    if set.count_ones() <= count {
        return set;
    }
    let free = |plane: usize| pods.iter().map(|pod| pod.core[plane].count_ones()).sum::<u32>();
    let mut planes: Vec<usize> = planes_of(set).collect();
    planes.sort_by_key(|&plane| (Reverse(free(plane)), plane));
    planes.truncate(count as usize);
    planes.into_iter().fold(0, |chosen, plane| chosen | 1 << plane)
}

/// The lowest `count` lanes of a set.
pub fn lowest(set: u64, count: u32) -> u64 {
    let mut left = set;
    for _ in 0..count {
        left &= left.wrapping_sub(1);
    }
    set & !left
}
