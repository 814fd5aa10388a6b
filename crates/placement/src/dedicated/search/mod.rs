//! The search of the policy `dedicated`. It tries strategies in order and stops at the first that finds a placement.
//!
//! Each file names the conditions of docs/explanation/dedicated-links.md that its placements meet.

mod any_leaves;
pub mod candidates;
pub mod cost;
mod fallback_one_pod;
mod fallback_pods;
mod fill;
mod full_leaves;
pub mod leaf;
mod most_of_pods;
mod one_pod;
pub mod plan;
pub mod slot_sets;

use topolane_fabric::GroupIndex;

use candidates::Candidates;
use leaf::Leaf;
use most_of_pods::MostOfPods;
use plan::DedicatedPlan;
use slot_sets::{by_weight, closed_sets};

/// Bounds of a search. A search that reaches one ends with the best placement found so far.
pub struct SearchBounds {
    /// The most sets of uplink slots that leaves of a pod, or of a third-level group, have in common.
    pub slot_sets: usize,
    /// The most choices of pods that `full_leaves` and `any_leaves` try together.
    pub pod_choices: ChoiceBudget,
    /// The most placements with full leaves from which the cheapest is taken.
    pub full_leaves_plans: u32,
    /// The most choices of pods that `fallback_pods` tries.
    pub fallback_choices: usize,
    /// The most pods that `equal_parts` tries.
    pub equal_parts_pods: usize,
}

/// The number of choices that a search may still try.
pub type ChoiceBudget = u32;

/// The bounds of all searches. docs/explanation/dedicated-links.md says how often real jobs reach them.
pub const BOUNDS: SearchBounds = SearchBounds {
    slot_sets: 256,
    pod_choices: 512,
    full_leaves_plans: 4,
    fallback_choices: 2_000,
    equal_parts_pods: 20_000,
};

/// The result of a search, and whether the search reached a bound.
pub struct SearchResult {
    pub plan: Option<DedicatedPlan>,
    pub cut_short: bool,
}

impl SearchResult {
    const NOTHING: SearchResult = SearchResult { plan: None, cut_short: false };
}

/// A pod and its leaves.
struct Pod<'a> {
    pod: GroupIndex,
    leaves: &'a [Leaf],
    /// For each plane, the free uplink slots to the core.
    core: Vec<u64>,
}

/// Searches a placement for the job: on one leaf, else in one pod, else over several pods.
pub fn search(candidates: &Candidates<'_>) -> SearchResult {
    if let Some(plan) = DedicatedPlan::on_one_leaf(candidates) {
        return SearchResult { plan: Some(plan), cut_short: false };
    }
    let in_one_pod =
        cheapest(candidates, candidates.pods().map(|leaves| one_pod(candidates, leaves)));
    if in_one_pod.plan.is_some() || candidates.fabric.depth() < 3 {
        return in_one_pod;
    }
    let found =
        cheapest(candidates, candidates.tops().map(|leaves| several_pods(candidates, leaves)));
    SearchResult { cut_short: found.cut_short || in_one_pod.cut_short, ..found }
}

/// Searches in one pod: leaves that own one set of slots; one leaf with over half of the job, or a remainder; both.
fn one_pod(candidates: &Candidates<'_>, leaves: &[Leaf]) -> SearchResult {
    if !candidates.may_hold(leaves) {
        return SearchResult::NOTHING;
    }
    let (sets, cut_short) = closed_sets(leaves.iter().map(|leaf| leaf.slots), 1);
    let plan = one_pod::one_set(candidates, leaves, &sets)
        .or_else(|| one_pod::majority_or_remainder(candidates, leaves, &sets))
        .or_else(|| fallback_one_pod::search(candidates, leaves, &sets));
    SearchResult { plan, cut_short }
}

/// Searches in several pods of one third-level group: full leaves plus one more; leaves with any number of nodes; all
/// remaining shapes.
fn several_pods(candidates: &Candidates<'_>, leaves: &[Leaf]) -> SearchResult {
    if !candidates.may_hold(leaves) {
        return SearchResult::NOTHING;
    }
    let pods: Vec<Pod<'_>> = leaves
        .chunk_by(|one, other| one.pod == other.pod)
        .map(|leaves| Pod { pod: leaves[0].pod, leaves, core: candidates.core(leaves[0].pod) })
        .collect();
    // The first two strategies assume one cable from a leaf to each plane, and the first counts core links in another
    // way.
    let by_plane = candidates.parallel(leaves[0].leaf) == 1;
    let mut most = (!by_plane).then(|| MostOfPods::new(candidates, &pods));
    let fewest = most.as_ref().map_or(Some(1), MostOfPods::fewest_slots);
    let Some(fewest) = fewest else { return SearchResult::NOTHING };
    let (sets, cut_short) = closed_sets(by_weight(leaves).into_iter(), fewest);
    let mut budget = BOUNDS.pod_choices;
    let planes = if by_plane { &sets[..] } else { &[] };
    let plan = full_leaves::search(candidates, leaves, &pods, planes, &mut budget);
    if plan.is_some() {
        return SearchResult { plan, cut_short };
    }
    let plan = any_leaves::search(candidates, leaves, &pods, planes, &mut budget);
    if plan.is_some() {
        return SearchResult { plan, cut_short: cut_short || budget == 0 };
    }
    if candidates.tidy {
        return SearchResult { plan: None, cut_short: cut_short || budget == 0 };
    }
    let most = most.get_or_insert_with(|| MostOfPods::new(candidates, &pods));
    let (plan, was_cut) = fallback_pods::search(candidates, &pods, most, &sets);
    SearchResult { plan, cut_short: cut_short || was_cut }
}

/// The cheapest plan, the first among equals, and whether any search reached a bound. If any plan will do, returns the
/// first one.
fn cheapest(
    candidates: &Candidates<'_>,
    searches: impl Iterator<Item = SearchResult>,
) -> SearchResult {
    let mut best = SearchResult::NOTHING;
    for SearchResult { plan, cut_short } in searches {
        best.cut_short |= cut_short;
        if let Some(plan) = plan {
            best.plan = Some(DedicatedPlan::cheaper(best.plan, plan));
            if candidates.any {
                break;
            }
        }
    }
    best
}
