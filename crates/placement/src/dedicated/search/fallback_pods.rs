//! The remaining shapes over several pods: conditions (1) and (3) with any pods. One pod may hold over half of the job,
//! one may own only a part of the others' core links, and cables to a core switch may be parallel.

use crate::dedicated::search::candidates::Candidates;
use crate::dedicated::search::fallback_one_pod::SlotSetLeaves;
use crate::dedicated::search::leaf::Leaf;
use crate::dedicated::search::most_of_pods::{MostOfPods, PodShare, hold, widest, width};
use crate::dedicated::search::plan::DedicatedPlan;
use crate::dedicated::search::slot_sets::lowest;
use crate::dedicated::search::{BOUNDS, Pod};
use crate::dedicated::uplink_slots::bits;

/// Returns a partition over several pods with one of the sets of slots, if one exists, and whether the search reached a
/// bound. One pod may hold over half of the job, and one may own only a part of the others' core links.
pub fn search(
    candidates: &Candidates<'_>,
    pods: &[Pod<'_>],
    most: &mut MostOfPods,
    sets: &[u64],
) -> (Option<DedicatedPlan>, bool) {
    let mut choices = BOUNDS.fallback_choices;
    for &set in sets {
        most.look_at(set);
        for slots in (1..=set.count_ones()).rev() {
            if !most.may_hold(slots) {
                continue;
            }
            let Some(mut search) = FallbackPodsSearch::new(candidates, pods, set, slots, choices)
            else {
                break;
            };
            let found = search.choose(0, &mut Chosen::new(pods));
            choices = search.choices;
            if found.is_some() || choices == 0 {
                return (found, choices == 0);
            }
        }
    }
    (None, false)
}

/// The search for one set of slots and a number of them that the job owns on each leaf.
struct FallbackPodsSearch<'a> {
    candidates: &'a Candidates<'a>,
    pods: &'a [Pod<'a>],
    /// For each plane, the number of uplink slots of the set.
    in_plane: Vec<u32>,
    set: u64,
    slots: u32,
    /// Parallel cables from a leaf into one plane.
    parallel: u32,
    /// Pods with leaves that have the set; pods that can hold most nodes come first.
    members: Vec<OfPod>,
    /// For each index, the nodes that the members from there on can hold.
    left: Vec<u32>,
    /// The width from which on more core cables per slot add no nodes in any pod.
    widest: u32,
    shares: Vec<PodShare>,
    choices: usize,
}

/// The pods chosen so far.
struct Chosen {
    /// The pods, as indices into the members.
    pods: Vec<usize>,
    /// The pod that may own only a part of the links, if any.
    rest: Option<usize>,
    /// For each plane, the core links that all pods except `rest` have free.
    common: Vec<u64>,
    nodes: u32,
}

impl Chosen {
    fn new(pods: &[Pod<'_>]) -> Self {
        let planes = pods.first().map_or(0, |pod| pod.core.len());
        Chosen { pods: Vec::new(), rest: None, common: vec![!0; planes], nodes: 0 }
    }
}

/// The nodes that a job may take from a pod.
struct OfPod {
    /// Index of the pod.
    pod: usize,
    even: SlotSetLeaves,
    /// The nodes with one leaf that holds over half of the job; `None` if that is not possible.
    majority: Option<SlotSetLeaves>,
}

impl OfPod {
    fn most(&self) -> &SlotSetLeaves {
        self.majority.as_ref().unwrap_or(&self.even)
    }
}

/// Core cables per slot in a plane: for most pods, and for the pod that may own only a part.
type SlotWidths = (u32, u32);

impl<'a> FallbackPodsSearch<'a> {
    fn new(
        candidates: &'a Candidates<'a>,
        pods: &'a [Pod<'a>],
        set: u64,
        slots: u32,
        choices: usize,
    ) -> Option<Self> {
        let most = candidates.need.nodes(slots);
        let having = || candidates.leaves.iter().filter(|leaf| leaf.slots & set == set);
        let largest = having().map(|leaf| leaf.idle).max()?;
        if having().map(|leaf| leaf.idle.min(most)).sum::<u32>() + largest < candidates.wanted {
            return None;
        }
        let has = |leaf: &Leaf| leaf.slots & set == set;
        let of = |pod: &Pod<'_>, majority| {
            SlotSetLeaves::of(candidates, pod.leaves, has, most, majority)
        };
        let members = |(at, pod): (usize, &Pod<'_>)| {
            Some(OfPod { pod: at, even: of(pod, false)?, majority: of(pod, true) })
        };
        let mut members: Vec<OfPod> = pods.iter().enumerate().filter_map(members).collect();
        members.retain(|members| members.even.nodes > 0);
        members.sort_by_key(|members| std::cmp::Reverse(members.most().nodes));
        let parallel = candidates.parallel(pods.first()?.leaves.first()?.leaf);
        let in_plane =
            (0..pods[0].core.len()).map(|plane| (set & slots_into(plane, parallel)).count_ones());
        let in_plane = in_plane.collect();
        let mut left = vec![0; members.len() + 1];
        for (at, of) in members.iter().enumerate().rev() {
            left[at] = left[at + 1] + of.most().nodes;
        }
        let even = members.iter().map(|members| members.even.nodes).max().unwrap_or(0);
        (left[0] >= candidates.wanted).then(|| FallbackPodsSearch {
            candidates,
            pods,
            in_plane,
            set,
            slots,
            parallel,
            members,
            left,
            widest: widest(&candidates.need, even, slots),
            shares: Vec::with_capacity(pods.len()),
            choices,
        })
    }

    /// Extends the chosen pods with pods from index `at` on.
    fn choose(&mut self, at: usize, chosen: &mut Chosen) -> Option<DedicatedPlan> {
        self.choices = self.choices.checked_sub(1)?;
        if chosen.nodes + self.left[at] < self.candidates.wanted
            || self.slots_of(chosen, (1, 1)).sum::<u32>() < self.slots
            || !self.may_hold(at, chosen)
        {
            return None;
        }
        if chosen.pods.len() > 1
            && chosen.nodes >= self.candidates.wanted
            && let Some(plan) = self.plan(chosen)
        {
            return Some(plan);
        }
        let (pod, nodes) = self.members.get(at).map(|of| (of.pod, of.most().nodes))?;
        chosen.pods.push(at);
        chosen.nodes += nodes;
        let own = self.pods[pod].core.iter();
        let narrowed = chosen.common.iter().zip(own).map(|(common, own)| common & own).collect();
        let common = std::mem::replace(&mut chosen.common, narrowed);
        let mut found = self.choose(at + 1, chosen);
        chosen.common = common;
        if found.is_none() && chosen.rest.is_none() {
            chosen.rest = Some(at);
            found = self.choose(at + 1, chosen);
            chosen.rest = None;
        }
        chosen.pods.pop();
        chosen.nodes -= nodes;
        found.or_else(|| self.choose(at + 1, chosen))
    }

    /// Whether the chosen pods could hold the job together with pods from index `at` on. It checks each of those pods
    /// on its own, so true is not certain.
    fn may_hold(&mut self, at: usize, chosen: &Chosen) -> bool {
        let common = || chosen.common.iter().zip(&self.in_plane);
        let share =
            |of: &OfPod, width: u32| PodShare { even: of.even.nodes, most: of.most().nodes, width };
        let all = common().map(|(common, &most)| (most, common.count_ones()));
        let all = width(all, self.slots, self.widest);
        self.shares.clear();
        self.shares.extend(chosen.pods.iter().map(|&place| share(&self.members[place], all)));
        self.shares.extend(self.members[at..].iter().map(|of| {
            let own = common().zip(&self.pods[of.pod].core);
            let own = own.map(|((common, &most), own)| (most, (common & own).count_ones()));
            share(of, width(own, self.slots, self.widest))
        }));
        hold(&self.candidates.need, self.slots, &self.shares, chosen.rest.is_none())
    }

    /// For each plane, the number of uplink slots for which pods have enough core cables.
    fn slots_of<'c>(
        &'c self,
        chosen: &'c Chosen,
        (most, rest): SlotWidths,
    ) -> impl Iterator<Item = u32> + 'c {
        let own = chosen.rest.map(|at| &self.pods[self.members[at].pod].core);
        let slots = move |(plane, &common): (usize, &u64)| {
            let of_rest = own.map_or(u32::MAX, |own| (common & own[plane]).count_ones() / rest);
            self.in_plane[plane].min(common.count_ones() / most).min(of_rest)
        };
        chosen.common.iter().enumerate().map(slots)
    }

    /// Returns the plan on these pods, if they can hold the job. It gives each slot the most core cables: first in most
    /// pods, then in the pod that may own a part.
    fn plan(&self, chosen: &Chosen) -> Option<DedicatedPlan> {
        let common: Vec<u32> = chosen.common.iter().map(|common| common.count_ones()).collect();
        let of_rest = chosen.rest.map(|at| {
            let own = self.pods[self.members[at].pod].core.iter().zip(&chosen.common);
            own.map(|(own, common)| (own & common).count_ones()).collect::<Vec<u32>>()
        });
        let enough = |(most, rest): SlotWidths| {
            let slots = |plane: usize| {
                let of_rest = of_rest.as_ref().map_or(u32::MAX, |counts| counts[plane] / rest);
                self.in_plane[plane].min(common[plane] / most).min(of_rest)
            };
            (0..common.len()).map(slots).sum::<u32>() >= self.slots
        };
        // A larger width leaves fewer slots.
        let widest = common.iter().copied().max().unwrap_or(0);
        let widest = last_where(widest, |most| enough((most, 1)))?;
        for most in (1..=widest).rev() {
            let rest = match chosen.rest {
                Some(_) => last_where(most, |rest| enough((most, rest)))?,
                None => most,
            };
            if let Some(nodes) = self.nodes(chosen, (most, rest)) {
                return Some(self.lay_out(chosen, (most, rest), &nodes));
            }
            // If no pod has a width of its own, a smaller width holds fewer nodes.
            chosen.rest?;
        }
        None
    }

    /// The nodes of the job in each pod.
    fn nodes(&self, chosen: &Chosen, width: SlotWidths) -> Option<Vec<u32>> {
        let most = |at: usize| {
            let core = if chosen.rest == Some(at) { width.1 } else { width.0 };
            self.candidates.need.nodes_of_pod(core, self.slots)
        };
        let filled = |majority: Option<usize>| {
            let mut left = self.candidates.wanted;
            let of_majority = match majority {
                Some(majority) => {
                    let at = chosen.pods[majority];
                    let nodes = self.members[at].most().nodes.min(left - 1);
                    left -= nodes;
                    if left > most(at) {
                        return None;
                    }
                    Some((majority, nodes))
                }
                None => None,
            };
            let mut nodes = vec![0; chosen.pods.len()];
            if let Some((majority, of_majority)) = of_majority {
                nodes[majority] = of_majority;
            }
            for (index, &at) in
                chosen.pods.iter().enumerate().filter(|&(index, _)| majority != Some(index))
            {
                nodes[index] = self.members[at].even.nodes.min(most(at)).min(left);
                left -= nodes[index];
            }
            (left == 0).then_some(nodes)
        };
        filled(None).or_else(|| (0..chosen.pods.len()).find_map(|majority| filled(Some(majority))))
    }

    fn lay_out(&self, chosen: &Chosen, width: SlotWidths, nodes: &[u32]) -> DedicatedPlan {
        let mut into: Vec<u32> = self.slots_of(chosen, width).collect();
        let mut spare = into.iter().sum::<u32>() - self.slots;
        for slots in &mut into {
            let less = spare.min(*slots);
            *slots -= less;
            spare -= less;
        }
        let planes = into.iter().enumerate();
        let slots = planes.fold(0, |all, (plane, &count)| {
            all | lowest(self.set & slots_into(plane, self.parallel), count)
        });
        let mut plan = DedicatedPlan::default();
        let parts = || chosen.pods.iter().zip(nodes).filter(|&(_, &nodes)| nodes > 0);
        for (&at, &nodes) in parts() {
            let members = &self.members[at];
            let taken = if nodes > members.even.nodes { members.most() } else { &members.even };
            plan.add(self.candidates, self.pods[members.pod].leaves, &taken.take(nodes).0, slots);
        }
        for (plane, &count) in into.iter().enumerate().filter(|&(_, &count)| count > 0) {
            let common = chosen.common[plane];
            let own = chosen
                .rest
                .map_or(common, |at| common & self.pods[self.members[at].pod].core[plane]);
            let part = lowest(own, count * width.1);
            let all = part | lowest(common & !part, count * width.0 - part.count_ones());
            for (&at, _) in parts() {
                let owned = if chosen.rest == Some(at) { part } else { all };
                plan.core.push((self.pods[self.members[at].pod].pod, plane as u32, owned));
            }
        }
        plan
    }
}

/// The last number from 1 to `most` for which `holds` is true. `holds` must be true up to some number and false after
/// it.
fn last_where(most: u32, holds: impl Fn(u32) -> bool) -> Option<u32> {
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = high - (high - low) / 2;
        if holds(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    (low > 0).then_some(low)
}

/// The slots of a leaf that lead into a plane.
pub(super) fn slots_into(plane: usize, parallel: u32) -> u64 {
    bits(parallel) << (plane as u32 * parallel)
}
