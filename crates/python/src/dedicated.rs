//! Routes that keep jobs on the links that they own, for Python.

use std::sync::Arc;

use pyo3::prelude::*;
use topolane_fabric::read::{NamedText, ports};
use topolane_fabric::write::LinearTables;
use topolane_fabric::{DedicatedRouting, JobLinks, NodeSet, Service};

use crate::answering::answering;
use crate::error::input_error;
use crate::machine::Machine;
use crate::routing::Routing;

/// Routes on a machine that keep the traffic of jobs on the links that they own. Immutable.
#[pyclass(frozen, module = "topolane._engine")]
pub struct DedicatedRoutes {
    routes: Arc<DedicatedRouting>,
}

/// Entries that differ from an earlier text: by node, and for all other destinations.
type Changed = (Vec<(u32, usize)>, usize);

#[pymethods]
impl DedicatedRoutes {
    /// Returns the routes for jobs, each given as (name, nodes, cables between switches that it owns). The `uplinks`
    /// highest uplink slots of every switch are reserved for traffic of the service nodes.
    #[new]
    #[pyo3(signature = (machine, jobs, service=vec![], uplinks=0))]
    fn new(
        py: Python<'_>,
        machine: &Machine,
        jobs: Vec<(String, Vec<u32>, Vec<u32>)>,
        service: Vec<u32>,
        uplinks: u32,
    ) -> PyResult<DedicatedRoutes> {
        let job = |(name, nodes, links)| JobLinks { name, nodes, links };
        let jobs: Vec<JobLinks> = jobs.into_iter().map(job).collect();
        let service = Service { nodes: service, uplinks };
        let fabric = Arc::clone(&machine.fabric);
        let routes = answering(py, move || DedicatedRouting::new(&fabric, &jobs, &service))?;
        let routes = routes.map_err(input_error)?;
        Ok(DedicatedRoutes { routes: Arc::new(routes) })
    }

    /// The cables in the `uplinks` highest uplink slots of every switch, ascending.
    #[staticmethod]
    fn set_aside(machine: &Machine, uplinks: u32) -> Vec<u32> {
        Service { nodes: Vec::new(), uplinks }.cables(&machine.fabric)
    }

    /// The routes as a routing.
    fn routing(&self) -> Routing {
        Routing { routing: Arc::clone(&self.routes) as _ }
    }

    /// The number of routes between service nodes and nodes of jobs with links, in both directions; of those over a
    /// link that any job owns; and of those over a link of another job than the node's.
    fn service_routes(&self, py: Python<'_>) -> PyResult<[u64; 3]> {
        let routes = Arc::clone(&self.routes);
        answering(py, move || routes.service_routes())
    }

    /// Returns the forwarding tables of the subnet that `net`, a text of `ibnetdiscover`, describes.
    fn tables(&self, py: Python<'_>, net: &str, source: &str) -> PyResult<ForwardingTables> {
        let (routes, net, source) = (Arc::clone(&self.routes), net.to_owned(), source.to_owned());
        let made = answering(py, move || {
            let ports = ports(
                topolane_fabric::Routing::fabric(&*routes),
                NamedText { text: &net, name: &source },
            )?;
            let (switches, outside) = (ports.switches.len(), ports.outside.clone());
            Ok((Arc::new(LinearTables::new(&routes, ports)), switches, outside))
        })?;
        let (tables, switches, outside) = made.map_err(input_error)?;
        Ok(ForwardingTables { tables, switches, outside })
    }
}

/// The forwarding tables of all switches of a subnet.
#[pyclass(frozen, module = "topolane._engine")]
pub struct ForwardingTables {
    tables: Arc<LinearTables>,
    /// The number of switches.
    #[pyo3(get)]
    switches: usize,
    /// LIDs of devices outside the tree, which have no entries.
    #[pyo3(get)]
    outside: Vec<u16>,
}

#[pymethods]
impl ForwardingTables {
    /// Returns the tables after jobs started or ended on these nodes of the same subnet.
    fn after(
        &self,
        py: Python<'_>,
        routes: &DedicatedRoutes,
        nodes: Vec<u32>,
    ) -> PyResult<ForwardingTables> {
        let (tables, routes) = (Arc::clone(&self.tables), Arc::clone(&routes.routes));
        let tables = answering(py, move || {
            let fabric = topolane_fabric::Routing::fabric(&*routes);
            tables.after(&routes, &NodeSet::of(fabric.nodes(), nodes))
        })?;
        let (switches, outside) = (self.switches, self.outside.clone());
        Ok(ForwardingTables { tables: Arc::new(tables), switches, outside })
    }

    /// The number of entries.
    #[getter]
    fn entries(&self) -> usize {
        self.tables.entries()
    }

    /// The text that the file routing engine of `opensm` loads.
    fn text(&self, py: Python<'_>) -> PyResult<String> {
        let tables = Arc::clone(&self.tables);
        answering(py, move || tables.text())
    }

    /// The number of entries that differ from other tables of the same subnet.
    fn differing(&self, other: &ForwardingTables) -> usize {
        self.tables.differing(&other.tables)
    }

    /// Entries that differ from an earlier text: (node, number) for nodes, and the number for other destinations.
    fn changed(&self, py: Python<'_>, text: String, source: String) -> PyResult<Changed> {
        let tables = Arc::clone(&self.tables);
        let changed =
            answering(py, move || tables.changed(NamedText { text: &text, name: &source }))?;
        changed.map_err(input_error)
    }
}
