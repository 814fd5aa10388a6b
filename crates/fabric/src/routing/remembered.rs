//! The routes of forwarding tables, each looked up once for all nodes of a leaf.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::fixed::channel_of;
use super::{Channel, Dedicated, Routing, Step, SwitchPlace, Unreachable};
use crate::fabric::{Fabric, NodeIndex};

/// [`Dedicated`] for callers that ask for many routes: past its own link a packet takes the same route to a destination from every node
/// of a leaf, so that is remembered.
#[derive(Debug)]
pub struct Remembered {
    tables: Dedicated,
    routes: Mutex<HashMap<(SwitchPlace, NodeIndex), Path>>,
}

/// From a leaf to a node; `None` where none is whole.
type Path = Option<Vec<Channel>>;

impl Remembered {
    /// The same routes.
    pub fn new(tables: Dedicated) -> Self {
        Remembered { tables, routes: Mutex::default() }
    }
}

impl Routing for Remembered {
    fn name(&self) -> &str {
        self.tables.name()
    }

    fn fabric(&self) -> &Arc<Fabric> {
        self.tables.fabric()
    }

    fn capacity(&self, channel: Channel) -> f64 {
        self.tables.capacity(channel)
    }

    fn path(
        &self,
        from: NodeIndex,
        to: NodeIndex,
        path: &mut Vec<Channel>,
    ) -> Result<(), Unreachable> {
        if self.fabric().share_domain(from, to) {
            return Ok(());
        }
        let fabric = self.fabric();
        if from == to || fabric.common_level(from, to).is_none() {
            return self.tables.path(from, to, path);
        }
        let place = SwitchPlace::node(from);
        let step = self.tables.step(place, SwitchPlace::node(to));
        let Some(Step { link, to: leaf }) = step else {
            return Err(Unreachable { from, to });
        };
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        let route = routes.entry((leaf, to)).or_insert_with(|| self.tables.route(leaf, to));
        let Some(route) = route else { return Err(Unreachable { from, to }) };
        path.extend(link.map(channel_of));
        path.extend_from_slice(route);
        Ok(())
    }
}
