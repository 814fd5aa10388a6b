//! Traffic patterns for Python.

use std::sync::Arc;

use pyo3::prelude::*;
use topolane_traffic::{PATTERNS, pattern};

use crate::error::input_error;
use crate::traffic::Traffic;

/// A parameter of a pattern: (name, summary, unit, allowed values, default).
type ParameterRow = (&'static str, &'static str, &'static str, String, &'static str);

/// (name, summary, parameters) of every traffic pattern.
#[pyfunction]
pub fn patterns() -> Vec<(&'static str, &'static str, Vec<ParameterRow>)> {
    let listed = PATTERNS.iter().map(|info| {
        let parameters = info.parameters.iter();
        let parameters =
            parameters.map(|p| (p.name, p.summary, p.unit, p.domain.to_string(), p.default));
        (info.name, info.summary, parameters.collect())
    });
    listed.collect()
}

/// (name, "collective" or "point-to-point", traffic) of every phase of a pattern's iteration.
#[pyfunction]
#[pyo3(signature = (text, ranks, seed=0))]
pub fn phases(
    text: &str,
    ranks: u32,
    seed: u64,
) -> PyResult<Vec<(&'static str, &'static str, Traffic)>> {
    let phases = pattern(text).and_then(|pattern| pattern.phases(ranks, seed));
    let named = phases
        .map_err(input_error)?
        .into_iter()
        .map(|phase| (phase.name, phase.kind.name(), Traffic { matrix: Arc::new(phase.traffic) }));
    Ok(named.collect())
}
