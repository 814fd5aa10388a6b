//! Another network over the nodes of a machine, for Python.

use std::sync::Arc;

use pyo3::prelude::*;
use topolane_fabric::{Fabric, NodeIndex, shown};

use crate::error::bad_input;
use crate::machine::Machine;

/// Another network over the nodes of a machine, such as the one to its storage. Immutable.
#[pyclass(frozen, from_py_object, module = "topolane._engine")]
#[derive(Clone)]
pub struct OtherNetwork {
    /// Its name.
    #[pyo3(get)]
    name: String,
    /// The file that it was read from.
    #[pyo3(get)]
    source: String,
    pub fabric: Arc<Fabric>,
    /// The hosts there, by number, that all jobs exchange data with.
    #[pyo3(get)]
    pub servers: Vec<NodeIndex>,
}

#[pymethods]
impl OtherNetwork {
    #[new]
    fn new(
        name: String,
        source: String,
        machine: &Machine,
        servers: Vec<String>,
    ) -> PyResult<Self> {
        let fabric = Arc::clone(&machine.fabric);
        let numbers = servers.iter().map(|server| {
            let missing = || bad_input(format!("server {} is not in {source}", shown(server)));
            fabric.node_named(server).ok_or_else(missing)
        });
        let servers = numbers.collect::<PyResult<Vec<NodeIndex>>>()?;
        Ok(OtherNetwork { name, source, fabric, servers })
    }

    /// The network as a machine of its own; its nodes are all hosts on it.
    #[getter]
    fn machine(&self) -> Machine {
        Machine::from(Arc::clone(&self.fabric))
    }

    /// The number there of every node of a machine, by its name; None for a node that is not on the network.
    pub fn nodes_of(&self, machine: &Machine) -> Vec<Option<NodeIndex>> {
        let fabric = &machine.fabric;
        (0..fabric.nodes()).map(|node| self.fabric.node_named(fabric.node_name(node))).collect()
    }
}
