//! Room for a request by requeueing and moving jobs that run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pyo3::prelude::*;
use topolane_fabric::NodeSet;
use topolane_placement::{
    CountedAmounts, Disruption, FreedAmounts, NoRoom as Nothing, Occupancy, Placement, PresentJob,
    Request, RoomEffort, Share, make_counted_room, make_room as search,
};

use crate::decision::Decision;
use crate::error::bad_input;
use crate::policy::policy_on;
use crate::state::{State, min_bandwidth_from, within_from};

/// Jobs to be requeued or moved, and where the request goes then.
#[pyclass(frozen, get_all, module = "topolane._engine")]
pub struct RoomPlan {
    /// The jobs, ascending.
    requeued: Vec<u64>,
    /// Where jobs move, by ascending identity.
    moved: Vec<Py<Decision>>,
    /// What that costs, node-seconds.
    cost: f64,
    /// No plan costs less.
    least: f64,
    /// Where the request goes.
    decision: Py<Decision>,
    /// How often the policy was asked.
    questions: u32,
}

/// There is no plan, or none was found.
#[pyclass(frozen, get_all, module = "topolane._engine")]
pub struct NoRoom {
    /// Whether there is none.
    impossible: bool,
    /// The reason in a sentence.
    reason: String,
}

/// The plan, or why there is none.
#[derive(IntoPyObject)]
pub enum RoomAnswer {
    Plan(RoomPlan),
    Nothing(NoRoom),
}

/// Identity, nodes, cables, cost in node-seconds (`None`: it may not be disturbed) and group of a job.
type PresentRow = (u64, Vec<u32>, Vec<u32>, Option<f64>, Option<usize>);

/// What another system counts: what a slot takes of each kind of amount, what is free of each kind by node, the most slots of each
/// node, and by job the nodes where it leaves amounts of each kind.
type Counted = (Vec<i64>, Vec<i64>, Vec<u32>, BTreeMap<u64, (Vec<u32>, Vec<i64>)>);

/// Makes room for `nodes` whole nodes at the least cost, by requeueing running jobs or moving those that are `movable`. The state
/// has all other jobs and does not change.
///
/// Each job of a group uses up one of `budgets[group]`, or the number in `uses`. Jobs of a higher rank (`ranks`, else 0) are
/// disturbed only if jobs of lower ranks make no room. If jobs are `stacked`, they may share nodes, and a node is free when the
/// last has left. With `counted`, the caller counts the slots of nodes, and the jobs in `isolated` are isolated.
#[pyfunction]
#[pyo3(signature = (state, policy, nodes, running, *, movable=vec![], stacked=false, budgets=vec![], questions=None, segment=None, within=None, eligible=None, min_bandwidth=None, ranks=BTreeMap::new(), uses=BTreeMap::new(), counted=None, isolated=None, id=0, seed=0))]
#[allow(clippy::too_many_arguments)]
pub fn make_room(
    py: Python<'_>,
    state: &State,
    policy: &Bound<'_, PyAny>,
    nodes: u32,
    running: Vec<PresentRow>,
    movable: Vec<u64>,
    stacked: bool,
    budgets: Vec<u32>,
    questions: Option<u32>,
    segment: Option<u32>,
    within: Option<&str>,
    eligible: Option<Vec<u32>>,
    min_bandwidth: Option<f64>,
    ranks: BTreeMap<u64, u32>,
    uses: BTreeMap<u64, u32>,
    counted: Option<Counted>,
    isolated: Option<BTreeSet<u64>>,
    id: u64,
    seed: u64,
) -> PyResult<RoomAnswer> {
    if nodes == 0 {
        return Err(bad_input("a request asks for at least 1 node, not 0"));
    }
    if segment == Some(0) {
        return Err(bad_input("a segment has at least 1 node, not 0"));
    }
    if let Some(eligible) = &eligible {
        state.check(eligible, "eligible node")?;
    }
    let min_bandwidth = min_bandwidth_from(min_bandwidth)?;
    for (id, _, _, cost, group) in &running {
        if let Some(cost) = cost.filter(|cost| !cost.is_finite() || *cost < 0.0) {
            return Err(bad_input(format!("job {id}: a cost is 0 or more, not {cost}")));
        }
        if let Some(group) = group.filter(|&group| group >= budgets.len()) {
            return Err(bad_input(format!("job {id}: there is no budget of group {group}")));
        }
    }
    let (policy, raised) = policy_on(state.occupancy.fabric(), policy, seed)?;
    let mut occupancy = Occupancy::clone(&state.occupancy);
    let kinds: Vec<(Option<f64>, Option<usize>)> =
        running.iter().map(|(.., cost, group)| (*cost, *group)).collect();
    // A share of nothing but the node itself: so any number of jobs may be on one.
    let share = if stacked { Share::part(0, 0) } else { Share::Whole };
    let ids: Vec<u64> = running.iter().map(|(id, ..)| *id).collect();
    let counts = counted.map(|counted| counts_of(state, counted, &ids)).transpose()?;
    let isolates = policy.traits().isolates;
    let placed = running.into_iter().map(|(id, nodes, links, ..)| {
        let is_isolated = isolated.as_ref().map_or(isolates, |ids| ids.contains(&id));
        (id, nodes, links, is_isolated)
    });
    let jobs = laid(state, &mut occupancy, placed, &share)?;
    let within = within_from(within, occupancy.fabric())?;
    let eligible = eligible.map(|set| Arc::new(NodeSet::of(occupancy.fabric().nodes(), set)));
    let min_bandwidth = min_bandwidth.filter(|&given| given < 1.0);
    let whole = Request::whole_nodes(id, nodes, f64::INFINITY);
    let request = Request { segment, within, eligible, min_bandwidth, ..whole };
    let request = match &counts {
        Some(_) => Request { share: Share::part(0, 0), stacked: true, ..request },
        None => request,
    };
    let effort = RoomEffort::on(occupancy.fabric());
    let effort = RoomEffort { budgets, questions: questions.unwrap_or(effort.questions), ..effort };
    let fabric = Arc::clone(occupancy.fabric());
    let found = raised.asking(py, move || {
        let movable: BTreeSet<u64> = movable.into_iter().collect();
        let present: Vec<PresentJob<'_>> = jobs
            .iter()
            .zip(kinds)
            .map(|((request, placement), (cost, group))| {
                let disruption = match cost {
                    None => Disruption::Untouchable,
                    Some(cost) if movable.contains(&request.id) => Disruption::Move(cost),
                    Some(cost) => Disruption::Requeue(cost),
                };
                let of = |of: &BTreeMap<u64, u32>| of.get(&request.id).copied();
                let (rank, uses) = (of(&ranks).unwrap_or(0), of(&uses).unwrap_or(1));
                PresentJob { request, placement, disruption, group, uses, rank }
            })
            .collect();
        let occupancy = &mut occupancy;
        match &counts {
            Some(counts) => {
                make_counted_room(&*policy, &request, occupancy, &present, counts, &effort)
            }
            None => search(&*policy, &request, occupancy, &present, &effort),
        }
    })?;
    Ok(match found {
        Ok(plan) => {
            let decision = |(id, placement)| Py::new(py, Decision::placed(&fabric, id, placement));
            RoomAnswer::Plan(RoomPlan {
                requeued: plan.requeued,
                moved: plan.moved.into_iter().map(decision).collect::<PyResult<_>>()?,
                cost: plan.cost,
                least: plan.least,
                decision: decision((id, plan.placement))?,
                questions: plan.questions,
            })
        }
        Err(reason) => RoomAnswer::Nothing(NoRoom {
            impossible: reason == Nothing::Impossible,
            reason: reason.to_string(),
        }),
    })
}

/// What another system counts, on the nodes of the machine and for these jobs.
fn counts_of(state: &State, counted: Counted, ids: &[u64]) -> PyResult<CountedAmounts> {
    let (takes, free, most, mut left) = counted;
    let nodes = state.occupancy.fabric().nodes() as usize;
    if most.len() != nodes || free.len() != nodes.saturating_mul(takes.len()) {
        return Err(bad_input(format!(
            "counted: {nodes} nodes need {nodes} limits and {} amounts that are free, not {} and {}",
            nodes.saturating_mul(takes.len()),
            most.len(),
            free.len()
        )));
    }
    let mut lefts = Vec::with_capacity(ids.len());
    for id in ids {
        let (nodes, amounts) = left.remove(id).unwrap_or_default();
        state.check(&nodes, &format!("job {id}: node"))?;
        if amounts.len() != nodes.len() * takes.len() || amounts.iter().any(|&left| left < 0) {
            return Err(bad_input(format!("job {id}: counted: not {} amounts", takes.len())));
        }
        lefts.push(FreedAmounts { nodes, amounts });
    }
    Ok(CountedAmounts { takes, free, most, left: lefts })
}

/// Lets those that run hold a share of their nodes, and their cables.
fn laid(
    state: &State,
    occupancy: &mut Occupancy,
    running: impl IntoIterator<Item = (u64, Vec<u32>, Vec<u32>, bool)>,
    share: &Share,
) -> PyResult<Vec<(Request, Arc<Placement>)>> {
    let fabric = Arc::clone(occupancy.fabric());
    let mut identities = BTreeSet::new();
    let mut jobs = Vec::new();
    for (id, nodes, links, is_isolated) in running {
        if !identities.insert(id) {
            return Err(bad_input(format!("two of those that run have the identity {id}")));
        }
        if nodes.is_empty() {
            return Err(bad_input(format!("job {id} runs on no node")));
        }
        state.check(&nodes, &format!("job {id}: node"))?;
        if let Some(link) = links.iter().find(|&&link| link >= fabric.links()) {
            return Err(bad_input(format!("job {id}: there is no cable {link}")));
        }
        let whole = Request::whole_nodes(id, nodes.len() as u32, f64::INFINITY);
        let request = Request { share: share.clone(), ..whole };
        let placement = Placement::new(&fabric, nodes, share.clone()).isolated(is_isolated);
        let placement = Arc::new(placement.with_links(&fabric, links, 1.0));
        occupancy.adopt(&placement).map_err(|error| {
            let name = fabric.node_name(error.node);
            bad_input(format!("job {id}: node {name}, or a link above it, is held already"))
        })?;
        jobs.push((request, placement));
    }
    Ok(jobs)
}
