//! `Machine`: a fabric for Python, with information about its source.

use std::sync::Arc;

use pyo3::prelude::*;
use topolane_fabric::{Fabric, read};

use crate::other_network::OtherNetwork;

/// A machine: one or more sites, each a fat tree, with the kinds of their nodes. Immutable.
#[pyclass(frozen, module = "topolane._engine")]
#[derive(Clone)]
pub struct Machine {
    pub fabric: Arc<Fabric>,
    /// The whole machine, if this is only a part of it.
    pub whole: Option<Arc<Fabric>>,
    /// What was assumed, chosen or skipped when it was read.
    pub notes: Vec<String>,
    /// Whether the format that it was read from records cables.
    pub knows_cables: bool,
    /// The other networks that its file names.
    pub entries: Vec<read::NetworkEntry>,
    /// The other networks that were read.
    pub networks: Vec<OtherNetwork>,
}

impl From<Fabric> for Machine {
    fn from(fabric: Fabric) -> Machine {
        Machine::from(Arc::new(fabric))
    }
}

impl From<Arc<Fabric>> for Machine {
    fn from(fabric: Arc<Fabric>) -> Machine {
        let (notes, entries, networks) = Default::default();
        Machine { fabric, whole: None, notes, knows_cables: true, entries, networks }
    }
}

impl Machine {
    /// Returns a machine derived from this one, with other nodes or cables, the same networks and no notes.
    pub fn over(&self, fabric: Fabric) -> Machine {
        Machine { fabric: Arc::new(fabric), notes: Vec::new(), ..self.clone() }
    }
}
