//! Maps ranks to slots, for Python.

use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use topolane_mapping::{self as mapping, EFFORTS, Links, MappingSettings};

use crate::answering::answering;
use crate::error::{bad_input, input_error};
use crate::machine::Machine;
use crate::traffic::Traffic;

/// A slot for every rank (no slot is used twice), and the cost per iteration.
#[pyclass(frozen, get_all, module = "topolane._engine")]
pub struct Mapping {
    /// The slot of every rank, as uint32.
    slots: Py<PyArray1<u32>>,
    /// Hop-bytes with the mapping.
    hop_bytes: f64,
    /// Hop-bytes if rank i is on slot i.
    rank_order: f64,
    /// (hops, or None inside a node; bytes in rank order; bytes with the mapping).
    crossed: Vec<(Option<u32>, f64, f64)>,
    /// The method that found the mapping.
    by: String,
    /// (name, hop-bytes) of every method of the portfolio.
    members: Vec<(String, f64)>,
}

/// The names of the efforts.
#[pyfunction]
pub fn efforts() -> Vec<&'static str> {
    EFFORTS.iter().map(|&(name, _)| name).collect()
}

fn search(effort: &str, seed: u64, threads: usize, node_links: bool) -> PyResult<MappingSettings> {
    let known = EFFORTS.iter().find(|&&(name, _)| name == effort);
    let &(_, effort) = known.ok_or_else(|| {
        bad_input(format!("unknown effort {effort:?}; there are {}", efforts().join(", ")))
    })?;
    let links = if node_links { Links::All } else { Links::BetweenSwitches };
    Ok(MappingSettings { effort, seed, threads, links })
}

/// Maps ranks to slots for the fewest hop-bytes. Slot i is on node `nodes[i]`.
#[pyfunction]
#[pyo3(signature = (machine, nodes, traffic, *, effort="eco", seed=0, threads=0, node_links=false))]
#[allow(clippy::too_many_arguments)]
pub fn map_ranks(
    py: Python<'_>,
    machine: &Machine,
    nodes: Vec<u32>,
    traffic: &Traffic,
    effort: &str,
    seed: u64,
    threads: usize,
    node_links: bool,
) -> PyResult<Mapping> {
    let search = search(effort, seed, threads, node_links)?;
    let (fabric, matrix) = (Arc::clone(&machine.fabric), Arc::clone(&traffic.matrix));
    let found = answering(py, move || mapping::map(&fabric, &nodes, &matrix, search))?;
    let found = found.map_err(input_error)?;
    let crossed = found.crossed.iter().map(|row| (row.hops, row.rank_order, row.mapped));
    Ok(Mapping {
        hop_bytes: found.hop_bytes,
        rank_order: found.rank_order,
        crossed: crossed.collect(),
        by: found.by,
        members: found.members,
        slots: found.slots.into_pyarray(py).unbind(),
    })
}

/// Solves a quadratic assignment problem of n items and places, with matrices row by row. Returns the place of every
/// item, as uint32, and the sum over ordered pairs of flow times distance.
#[pyfunction]
#[pyo3(signature = (n, flow, distance, *, effort="strong", seed=0, threads=0))]
pub fn assign(
    py: Python<'_>,
    n: usize,
    flow: Vec<f64>,
    distance: Vec<f64>,
    effort: &str,
    seed: u64,
    threads: usize,
) -> PyResult<(Py<PyArray1<u32>>, f64)> {
    let search = search(effort, seed, threads, false)?;
    let found = answering(py, move || mapping::assign(n, &flow, &distance, search))?;
    let found = found.map_err(input_error)?;
    Ok((found.places.into_pyarray(py).unbind(), found.value))
}

/// Divides ranks into parts of exactly `sizes[i]` ranks with few bytes between parts. Returns the part of every rank.
#[pyfunction]
#[pyo3(signature = (traffic, sizes, seed=0))]
pub fn parts<'py>(
    py: Python<'py>,
    traffic: &Traffic,
    sizes: Vec<u32>,
    seed: u64,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let matrix = Arc::clone(&traffic.matrix);
    let found = answering(py, move || mapping::parts(&matrix, &sizes, seed))?;
    let found = found.map_err(input_error)?;
    Ok(found.into_pyarray(py))
}
