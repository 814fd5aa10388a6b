//! Room for a request by moving a few that run.

use std::collections::BTreeSet;
use std::sync::Arc;

use pyo3::prelude::*;
use topolane_placement::{Movable, Occupancy, Placement, Policy, Request, Share, repair as search};

use crate::decision::{Decision, Refusal};
use crate::error::bad_input;
use crate::policy::policy_from;
use crate::state::State;

/// Where a request goes once some that run have been moved.
#[pyclass(frozen, get_all, module = "topolane._engine")]
pub struct Repair {
    /// Where the moved go; none if there was room.
    moved: Vec<Py<Decision>>,
    /// Where the request goes.
    decision: Py<Decision>,
}

/// The repair, or the refusal as things are.
#[derive(IntoPyObject)]
pub enum Found {
    Repair(Repair),
    Refusal(Refusal),
}

/// Room for `nodes` whole nodes by moving up to `most` of those that run, each (identity, nodes,
/// cables); the state has all others and stays as it is.
#[pyfunction]
#[pyo3(signature = (state, policy, nodes, running, *, most=3, id=0, seed=0))]
#[allow(clippy::too_many_arguments)]
pub fn repair(
    py: Python<'_>,
    state: &State,
    policy: &Bound<'_, PyAny>,
    nodes: u32,
    running: Vec<(u64, Vec<u32>, Vec<u32>)>,
    most: usize,
    id: u64,
    seed: u64,
) -> PyResult<Found> {
    if nodes == 0 {
        return Err(bad_input("a request asks for at least 1 node, not 0"));
    }
    let (policy, raised) = policy_from(policy, seed)?;
    let mut occupancy = state.occupancy.clone();
    let jobs = laid(state, &*policy, &mut occupancy, running, &Share::Whole)?;
    let request = Request::whole_nodes(id, nodes, f64::INFINITY);
    let found = match policy.place(&request, &occupancy) {
        Ok(placement) => Ok((vec![], Arc::new(placement))),
        Err(refusal) => {
            let movable: Vec<Movable<'_>> =
                jobs.iter().map(|(request, placement)| Movable { request, placement }).collect();
            let found = search(&*policy, &request, &mut occupancy, &movable, most);
            found.map(|found| (found.moved, found.placement)).ok_or(refusal)
        }
    };
    if let Some(error) = raised.lock().ok().and_then(|mut first| first.take()) {
        return Err(error);
    }
    let fabric = occupancy.fabric();
    let decision = |(id, placement)| Py::new(py, Decision::placed(fabric, id, placement));
    Ok(match found {
        Ok((moved, placement)) => Found::Repair(Repair {
            moved: moved.into_iter().map(decision).collect::<PyResult<_>>()?,
            decision: decision((id, placement))?,
        }),
        Err(refusal) => Found::Refusal(refusal.into()),
    })
}

/// Lets those that run hold a share of their nodes, and their cables.
pub fn laid(
    state: &State,
    policy: &dyn Policy,
    occupancy: &mut Occupancy,
    running: impl IntoIterator<Item = (u64, Vec<u32>, Vec<u32>)>,
    share: &Share,
) -> PyResult<Vec<(Request, Arc<Placement>)>> {
    let fabric = Arc::clone(occupancy.fabric());
    let mut identities = BTreeSet::new();
    let mut jobs = Vec::new();
    for (id, nodes, links) in running {
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
        let placement =
            Placement::new(&fabric, nodes, share.clone()).isolated(policy.traits().isolates);
        let placement = Arc::new(placement.with_links(links, 1.0));
        occupancy.adopt(&placement).map_err(|error| {
            let name = fabric.node_name(error.node);
            bad_input(format!("job {id}: node {name}, or a link above it, is held already"))
        })?;
        jobs.push((request, placement));
    }
    Ok(jobs)
}
