//! Partitions over several pods in which every leaf but one holds as many nodes as it owns lanes.

use std::cmp::Reverse;

use crate::owned::board::{Board, Leaf};
use crate::owned::fill::cost;
use crate::owned::plan::Plan;
use crate::owned::site::{CORE, POD, Pod, lowest, planes_of};

/// The search for pods, given the planes that the job owns on each leaf.
pub struct Tidy<'a> {
    board: &'a Board<'a>,
    pods: &'a [Pod<'a>],
    set: u64,
    /// Nodes of each leaf but the remainder.
    most: u32,
    /// Leaves of that kind wanted.
    leaves: u32,
    /// Nodes left for one more leaf.
    rest: u32,
    /// Leaves of that kind of each pod, by its place: those that cost least first.
    full: Vec<(usize, Vec<usize>)>,
}

/// Leaves taken of a pod, by its place.
type Part = (usize, u32);

impl<'a> Tidy<'a> {
    /// `None` where there are too few leaves of that kind.
    pub fn new(board: &'a Board<'a>, pods: &'a [Pod<'a>], set: u64) -> Option<Self> {
        let lanes = set.count_ones();
        let most = board.need.nodes(lanes);
        let able = |leaf: &&Leaf| leaf.lanes & set == set && leaf.idle >= most;
        let there = board.leaves.iter().filter(able).count();
        if most == 0 || most > board.wanted || there < (board.wanted / most) as usize {
            return None;
        }
        let full =
            pods.iter().enumerate().map(|(at, pod)| (at, full_leaves(pod.leaves, set, most)));
        let mut full: Vec<(usize, Vec<usize>)> =
            full.filter(|(_, leaves)| !leaves.is_empty()).collect();
        full.sort_by_key(|(at, leaves)| (Reverse(leaves.len()), *at));
        let (leaves, rest) = (board.wanted / most, board.wanted % most);
        Some(Tidy { board, pods, set, most, leaves, rest, full })
    }

    pub fn run(&self, budget: &mut u32) -> Option<Plan> {
        self.choose(0, self.leaves, &mut Vec::new(), budget)
    }

    /// Adds pods from `at` on to those chosen until no leaf is wanting.
    fn choose(
        &self,
        at: usize,
        wanted: u32,
        chosen: &mut Vec<Part>,
        budget: &mut u32,
    ) -> Option<Plan> {
        if wanted == 0 {
            return self.with_rest(chosen, budget);
        }
        let left: usize = self.full[at..].iter().map(|(_, leaves)| leaves.len()).sum();
        if left < wanted as usize || *budget == 0 {
            return None;
        }
        let (pod, leaves) = &self.full[at];
        // All but the largest pod own as many links in each plane as they have leaves.
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

    /// Leaves that own every plane and for which a pod has links in all of them.
    fn least_core(&self, pod: usize) -> u32 {
        let links = |plane: usize| self.pods[pod].core[plane].count_ones();
        let links = planes_of(self.set).map(links).min().unwrap_or(0);
        self.board.need.leaves(links)
    }

    /// Finds a leaf for what is left, in the chosen pods, the last first, then in others.
    fn with_rest(&self, chosen: &[Part], budget: &mut u32) -> Option<Plan> {
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

    /// The leaf of a pod, beside those taken, that what is left fits best.
    fn last_leaf(&self, chosen: &[Part], pod: usize) -> Option<usize> {
        let lanes = self.board.need.remainder(self.rest);
        let taken =
            chosen.iter().find(|&&(at, _)| at == pod).map_or(0, |&(_, count)| count as usize);
        let full = self.full.iter().find(|&&(at, _)| at == pod);
        let taken: &[usize] = full.map_or(&[], |(_, leaves)| &leaves[..taken]);
        let fits =
            |leaf: &Leaf| leaf.idle >= self.rest && (leaf.lanes & self.set).count_ones() >= lanes;
        let leaves = self.pods[pod].leaves.iter().enumerate();
        let able = leaves.filter(|(at, leaf)| fits(leaf) && !taken.contains(at));
        let costs = able.map(|(at, leaf)| (at, cost(leaf, self.rest, lanes)));
        costs.min_by(|one, other| one.1.total_cmp(&other.1)).map(|(at, _)| at)
    }

    /// Lanes for the remainder: those in whose planes most is left towards the core.
    fn lanes_of_rest(&self, leaf: &Leaf, chosen: &[Part], pod: usize) -> u64 {
        let slack = |plane: usize| {
            let here = self.pods[pod].core[plane].count_ones();
            chosen
                .iter()
                .map(|&(at, _)| self.pods[at].core[plane].count_ones())
                .fold(here, u32::min)
        };
        let mut planes: Vec<usize> = planes_of(leaf.lanes & self.set).collect();
        planes.sort_by_key(|&plane| (Reverse(slack(plane)), plane));
        planes.truncate(self.board.need.remainder(self.rest) as usize);
        planes.into_iter().fold(0, |lanes, plane| lanes | 1 << plane)
    }

    fn lay_out(&self, chosen: &[Part], rest: Option<(usize, usize)>) -> Option<Plan> {
        let mut plan = Plan::default();
        let mut parts: Vec<(usize, u32, u64)> =
            chosen.iter().map(|&(pod, count)| (pod, count, 0)).collect();
        if let Some((pod, at)) = rest {
            let leaf = &self.pods[pod].leaves[at];
            let lanes = self.lanes_of_rest(leaf, chosen, pod);
            plan.leaves.push((leaf.leaf, self.rest, lanes));
            plan.cost += cost(leaf, self.rest, lanes.count_ones());
            match parts.iter_mut().find(|part| part.0 == pod) {
                Some(part) => part.2 = lanes,
                None => parts.push((pod, 0, lanes)),
            }
        }
        self.own_core(&parts, &mut plan)?;
        for &(pod, count) in chosen {
            let (_, leaves) = self.full.iter().find(|(at, _)| *at == pod)?;
            for &at in &leaves[..count as usize] {
                let leaf = &self.pods[pod].leaves[at];
                plan.leaves.push((leaf.leaf, self.most, self.set));
                plan.cost += cost(leaf, self.most, self.set.count_ones());
            }
        }
        plan.cost += POD * parts.len() as f64;
        Some(plan)
    }

    /// Links to the core by the leaves that own each plane; `None` where there are too few.
    fn own_core(&self, parts: &[(usize, u32, u64)], plan: &mut Plan) -> Option<()> {
        for plane in planes_of(self.set) {
            let leaves = |part: &(usize, u32, u64)| part.1 + (part.2 >> plane & 1) as u32;
            let all: u32 = parts.iter().map(leaves).sum();
            let need = |part: &(usize, u32, u64)| {
                let flows = leaves(part).min(all - leaves(part));
                self.board.need.links(flows)
            };
            let able = parts.iter().filter(|part| need(part) > 0);
            let Some(smallest) = able.clone().min_by_key(|part| need(part)) else { continue };
            let most = able.clone().map(need).max()?;
            let core = |part: &(usize, u32, u64)| self.pods[part.0].core[plane];
            let others = able.clone().filter(|part| part.0 != smallest.0);
            let common = others.clone().map(core).fold(!0, |one, other| one & other);
            let own = lowest(common & core(smallest), need(smallest));
            let links = own | lowest(common & !own, most - own.count_ones().min(most));
            if own.count_ones() < need(smallest) || links.count_ones() < most {
                return None;
            }
            plan.core.push((self.pods[smallest.0].pod, plane as u32, own));
            for part in others {
                plan.core.push((self.pods[part.0].pod, plane as u32, links));
                plan.cost += CORE * f64::from(most - need(part));
            }
        }
        Some(())
    }
}

fn full_leaves(leaves: &[Leaf], set: u64, most: u32) -> Vec<usize> {
    let lanes = set.count_ones();
    let able = |&at: &usize| leaves[at].lanes & set == set && leaves[at].idle >= most;
    let mut full: Vec<usize> = (0..leaves.len()).filter(able).collect();
    let cost = |&at: &usize| cost(&leaves[at], most, lanes);
    full.sort_by(|one, other| cost(one).total_cmp(&cost(other)).then(one.cmp(other)));
    full
}
