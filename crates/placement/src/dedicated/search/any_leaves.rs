//! Placements over several pods with any number of nodes on the leaves: conditions (1) and (3).

use std::cmp::Reverse;

use crate::dedicated::search::candidates::Candidates;
use crate::dedicated::search::fill::fill;
use crate::dedicated::search::leaf::Leaf;
use crate::dedicated::search::plan::DedicatedPlan;
use crate::dedicated::search::slot_sets::{SlotSetCounts, lowest, nodes_on, planes_of, rarest};
use crate::dedicated::search::{ChoiceBudget, Pod};

/// Returns the cheapest placement of this shape.
pub fn search(
    candidates: &Candidates<'_>,
    leaves: &[Leaf],
    pods: &[Pod<'_>],
    sets: &[u64],
    budget: &mut ChoiceBudget,
) -> Option<DedicatedPlan> {
    let mut best: Option<DedicatedPlan> = None;
    let mut members = SlotSetCounts::default();
    for &set in sets {
        let most = candidates.need.nodes(set.count_ones());
        if nodes_on(leaves, set, most) < candidates.wanted {
            continue;
        }
        members.look_at(leaves, set);
        for slots in (1..=set.count_ones()).rev() {
            if members.nodes(candidates.need.nodes(slots)) < candidates.wanted {
                break;
            }
            if let Some(plan) = AnyLeavesSearch::new(candidates, pods, set, slots).run(budget) {
                best = Some(DedicatedPlan::cheaper(best, plan));
                if candidates.any {
                    return best;
                }
            }
        }
    }
    best
}

/// The search for pods, given a set of planes and the number of planes that the job owns on each leaf.
struct AnyLeavesSearch<'a> {
    candidates: &'a Candidates<'a>,
    pods: &'a [Pod<'a>],
    set: u64,
    slots: u32,
    /// For each pod, the number of nodes that its leaves with the set can hold, largest first.
    capacity: Vec<(usize, u32)>,
}

impl<'a> AnyLeavesSearch<'a> {
    fn new(candidates: &'a Candidates<'a>, pods: &'a [Pod<'a>], set: u64, slots: u32) -> Self {
        let most = candidates.need.nodes(slots);
        let capacity = |pod: &Pod<'_>| {
            let members = pod.leaves.iter().filter(|leaf| leaf.slots & set == set);
            members.map(|leaf| leaf.idle.min(most)).sum::<u32>()
        };
        let mut capacity: Vec<(usize, u32)> =
            pods.iter().map(capacity).enumerate().filter(|&(_, nodes)| nodes > 0).collect();
        capacity.sort_by_key(|&(at, nodes)| (Reverse(nodes), at));
        AnyLeavesSearch { candidates, pods, set, slots, capacity }
    }

    fn run(&self, budget: &mut ChoiceBudget) -> Option<DedicatedPlan> {
        let width = self.pods.first().map_or(0, |pod| pod.core.len());
        self.choose(0, &mut Vec::new(), &vec![!0; width], budget)
    }

    /// Extends the chosen pods with pods from index `at` on. All chosen pods have the core slots `common` free.
    fn choose(
        &self,
        at: usize,
        chosen: &mut Vec<(usize, u32)>,
        common: &[u64],
        budget: &mut ChoiceBudget,
    ) -> Option<DedicatedPlan> {
        *budget = budget.checked_sub(1)?;
        if chosen.len() > 1
            && let Some(plan) = self.plan(chosen, common)
        {
            return Some(plan);
        }
        let left: u32 = self.capacity[at..].iter().map(|&(_, nodes)| nodes).sum();
        let had: u32 = chosen.iter().map(|&(_, nodes)| nodes).sum();
        if had + left < self.candidates.wanted || at == self.capacity.len() {
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

    /// The number of links to the core that the job can own in each of `slots` planes of the set.
    fn links(&self, common: &[u64]) -> u32 {
        let mut links: Vec<u32> = self.planes().map(|plane| common[plane].count_ones()).collect();
        links.sort_unstable_by_key(|&links| Reverse(links));
        links.get(self.slots as usize - 1).copied().unwrap_or(0)
    }

    fn planes(&self) -> impl Iterator<Item = usize> + use<> {
        planes_of(self.set)
    }

    /// Returns the plan on exactly these pods, if they can hold the job.
    fn plan(&self, chosen: &[(usize, u32)], common: &[u64]) -> Option<DedicatedPlan> {
        let links = self.links(common);
        let wanted = self.candidates.wanted;
        let most = self.candidates.need.nodes_of_pod(links, self.slots);
        // One pod may hold over half of the job if the other pods hold few enough nodes.
        let majority = chosen[0].1.min(wanted - 1);
        let first = if wanted - majority <= most { majority } else { majority.min(most) };
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

    fn lay_out(&self, parts: &[(usize, u32)], common: &[u64]) -> Option<DedicatedPlan> {
        let (need, weights) = (&self.candidates.need, &self.candidates.weights);
        let links = parts.iter().map(|&(_, nodes)| need.core(nodes, self.slots)).max()?;
        let able = self
            .planes()
            .filter(|&plane| common[plane].count_ones() >= links)
            .fold(0u64, |planes, plane| planes | 1 << plane);
        let all: Vec<Leaf> =
            parts.iter().flat_map(|&(pod, _)| self.pods[pod].leaves).copied().collect();
        let set = rarest(able, self.slots, &all);
        if set.count_ones() < self.slots {
            return None;
        }
        let mut plan =
            DedicatedPlan { cost: weights.pod * parts.len() as f64, ..DedicatedPlan::default() };
        for &(pod, nodes) in parts {
            let pod = &self.pods[pod];
            let (taken, cost) = fill(self.candidates, pod.leaves, set, nodes, false)?;
            plan.leaves.extend(
                taken.into_iter().map(|(at, nodes, slots)| (pod.leaves[at].leaf, nodes, slots)),
            );
            plan.cost += cost
                + weights.core_link * (f64::from(links * self.slots) - f64::from(nodes)).max(0.0);
        }
        // One pod may own only a part of the others' links; choose the pod with the fewest nodes.
        let smallest = parts.iter().min_by_key(|part| part.1)?.0;
        for plane in planes_of(set) {
            let owned = lowest(common[plane], links);
            for &(pod, nodes) in parts {
                let own = if pod == smallest {
                    lowest(owned, need.core(nodes, self.slots))
                } else {
                    owned
                };
                plan.core.push((self.pods[pod].pod, plane as u32, own));
            }
        }
        Some(plan)
    }
}
