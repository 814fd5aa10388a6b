//! Traffic matrices for Python.

use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use topolane_traffic::{TrafficEntry, pattern, read, traffic_csv};

use crate::answering::answering;
use crate::error::{bad_input, input_error};

/// Bytes and messages between ranks in one iteration. Immutable.
#[pyclass(frozen, module = "topolane._engine")]
pub struct Traffic {
    pub matrix: Arc<topolane_traffic::Traffic>,
}

type Arrays<'py> = (
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
);

#[pymethods]
impl Traffic {
    /// Returns the traffic of `ranks` ranks by a pattern: `name` or `name(parameter=value, ...)`.
    #[staticmethod]
    #[pyo3(signature = (text, ranks, seed=0))]
    fn pattern(py: Python<'_>, text: String, ranks: u32, seed: u64) -> PyResult<Traffic> {
        let matrix = answering(py, move || pattern(&text).and_then(|it| it.traffic(ranks, seed)))?;
        Ok(Traffic { matrix: Arc::new(matrix.map_err(input_error)?) })
    }

    /// Reads the traffic that a file's text describes.
    #[staticmethod]
    fn parse(py: Python<'_>, text: String, source: &str) -> PyResult<Traffic> {
        let matrix = answering(py, move || read::traffic(&text))?;
        let matrix = matrix.map_err(|error| input_error(error.in_file(source)))?;
        Ok(Traffic { matrix: Arc::new(matrix) })
    }

    /// Returns the traffic with these entries; by default, each is one message.
    #[staticmethod]
    #[pyo3(signature = (ranks, from_, to, bytes, messages=None))]
    fn of(
        ranks: u32,
        from_: Vec<u32>,
        to: Vec<u32>,
        bytes: Vec<f64>,
        messages: Option<Vec<f64>>,
    ) -> PyResult<Traffic> {
        let messages = messages.unwrap_or_else(|| vec![1.0; from_.len()]);
        let count = from_.len();
        if [to.len(), bytes.len(), messages.len()].into_iter().any(|other| other != count) {
            return Err(bad_input("a traffic's arrays must be of one length"));
        }
        let entries = (0..count).map(|index| TrafficEntry {
            from: from_[index],
            to: to[index],
            bytes: bytes[index],
            messages: messages[index],
        });
        let matrix = topolane_traffic::Traffic::new(ranks, entries).map_err(input_error)?;
        Ok(Traffic { matrix: Arc::new(matrix) })
    }

    /// The number of ranks.
    #[getter]
    fn ranks(&self) -> u32 {
        self.matrix.ranks()
    }

    /// The total bytes of one iteration.
    #[getter]
    fn bytes(&self) -> f64 {
        self.matrix.bytes()
    }

    /// The total messages of one iteration.
    #[getter]
    fn messages(&self) -> f64 {
        self.matrix.messages()
    }

    /// The sender, receiver, bytes and messages of every entry: uint32, uint32, float64, float64.
    fn arrays<'py>(&self, py: Python<'py>) -> Arrays<'py> {
        let entries = self.matrix.entries();
        let column = |value: fn(&TrafficEntry) -> f64| {
            entries.iter().map(value).collect::<Vec<f64>>().into_pyarray(py)
        };
        let ranks = |value: fn(&TrafficEntry) -> u32| {
            entries.iter().map(value).collect::<Vec<u32>>().into_pyarray(py)
        };
        (
            ranks(|entry| entry.from),
            ranks(|entry| entry.to),
            column(|entry| entry.bytes),
            column(|entry| entry.messages),
        )
    }

    /// Returns the matrix as CSV.
    fn csv(&self, py: Python<'_>) -> PyResult<String> {
        let matrix = Arc::clone(&self.matrix);
        answering(py, move || traffic_csv(&matrix))
    }
}
