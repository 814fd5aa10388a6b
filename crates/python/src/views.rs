//! A request and the machine, as a Python policy sees them.

use std::collections::BTreeMap;
use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use topolane_fabric::Fabric;
use topolane_placement::{FreeSlots, Occupancy, Request, Share};

use crate::machine::Machine;

/// A request as a policy sees it.
#[pyclass(frozen, get_all, name = "Request", module = "topolane._engine")]
pub struct RequestView {
    /// The id.
    id: u64,
    /// The number of slots wanted.
    nodes: u32,
    /// What each slot takes: resources and counts; None for whole nodes.
    share: Option<BTreeMap<String, u64>>,
    /// Whether several slots may lie on one node.
    stacked: bool,
    /// The longest time that it will run, in seconds.
    walltime: f64,
    /// Nodes that already run members of its group.
    members: Vec<u32>,
}

impl RequestView {
    pub fn of(request: &Request, fabric: &Fabric) -> Self {
        RequestView {
            id: request.id,
            nodes: request.nodes,
            share: share_view(&request.share, fabric),
            stacked: request.stacked,
            walltime: request.walltime,
            members: request.members.clone(),
        }
    }
}

/// The machine at one moment, as a policy sees it: a copy that is valid during the call.
#[pyclass(frozen, get_all, name = "StateView", module = "topolane._engine")]
pub struct StateView {
    /// The free slots of every node for this request: uint32, one per node.
    free: Py<PyArray1<u32>>,
    /// The number of placements that cross each group, by level from 0 (nodes): uint32, one per group.
    crossing: Vec<Py<PyArray1<u32>>>,
    /// The machine.
    machine: Py<Machine>,
}

impl StateView {
    pub fn of(py: Python<'_>, free: &FreeSlots<'_>, occupancy: &Occupancy) -> PyResult<Self> {
        let fabric = occupancy.fabric();
        let free: Vec<u32> = (0..fabric.nodes()).map(|node| free.count(0, node)).collect();
        let crossing = |level| -> Vec<u32> {
            (0..fabric.groups(level)).map(|group| occupancy.crossing(level, group)).collect()
        };
        Ok(StateView {
            free: free.into_pyarray(py).unbind(),
            crossing: (0..=fabric.depth())
                .map(|level| crossing(level).into_pyarray(py).unbind())
                .collect(),
            machine: Py::new(py, Machine::from(Arc::clone(fabric)))?,
        })
    }
}

/// The names and amounts of a share, always with cores and memory; None for whole nodes.
fn share_view(share: &Share, fabric: &Fabric) -> Option<BTreeMap<String, u64>> {
    let Share::Part(amounts) = share else { return None };
    let always = [("cores", amounts.cores()), ("memory", amounts.memory())];
    let all = amounts.by_name(fabric.resources()).chain(always);
    Some(all.map(|(name, amount)| (name.to_owned(), amount)).collect())
}
