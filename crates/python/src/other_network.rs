//! Another network over the nodes of a machine, for Python.

use std::sync::Arc;

use pyo3::prelude::*;
use topolane_fabric::{Fabric, NodeIndex};

/// Another network over the nodes of a machine, such as the one to its storage. Immutable.
#[pyclass(frozen, from_py_object, module = "topolane._engine")]
#[derive(Clone)]
pub struct OtherNetwork {
    /// Its name.
    #[pyo3(get)]
    pub name: String,
    /// The file that it was read from.
    #[pyo3(get)]
    pub source: String,
    pub fabric: Arc<Fabric>,
    /// The hosts there, by number, that all jobs exchange data with.
    #[pyo3(get)]
    pub servers: Vec<NodeIndex>,
}
