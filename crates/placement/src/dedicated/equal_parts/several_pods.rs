//! Searches for partitions of equal parts over several pods.

use topolane_fabric::GroupIndex;

use crate::dedicated::equal_parts::layout::Smaller;
use crate::dedicated::equal_parts::{Across, EqualParts, smaller};
use crate::dedicated::search::BOUNDS;
use crate::dedicated::search::leaf::Leaf;
use crate::dedicated::search::plan::DedicatedPlan;
use crate::dedicated::search::slot_sets::{closed_sets, lowest};
use crate::dedicated::uplink_slots::bits;

pub(super) struct EqualPartsPod<'a> {
    pub(super) pod: GroupIndex,
    pub(super) leaves: &'a [Leaf],
    /// The largest number of free nodes on one leaf of the pod.
    pub(super) most: u32,
    /// For each plane, the free slots to the core.
    pub(super) core: &'a [u64],
}

/// The shape of a job: `pods` pods with `leaves` leaves of `each` nodes, one pod with `fewer` leaves, and one leaf with
/// `left` nodes.
pub(super) struct EqualPartsShape {
    /// The slots that all leaves have in common.
    pub(super) set: u64,
    pub(super) each: u32,
    pub(super) pods: usize,
    pub(super) leaves: u32,
    pub(super) fewer: u32,
    pub(super) left: u32,
    /// For each plane, what `leaves` leaves need.
    needs: Vec<PlaneNeed>,
}

/// What the leaves of a pod need in one plane.
struct PlaneNeed {
    /// The uplink slots of the leaves into the plane.
    slots: u32,
    /// Links to the core that the pod needs in the plane.
    links: u32,
}

/// Returns the first partition of equal parts over several pods of one third-level group.
pub fn several_pods(even: &EqualParts<'_>, across: Across) -> Option<DedicatedPlan> {
    let candidates = even.candidates;
    if candidates.fabric.depth() < 3 {
        return None;
    }
    let tops = candidates.tops();
    tops.filter(|leaves| leaves.iter().map(|leaf| leaf.idle).sum::<u32>() >= candidates.wanted)
        .find_map(|leaves| under_one_top(even, across, leaves))
}

fn under_one_top(even: &EqualParts<'_>, across: Across, leaves: &[Leaf]) -> Option<DedicatedPlan> {
    let usable: Vec<Leaf> = match across {
        Across::AnyLeaves => leaves.to_vec(),
        _ => leaves.iter().filter(|leaf| leaf.untouched).copied().collect(),
    };
    let mut sizes: Vec<u32> = usable.iter().map(|leaf| leaf.idle).collect();
    sizes.sort_unstable_by(|one, other| other.cmp(one));
    let counts = sizes.clone();
    sizes.dedup();
    if across == Across::AnyLeaves {
        sizes = (1..=sizes.first().copied()?).rev().collect();
    }
    // Drop sizes with too few leaves: on a full machine this drops them all.
    let wanted = even.candidates.wanted;
    sizes.retain(|&each| {
        let or_more = counts.partition_point(|&idle| idle >= each);
        let more = counts.partition_point(|&idle| idle > each);
        match across {
            Across::AnyLeaves => or_more as u32 >= wanted / each,
            Across::WholeLeaves => (or_more - more) as u32 >= wanted / each,
            Across::WholeLeavesOnly => (or_more - more) as u32 >= wanted.div_ceil(each),
        }
    });
    if sizes.is_empty() {
        return None;
    }
    // All pods' links are in one vector, `ends` marks where each pod's links end: one allocation.
    let (mut links, mut ends) = (Vec::new(), Vec::new());
    for leaves in leaves.chunk_by(|one, other| one.pod == other.pod) {
        links.extend(even.candidates.core_links(leaves[0].pod));
        ends.push(links.len());
    }
    let mut first = 0;
    let pods = leaves.chunk_by(|one, other| one.pod == other.pod).zip(&ends);
    let pods: Vec<EqualPartsPod<'_>> = pods
        .map(|(leaves, &end)| {
            let core = &links[std::mem::replace(&mut first, end)..end];
            let most = leaves.iter().map(|leaf| leaf.idle).max().unwrap_or(0);
            EqualPartsPod { pod: leaves[0].pod, leaves, most, core }
        })
        .collect();
    let mut search =
        EqualPodsSearch { even, across, pods, steps: BOUNDS.equal_parts_pods, unused: Vec::new() };
    let mut fewest = 1;
    if across == Across::AnyLeaves {
        sizes.retain(|&each| search.may_hold_size(each));
        fewest = sizes.last().map_or(1, |&each| even.slots(each));
    }
    let full = |each: u32| match across {
        Across::WholeLeavesOnly => wanted.div_ceil(each),
        _ => wanted / each,
    };
    let in_common = |each: u32| slots_in_common(&usable, each, full(each), even.slots(each));
    let sizes = sizes.into_iter().map(|each| (each, in_common(each)));
    let sizes: Vec<(u32, u64)> =
        sizes.filter(|&(each, common)| common.count_ones() >= even.slots(each)).collect();
    let most = sizes.first()?.0;
    let (sets, _) = closed_sets(usable.iter().map(|leaf| leaf.slots), fewest);
    // For each set, the number of leaves by free nodes; computed when a set is first examined.
    let mut members: Vec<Option<Vec<u32>>> = vec![None; sets.len()];
    sizes.into_iter().find_map(|(each, common)| {
        sets.iter().zip(&mut members).find_map(|(&set, members)| {
            if set & !common != 0 || set.count_ones() < even.slots(each) {
                return None;
            }
            let members = members.get_or_insert_with(|| holding(&usable, set, most));
            let has_leaves = members[each as usize] >= full(each);
            if has_leaves { search.of_size(each, set) } else { None }
        })
    })
}

/// Entry `n`, up to `most`, is the number of leaves that have a set of slots and at least `n` free nodes.
fn holding(leaves: &[Leaf], set: u64, most: u32) -> Vec<u32> {
    let mut holding = vec![0; most as usize + 1];
    for leaf in leaves.iter().filter(|leaf| leaf.slots & set == set) {
        holding[leaf.idle.min(most) as usize] += 1;
    }
    for idle in (0..most as usize).rev() {
        holding[idle] += holding[idle + 1];
    }
    holding
}

/// The slots that can be common to `full` leaves with at least `each` free nodes and `slots` slots: those that at least
/// `full` such leaves have.
fn slots_in_common(leaves: &[Leaf], each: u32, full: u32, slots: u32) -> u64 {
    let mut common = !0;
    loop {
        let holds = |leaf: &&Leaf| leaf.idle >= each && (leaf.slots & common).count_ones() >= slots;
        let able = leaves.iter().filter(holds).map(|leaf| leaf.slots & common);
        let narrowed = in_at_least(able, full);
        if narrowed == common || narrowed.count_ones() < slots {
            return narrowed;
        }
        common = narrowed;
    }
}

/// The bits that are set in at least `least` of the words.
fn in_at_least(words: impl Iterator<Item = u64>, least: u32) -> u64 {
    // Counts all 64 bits at once, one binary digit per word. Counts start so that they overflow at `least`.
    const DIGITS: usize = u32::BITS as usize;
    let digits = DIGITS - (least.max(1) - 1).leading_zeros() as usize;
    let start = (1u64 << digits) - u64::from(least);
    let mut counts = [0u64; DIGITS];
    for (digit, count) in counts.iter_mut().enumerate().take(digits) {
        *count = if start >> digit & 1 == 1 { !0 } else { 0 };
    }
    let mut reached = if least == 0 { !0 } else { 0 };
    for word in words {
        let mut carry = word;
        for count in &mut counts[..digits] {
            (*count, carry) = (*count ^ carry, *count & carry);
        }
        reached |= carry;
    }
    reached
}

pub(super) struct EqualPodsSearch<'a> {
    pub(super) even: &'a EqualParts<'a>,
    pub(super) across: Across,
    pub(super) pods: Vec<EqualPartsPod<'a>>,
    pub(super) steps: usize,
    /// Vectors to reuse for the links that pods have in common.
    unused: Vec<Vec<u64>>,
}

impl EqualPodsSearch<'_> {
    /// Finds a partition with `each` nodes on every leaf, where all leaves have the set in common. It tries the largest
    /// number of leaves per pod first.
    fn of_size(&mut self, each: u32, set: u64) -> Option<DedicatedPlan> {
        if self.steps == 0 {
            return None;
        }
        let wanted = self.even.candidates.wanted;
        let rounded = self.across == Across::WholeLeavesOnly;
        let full = if rounded { wanted.div_ceil(each) } else { wanted / each };
        let left = if rounded { 0 } else { wanted % each };
        let counts: Vec<u32> =
            self.pods.iter().map(|pod| self.full_leaves(pod, each, set).count() as u32).collect();
        if full == 0 || counts.iter().sum::<u32>() < full {
            return None;
        }
        let most = counts.iter().copied().max()?.min(full);
        (1..=most).rev().find_map(|leaves| {
            let (pods, fewer) = ((full / leaves) as usize, full % leaves);
            let is_one_pod = pods == 1 && fewer == 0 && left == 0;
            let able = counts.iter().filter(|&&count| count >= leaves).count();
            if is_one_pod || able < pods {
                return None;
            }
            let needs = self.needs(set, leaves);
            let shape = EqualPartsShape { set, each, pods, leaves, fewer, left, needs };
            if self.across == Across::AnyLeaves && !self.may_hold(&shape, &counts) {
                return None;
            }
            let common = vec![!0; self.pods[0].core.len()];
            if !self.can_go_on(&shape, &counts, 0, 0, &common) {
                return None;
            }
            self.choose(&shape, &counts, 0, &mut Vec::new(), &common)
        })
    }

    /// The leaves of a pod that can hold `each` nodes of the job with this set of slots.
    pub(super) fn full_leaves(
        &self,
        pod: &EqualPartsPod<'_>,
        each: u32,
        set: u64,
    ) -> impl Iterator<Item = usize> {
        let any = self.across == Across::AnyLeaves;
        let holds = move |leaf: &Leaf| {
            leaf.slots & set == set
                && if any { leaf.idle >= each } else { leaf.untouched && leaf.idle == each }
        };
        let leaves = pod.leaves;
        (0..leaves.len()).filter(move |&at| holds(&leaves[at]))
    }

    /// Extends the chosen pods with pods from index `at` on. All chosen pods have the core slots `common` free.
    fn choose(
        &mut self,
        shape: &EqualPartsShape,
        counts: &[u32],
        at: usize,
        chosen: &mut Vec<usize>,
        common: &[u64],
    ) -> Option<DedicatedPlan> {
        if chosen.len() == shape.pods {
            return self.finish(shape, counts, chosen, common);
        }
        for next in at..self.pods.len() {
            if counts[next] < shape.leaves {
                continue;
            }
            self.steps = self.steps.checked_sub(1)?;
            let narrowed = self.both(common, next);
            let able = self.able(shape, shape.set, &narrowed, shape.leaves);
            let mut found = None;
            if able.count_ones() >= self.even.slots(shape.each)
                && self.can_go_on(shape, counts, next + 1, chosen.len() + 1, &narrowed)
            {
                chosen.push(next);
                found = self.choose(shape, counts, next + 1, chosen, &narrowed);
                chosen.pop();
            }
            self.unused.push(narrowed);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Whether the search can still succeed with pods from index `at` on: enough of them share enough links to the core
    /// with the chosen pods.
    fn can_go_on(
        &self,
        shape: &EqualPartsShape,
        counts: &[u32],
        at: usize,
        chosen: usize,
        common: &[u64],
    ) -> bool {
        let wanting = shape.pods - chosen;
        if wanting == 0 {
            return true;
        }
        let slots = self.even.slots(shape.each);
        let enough = |links: &dyn Fn(usize) -> u64| {
            let planes = shape.needs.iter().enumerate();
            let able = planes.filter(|&(plane, need)| links(plane).count_ones() >= need.links);
            able.map(|(_, need)| need.slots).sum::<u32>() >= slots
        };
        let able = |&pod: &usize| {
            let core = self.pods[pod].core;
            counts[pod] >= shape.leaves && enough(&|plane| common[plane] & core[plane])
        };
        let able: Vec<usize> = (at..self.pods.len()).filter(able).collect();
        let in_common = |plane: usize| {
            let cores = able.iter().map(|&pod| self.pods[pod].core[plane] & common[plane]);
            in_at_least(cores, wanting as u32)
        };
        able.len() >= wanting && (wanting == 1 || enough(&in_common))
    }

    /// Whether there are enough pods for a shape if each pod is checked on its own.
    fn may_hold(&self, shape: &EqualPartsShape, counts: &[u32]) -> bool {
        let slots = self.even.slots(shape.each);
        let has = |pod: usize, needs: &[PlaneNeed]| {
            let planes = needs.iter().zip(self.pods[pod].core);
            let able = planes.filter(|(need, own)| own.count_ones() >= need.links);
            able.map(|(need, _)| need.slots).sum::<u32>() >= slots
        };
        let is_equal = |pod: usize| counts[pod] >= shape.leaves && has(pod, &shape.needs);
        let equal = (0..self.pods.len()).filter(|&pod| is_equal(pod)).count();
        if equal < shape.pods || shape.fewer == 0 && shape.left == 0 {
            return equal >= shape.pods;
        }
        let needs = self.needs(shape.set, shape.fewer);
        let slots_left = self.even.slots(shape.left);
        let holds_left = |leaf: &Leaf| {
            leaf.idle >= shape.left && (leaf.slots & shape.set).count_ones() >= slots_left
        };
        let is_smaller = |&pod: &usize| {
            counts[pod] >= shape.fewer
                && self.pods[pod].most >= shape.left
                && has(pod, &needs)
                && self.pods[pod].leaves.iter().any(holds_left)
        };
        (0..self.pods.len()).filter(is_smaller).any(|pod| equal > shape.pods || !is_equal(pod))
    }

    /// For each plane, the slots of a set into it and the links that `leaves` leaves with these slots need.
    fn needs(&self, set: u64, leaves: u32) -> Vec<PlaneNeed> {
        let parallel = self.parallel();
        let planes = (0..self.pods[0].core.len() as u32)
            .take_while(|plane| plane * parallel < u64::BITS)
            .map(|plane| (set & bits(parallel) << (plane * parallel)).count_ones());
        planes.map(|slots| PlaneNeed { slots, links: self.even.core(leaves * slots) }).collect()
    }

    /// Whether partitions with `each` nodes on each leaf may exist for any set of slots.
    fn may_hold_size(&self, each: u32) -> bool {
        let (full, slots) = (self.even.candidates.wanted / each, self.even.slots(each));
        let able = |leaf: &&Leaf| leaf.idle >= each && leaf.slots.count_ones() >= slots;
        let counts: Vec<u32> =
            self.pods.iter().map(|pod| pod.leaves.iter().filter(able).count() as u32).collect();
        if counts.iter().sum::<u32>() < full {
            return false;
        }
        let parallel = self.parallel();
        let most = counts.iter().copied().max().unwrap_or(0).min(full);
        (1..=most).any(|leaves| {
            let links: Vec<u32> =
                (1..=parallel).map(|slots| self.even.core(leaves * slots)).collect();
            let into = |core: &u64| links.partition_point(|&need| need <= core.count_ones()) as u32;
            let has = |&(&count, pod): &(&u32, &EqualPartsPod<'_>)| {
                count >= leaves && pod.core.iter().map(into).sum::<u32>() >= slots
            };
            let pods = (full / leaves) as usize;
            counts.iter().zip(&self.pods).filter(has).take(pods).count() == pods
        })
    }

    /// The slots of a set that lead to planes where `common` has enough links to the core for `leaves` leaves.
    fn able(&self, shape: &EqualPartsShape, set: u64, common: &[u64], leaves: u32) -> u64 {
        let parallel = self.parallel();
        (0..).zip(common).take_while(|&(plane, _)| plane * parallel < u64::BITS).fold(
            0,
            |able, (plane, links)| {
                let of_plane = bits(parallel) << (plane * parallel);
                let wanted = (shape.set & of_plane).count_ones();
                let has_links = |needed: u32| links.count_ones() >= needed;
                if set & of_plane != 0 && has_links(self.even.core(leaves * wanted)) {
                    able | set & of_plane
                } else {
                    able
                }
            },
        )
    }

    /// The links to the core that are free both in `common` and in the pod.
    fn both(&mut self, common: &[u64], pod: usize) -> Vec<u64> {
        let mut both = self.unused.pop().unwrap_or_default();
        both.clear();
        both.extend(common.iter().zip(self.pods[pod].core).map(|(one, other)| one & other));
        both
    }

    pub(super) fn parallel(&self) -> u32 {
        self.even.parallel(self.pods[0].leaves[0].leaf)
    }

    /// Adds the smaller pod, if the shape has one, and returns the plan.
    fn finish(
        &mut self,
        shape: &EqualPartsShape,
        counts: &[u32],
        chosen: &[usize],
        common: &[u64],
    ) -> Option<DedicatedPlan> {
        let slots = self.even.slots(shape.each);
        let able = self.able(shape, shape.set, common, shape.leaves);
        if shape.fewer == 0 && shape.left == 0 {
            return Some(self.lay_out(shape, chosen, common, lowest(able, slots), None));
        }
        for pod in (0..self.pods.len()).filter(|pod| !chosen.contains(pod)) {
            if counts[pod] < shape.fewer {
                continue;
            }
            self.steps = self.steps.checked_sub(1)?;
            if self.pods[pod].most < shape.left {
                continue;
            }
            let shared = self.both(common, pod);
            let able = self.able(shape, able, &shared, shape.fewer);
            let more =
                if shape.left > 0 { self.able(shape, able, &shared, shape.fewer + 1) } else { 0 };
            self.unused.push(shared);
            if able.count_ones() < slots {
                continue;
            }
            let full = self.full_leaves(&self.pods[pod], shape.each, shape.set);
            let full: Vec<usize> = full.take(shape.fewer as usize).collect();
            let mut smallest = Smaller { pod, full, last: None, part: 0 };
            if shape.left > 0 {
                let slots = self.even.slots(shape.left);
                let leaves = self.pods[pod].leaves;
                let Some(last) = smaller(leaves, &smallest.full, shape.left, more, slots) else {
                    continue;
                };
                smallest.part = lowest(leaves[last].slots & more, slots);
                smallest.last = Some(last);
            }
            let part = smallest.part;
            let own = part | lowest(able & !part, slots.saturating_sub(part.count_ones()));
            return Some(self.lay_out(shape, chosen, common, own, Some(&smallest)));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::in_at_least;

    proptest! {
        /// A bit is found if at least `least` words have it, and only then.
        #[test]
        fn bits_in_at_least_a_number_of_words(
            words in proptest::collection::vec(any::<u64>(), 0..70),
            sparse in any::<u64>(),
            least in 0u32..72,
        ) {
            for words in [words.clone(), words.iter().map(|word| word & sparse).collect()] {
                let found = in_at_least(words.iter().copied(), least);
                for bit in 0..u64::BITS {
                    let having = words.iter().filter(|&word| word >> bit & 1 == 1).count();
                    prop_assert_eq!(found >> bit & 1 == 1, having >= least as usize, "bit {}", bit);
                }
            }
        }
    }
}
