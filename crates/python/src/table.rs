//! `Table`: output tables of a run for Python, as Arrow and as CSV.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};
use topolane_simulator::Table as Columns;

use crate::arrow::Stream;
use crate::error::bad_input;

/// An output table of a run. Anything that reads Arrow by `__arrow_c_stream__` can read it: `polars.DataFrame(table)`.
/// Immutable.
#[pyclass(frozen, module = "topolane._engine")]
pub struct Table {
    columns: Arc<Columns>,
}

impl From<Columns> for Table {
    fn from(columns: Columns) -> Self {
        Table { columns: Arc::new(columns) }
    }
}

#[pymethods]
impl Table {
    /// Returns the table as CSV.
    fn csv<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut text = Vec::new();
        py.detach(|| self.columns.write_csv(&mut text))?;
        Ok(PyBytes::new(py, &text))
    }

    /// Returns the table as a stream of Arrow's C interface. A requested schema is ignored, as the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        PyCapsule::new_with_value(py, Stream::of(Arc::clone(&self.columns)), c"arrow_array_stream")
    }

    fn __len__(&self) -> usize {
        self.columns.rows()
    }

    /// Serialises the table for `pickle`, because a run may come from another process.
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let bytes = postcard::to_allocvec(&*slf.get().columns)
            .map_err(|error| bad_input(format!("a table that cannot be sent: {error}")))?;
        let read = slf.get_type().getattr("_read")?;
        Ok((read, (PyBytes::new(slf.py(), &bytes),)))
    }

    /// Reads a table that another process has sent.
    #[staticmethod]
    fn _read(bytes: &[u8]) -> PyResult<Self> {
        let columns: Columns = postcard::from_bytes(bytes)
            .map_err(|error| bad_input(format!("not a table that was sent: {error}")))?;
        Ok(columns.into())
    }
}
