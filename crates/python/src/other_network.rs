//! Another network over the nodes of a machine, for Python.

use std::sync::Arc;

use pyo3::prelude::*;
use topolane_fabric::{Fabric, NodeIndex};

/// Another network over the nodes of a machine, such as the storage network. Immutable.
#[pyclass(frozen, from_py_object, module = "topolane._engine")]
#[derive(Clone)]
pub struct OtherNetwork {
    /// The name of the network.
    #[pyo3(get)]
    pub name: String,
    /// The file from which it was read.
    #[pyo3(get)]
    pub source: String,
    pub fabric: Arc<Fabric>,
    /// The hosts with which all jobs exchange data, by their number on the network.
    #[pyo3(get)]
    pub servers: Vec<NodeIndex>,
}
