//! The search of the policy `dedicated`: strategies in order. The first that finds a placement ends it.
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
use plan::Plan;
use slot_sets::{by_weight, closed_sets};

/// How far a search looks. A search that reaches one of these ends with the best placement that it has.
pub struct Bounds {
    /// Sets of uplink slots that leaves of a pod, or of a third-level group, have in common.
    pub slot_sets: usize,
    /// Choices of pods, of `full_leaves` and `any_leaves` together.
    pub pod_choices: Budget,
    /// Placements with full leaves of which the one of least cost is taken.
    pub full_leaves_plans: u32,
    /// Choices of pods, of `fallback_pods`.
    pub fallback_choices: usize,
    /// Pods that `equal_parts` looks at.
    pub equal_parts_pods: usize,
}

/// Choices that are left.
pub type Budget = u32;

/// The bounds of all searches. docs/explanation/dedicated-links.md says how often real jobs reach them.
pub const BOUNDS: Bounds = Bounds {
    slot_sets: 256,
    pod_choices: 512,
    full_leaves_plans: 4,
    fallback_choices: 2_000,
    equal_parts_pods: 20_000,
};

/// What a search finds, and whether it reached a bound.
pub struct Found {
    pub plan: Option<Plan>,
    pub cut_short: bool,
}

impl Found {
    const NOTHING: Found = Found { plan: None, cut_short: false };
}

/// A pod and its leaves.
struct Pod<'a> {
    pod: GroupIndex,
    leaves: &'a [Leaf],
    /// Free uplink slots to the core by plane.
    core: Vec<u64>,
}

/// The placement of the job: on one leaf, else in one pod, else over several.
pub fn search(candidates: &Candidates<'_>) -> Found {
    if let Some(plan) = Plan::on_one_leaf(candidates) {
        return Found { plan: Some(plan), cut_short: false };
    }
    let in_one_pod =
        cheapest(candidates, candidates.pods().map(|leaves| one_pod(candidates, leaves)));
    if in_one_pod.plan.is_some() || candidates.fabric.depth() < 3 {
        return in_one_pod;
    }
    let found =
        cheapest(candidates, candidates.tops().map(|leaves| several_pods(candidates, leaves)));
    Found { cut_short: found.cut_short || in_one_pod.cut_short, ..found }
}

/// In one pod: leaves that own one set of slots; one leaf with over half of the job, or a remainder; both.
fn one_pod(candidates: &Candidates<'_>, leaves: &[Leaf]) -> Found {
    if !candidates.may_hold(leaves) {
        return Found::NOTHING;
    }
    let (sets, cut_short) = closed_sets(leaves.iter().map(|leaf| leaf.slots), 1);
    let plan = one_pod::one_set(candidates, leaves, &sets)
        .or_else(|| one_pod::majority_or_remainder(candidates, leaves, &sets))
        .or_else(|| fallback_one_pod::search(candidates, leaves, &sets));
    Found { plan, cut_short }
}

/// In several pods under one third-level group: full leaves and one more; leaves with any number of nodes; what is left.
fn several_pods(candidates: &Candidates<'_>, leaves: &[Leaf]) -> Found {
    if !candidates.may_hold(leaves) {
        return Found::NOTHING;
    }
    let pods: Vec<Pod<'_>> = leaves
        .chunk_by(|one, other| one.pod == other.pod)
        .map(|leaves| Pod { pod: leaves[0].pod, leaves, core: candidates.core(leaves[0].pod) })
        .collect();
    // The first two strategies take every uplink slot of a leaf for a plane of its own, and the first counts links otherwise.
    let by_plane = candidates.parallel(leaves[0].leaf) == 1;
    let mut most = (!by_plane).then(|| MostOfPods::new(candidates, &pods));
    let fewest = most.as_ref().map_or(Some(1), MostOfPods::fewest_slots);
    let Some(fewest) = fewest else { return Found::NOTHING };
    let (sets, cut_short) = closed_sets(by_weight(leaves).into_iter(), fewest);
    let mut budget = BOUNDS.pod_choices;
    let planes = if by_plane { &sets[..] } else { &[] };
    let plan = full_leaves::search(candidates, leaves, &pods, planes, &mut budget);
    if plan.is_some() {
        return Found { plan, cut_short };
    }
    let plan = any_leaves::search(candidates, leaves, &pods, planes, &mut budget);
    if plan.is_some() {
        return Found { plan, cut_short: cut_short || budget == 0 };
    }
    if candidates.tidy {
        return Found { plan: None, cut_short: cut_short || budget == 0 };
    }
    let most = most.get_or_insert_with(|| MostOfPods::new(candidates, &pods));
    let (plan, was_cut) = fallback_pods::search(candidates, &pods, most, &sets);
    Found { plan, cut_short: cut_short || was_cut }
}

/// The plan of least cost, the first among equals, and whether any search was cut short. If any will do, the first.
fn cheapest(candidates: &Candidates<'_>, searches: impl Iterator<Item = Found>) -> Found {
    let mut best = Found::NOTHING;
    for Found { plan, cut_short } in searches {
        best.cut_short |= cut_short;
        if let Some(plan) = plan {
            best.plan = Some(Plan::cheaper(best.plan, plan));
            if candidates.any {
                break;
            }
        }
    }
    best
}
