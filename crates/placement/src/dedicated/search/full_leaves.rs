//! Placements over several pods in which every leaf but one holds all nodes that its uplink slots serve: conditions (1)
//! and (2), with links to the core counted by (4).

use std::cmp::Reverse;

use crate::dedicated::search::candidates::Candidates;
use crate::dedicated::search::leaf::Leaf;
use crate::dedicated::search::leaf::Weights;
use crate::dedicated::search::plan::DedicatedPlan;
use crate::dedicated::search::slot_sets::{SlotSetCounts, lowest, nodes_on, planes_of};
use crate::dedicated::search::{BOUNDS, ChoiceBudget, Pod};

/// Returns the cheapest of the first placements of this shape.
pub fn search(
    candidates: &Candidates<'_>,
    leaves: &[Leaf],
    pods: &[Pod<'_>],
    sets: &[u64],
    budget: &mut ChoiceBudget,
) -> Option<DedicatedPlan> {
    let mut best: Option<DedicatedPlan> = None;
    let most_plans = if candidates.any { 1 } else { BOUNDS.full_leaves_plans };
    let mut plans = 0;
    let width = pods.first().map_or(0, |pod| pod.core.len());
    let links_in = |plane: usize| pods.iter().map(|pod| pod.core[plane].count_ones()).sum();
    let links: Vec<u32> = (0..width).map(links_in).collect();
    let mut members = SlotSetCounts::default();
    for &set in sets {
        let most = candidates.need.nodes(set.count_ones());
        if nodes_on(leaves, set, most).saturating_add(most) <= candidates.wanted {
            continue;
        }
        members.look_at(leaves, set);
        for slots in (1..=set.count_ones()).rev() {
            let most = candidates.need.nodes(slots);
            if most == 0 || members.holding(most) < candidates.wanted / most {
                continue;
            }
            let Some(search) = FullLeaves::new(candidates, pods, widest(set, slots, &links)) else {
                continue;
            };
            if let Some(plan) = search.run(budget) {
                plans += 1;
                best = Some(DedicatedPlan::cheaper(best, plan));
            }
            if plans == most_plans || *budget == 0 {
                return best;
            }
        }
    }
    best
}

/// The search for pods, given the planes that the job owns on each leaf.
struct FullLeaves<'a> {
    candidates: &'a Candidates<'a>,
    pods: &'a [Pod<'a>],
    set: u64,
    /// Nodes on each full leaf.
    most: u32,
    /// The number of full leaves that the job needs.
    leaves: u32,
    /// Nodes left for one more leaf, the remainder.
    rest: u32,
    /// For each pod, by index, the leaves that can be full; the cheapest leaf comes first.
    full: Vec<(usize, Vec<usize>)>,
    /// For each index, the number of such leaves in the pods from there on.
    left: Vec<u32>,
}

/// Index of a pod, and the number of leaves taken there.
type Part = (usize, u32);

impl<'a> FullLeaves<'a> {
    /// Returns the search; `None` if there are too few leaves that can be full.
    fn new(candidates: &'a Candidates<'a>, pods: &'a [Pod<'a>], set: u64) -> Option<Self> {
        let slots = set.count_ones();
        let most = candidates.need.nodes(slots);
        let able = |leaf: &&Leaf| leaf.slots & set == set && leaf.idle >= most;
        let there = candidates.leaves.iter().filter(able).count();
        if most == 0 || most > candidates.wanted || there < (candidates.wanted / most) as usize {
            return None;
        }
        let full = pods
            .iter()
            .enumerate()
            .map(|(at, pod)| (at, full_leaves(&candidates.weights, pod.leaves, set, most)));
        let mut full: Vec<(usize, Vec<usize>)> =
            full.filter(|(_, leaves)| !leaves.is_empty()).collect();
        full.sort_by_key(|(at, leaves)| (Reverse(leaves.len()), *at));
        let mut left = vec![0; full.len() + 1];
        for (at, (_, leaves)) in full.iter().enumerate().rev() {
            left[at] = left[at + 1] + leaves.len() as u32;
        }
        let (leaves, rest) = (candidates.wanted / most, candidates.wanted % most);
        Some(FullLeaves { candidates, pods, set, most, leaves, rest, full, left })
    }

    fn run(&self, budget: &mut ChoiceBudget) -> Option<DedicatedPlan> {
        self.choose(0, self.leaves, &mut Vec::new(), budget)
    }

    /// Extends the chosen pods with pods from index `at` on until no more leaves are needed.
    fn choose(
        &self,
        at: usize,
        wanted: u32,
        chosen: &mut Vec<Part>,
        budget: &mut ChoiceBudget,
    ) -> Option<DedicatedPlan> {
        if wanted == 0 {
            return self.with_rest(chosen, budget);
        }
        if self.left[at] < wanted || *budget == 0 {
            return None;
        }
        let (pod, leaves) = &self.full[at];
        // All pods except the largest own one link per leaf in each plane.
        let most = if chosen.is_empty() { u32::MAX } else { self.least_core(*pod) };
        let taken = (leaves.len() as u32).min(wanted).min(most);
        if taken > 0 {
            chosen.push((*pod, taken));
            let found = self.choose(at + 1, wanted - taken, chosen, budget);
            chosen.pop();
            if found.is_some() {
                return found;
            }
        }
        self.choose(at + 1, wanted, chosen, budget)
    }

    /// The number of leaves that this pod's core links can serve in every chosen plane.
    fn least_core(&self, pod: usize) -> u32 {
        let links = |plane: usize| self.pods[pod].core[plane].count_ones();
        let links = planes_of(self.set).map(links).min().unwrap_or(0);
        self.candidates.need.leaves(links)
    }

    /// Finds a leaf for the remaining nodes: first in the chosen pods, starting with the last one, then in other pods.
    fn with_rest(&self, chosen: &[Part], budget: &mut ChoiceBudget) -> Option<DedicatedPlan> {
        *budget = budget.checked_sub(1)?;
        if self.rest == 0 {
            return (chosen.len() > 1).then(|| self.lay_out(chosen, None)).flatten();
        }
        let others = (0..self.pods.len()).filter(|at| chosen.iter().all(|(pod, _)| pod != at));
        let order = chosen.iter().rev().map(|&(pod, _)| pod).chain(others);
        for pod in order {
            let is_other = chosen.iter().all(|&(at, _)| at != pod);
            if chosen.len() == 1 && !is_other {
                continue;
            }
            *budget = budget.checked_sub(1)?;
            let found = self
                .last_leaf(chosen, pod)
                .and_then(|leaf| self.lay_out(chosen, Some((pod, leaf))));
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// The leaf of a pod where the remaining nodes fit best. Leaves already taken are skipped.
    fn last_leaf(&self, chosen: &[Part], pod: usize) -> Option<usize> {
        let slots = self.candidates.need.remainder(self.rest);
        let taken =
            chosen.iter().find(|&&(at, _)| at == pod).map_or(0, |&(_, count)| count as usize);
        let full = self.full.iter().find(|&&(at, _)| at == pod);
        let taken: &[usize] = full.map_or(&[], |(_, leaves)| &leaves[..taken]);
        let fits =
            |leaf: &Leaf| leaf.idle >= self.rest && (leaf.slots & self.set).count_ones() >= slots;
        let leaves = self.pods[pod].leaves.iter().enumerate();
        let able = leaves.filter(|(at, leaf)| fits(leaf) && !taken.contains(at));
        let costs =
            able.map(|(at, leaf)| (at, self.candidates.weights.cost(leaf, self.rest, slots)));
        costs.min_by(|one, other| one.1.total_cmp(&other.1)).map(|(at, _)| at)
    }

    /// Uplink slots for the remainder: those whose planes have most links to the core to spare.
    fn slots_of_rest(&self, leaf: &Leaf, chosen: &[Part], pod: usize) -> u64 {
        let slack = |plane: usize| {
            let here = self.pods[pod].core[plane].count_ones();
            chosen
                .iter()
                .map(|&(at, _)| self.pods[at].core[plane].count_ones())
                .fold(here, u32::min)
        };
        let mut planes: Vec<usize> = planes_of(leaf.slots & self.set).collect();
        planes.sort_by_cached_key(|&plane| (Reverse(slack(plane)), plane));
        planes.truncate(self.candidates.need.remainder(self.rest) as usize);
        planes.into_iter().fold(0, |slots, plane| slots | 1 << plane)
    }

    fn lay_out(&self, chosen: &[Part], rest: Option<(usize, usize)>) -> Option<DedicatedPlan> {
        let mut plan = DedicatedPlan::default();
        plan.leaves.reserve(self.leaves as usize + 1);
        let mut parts: Vec<(usize, u32, u64)> =
            chosen.iter().map(|&(pod, count)| (pod, count, 0)).collect();
        if let Some((pod, at)) = rest {
            let leaf = &self.pods[pod].leaves[at];
            let slots = self.slots_of_rest(leaf, chosen, pod);
            plan.leaves.push((leaf.leaf, self.rest, slots));
            plan.cost += self.candidates.weights.cost(leaf, self.rest, slots.count_ones());
            match parts.iter_mut().find(|part| part.0 == pod) {
                Some(part) => part.2 = slots,
                None => parts.push((pod, 0, slots)),
            }
        }
        self.own_core(&parts, &mut plan)?;
        for &(pod, count) in chosen {
            let (_, leaves) = self.full.iter().find(|(at, _)| *at == pod)?;
            for &at in &leaves[..count as usize] {
                let leaf = &self.pods[pod].leaves[at];
                plan.leaves.push((leaf.leaf, self.most, self.set));
                plan.cost += self.candidates.weights.cost(leaf, self.most, self.set.count_ones());
            }
        }
        plan.cost += self.candidates.weights.pod * parts.len() as f64;
        Some(plan)
    }

    /// Assigns links to the core, depending on the number of leaves that own each plane; `None` if there are too few
    /// links.
    fn own_core(&self, parts: &[(usize, u32, u64)], plan: &mut DedicatedPlan) -> Option<()> {
        // Planes that the remainder owns need more links than the other planes.
        let rest = parts.iter().fold(0, |planes, part| planes | part.2);
        let needed = [false, true].map(|of_rest| self.needed(parts, of_rest));
        plan.core.reserve(parts.len() * self.set.count_ones() as usize);
        for plane in planes_of(self.set) {
            let Some(needed) = &needed[(rest >> plane & 1) as usize] else { continue };
            let Needed { links, smallest, least, most, common } = needed;
            let (most, common) = (*most, common[plane]);
            let core = self.pods[parts[*smallest].0].core[plane];
            let own = lowest(common & core, *least);
            let whole = own | lowest(common & !own, most - own.count_ones().min(most));
            if own.count_ones() < *least || whole.count_ones() < most {
                return None;
            }
            plan.core.push((self.pods[parts[*smallest].0].pod, plane as u32, own));
            for &(at, need) in links {
                plan.core.push((self.pods[parts[at].0].pod, plane as u32, whole));
                plan.cost += self.candidates.weights.core_link * f64::from(most - need);
            }
        }
        Some(())
    }

    /// The links that the parts need in one plane, with the remainder or without it; `None` if they need none.
    fn needed(&self, parts: &[(usize, u32, u64)], of_rest: bool) -> Option<Needed> {
        let leaves = |part: &(usize, u32, u64)| part.1 + u32::from(of_rest && part.2 != 0);
        let all: u32 = parts.iter().map(leaves).sum();
        let need = |part| self.candidates.need.links(leaves(part).min(all - leaves(part)));
        let links = parts.iter().map(need).enumerate().filter(|&(_, need)| need > 0);
        let mut links: Vec<(usize, u32)> = links.collect();
        let most = links.iter().map(|&(_, need)| need).max()?;
        let (place, _) = links.iter().enumerate().min_by_key(|(_, (_, need))| *need)?;
        let (smallest, least) = links.remove(place);
        let mut common = vec![!0; self.pods[0].core.len()];
        for &(at, _) in &links {
            for (common, core) in common.iter_mut().zip(&self.pods[parts[at].0].core) {
                *common &= core;
            }
        }
        Some(Needed { links, smallest, least, most, common })
    }
}

/// Links to the core that the parts need in one plane.
struct Needed {
    /// For each part, by index, its number of links; without the part that needs the fewest.
    links: Vec<(usize, u32)>,
    /// The part that needs the fewest links.
    smallest: usize,
    least: u32,
    most: u32,
    /// For each plane, the links that the other parts have in common.
    common: Vec<u64>,
}

fn full_leaves(weights: &Weights, leaves: &[Leaf], set: u64, most: u32) -> Vec<usize> {
    let slots = set.count_ones();
    let able = |&at: &usize| leaves[at].slots & set == set && leaves[at].idle >= most;
    let mut full = Vec::with_capacity(leaves.len());
    let costs = |at: usize| (weights.cost(&leaves[at], most, slots), at);
    full.extend((0..leaves.len()).filter(able).map(costs));
    full.sort_unstable_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    full.into_iter().map(|(_, at)| at).collect()
}

/// The `count` planes of a set with the most free links to the core. `links` has the number of links in each plane.
fn widest(set: u64, count: u32, links: &[u32]) -> u64 {
    if set.count_ones() <= count {
        return set;
    }
    let mut planes: Vec<usize> = planes_of(set).collect();
    planes.sort_unstable_by_key(|&plane| (Reverse(links[plane]), plane));
    planes.truncate(count as usize);
    planes.into_iter().fold(0, |chosen, plane| chosen | 1 << plane)
}
