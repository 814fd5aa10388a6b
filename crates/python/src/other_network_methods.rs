//! The Python methods of `OtherNetwork`.

use std::sync::Arc;

use pyo3::prelude::*;
use topolane_fabric::{NodeIndex, shown};

use crate::error::bad_input;
use crate::machine::Machine;
use crate::other_network::OtherNetwork;

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

    /// Returns the network as a machine whose nodes are all hosts on it.
    #[getter]
    fn machine(&self) -> Machine {
        Machine::from(Arc::clone(&self.fabric))
    }

    /// The number on the network of every node of a machine, matched by name; None for a node that is not on it.
    pub fn nodes_of(&self, machine: &Machine) -> Vec<Option<NodeIndex>> {
        let fabric = &machine.fabric;
        (0..fabric.nodes()).map(|node| self.fabric.node_named(fabric.node_name(node))).collect()
    }
}
