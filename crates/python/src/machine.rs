//! `Machine`: a fabric for Python, and what is known of where it comes from.

use std::sync::Arc;

use pyo3::prelude::*;
use topolane_fabric::{Fabric, read};

use crate::other_network::OtherNetwork;

/// A machine: sites of fat trees and the inside of their nodes. Immutable.
#[pyclass(frozen, module = "topolane._engine")]
#[derive(Clone)]
pub struct Machine {
    pub fabric: Arc<Fabric>,
    /// The whole machine, if this is a part of it.
    pub whole: Option<Arc<Fabric>>,
    /// What was assumed, chosen or skipped when it was read.
    pub notes: Vec<String>,
    /// Whether the format that it was read from records cables.
    pub knows_cables: bool,
    /// The other networks that its file names.
    pub entries: Vec<read::NetworkEntry>,
    /// Those that were read.
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
    /// A machine made of this one: other nodes or cables, the same networks, no notes.
    pub fn over(&self, fabric: Fabric) -> Machine {
        Machine { fabric: Arc::new(fabric), notes: Vec::new(), ..self.clone() }
    }
}
