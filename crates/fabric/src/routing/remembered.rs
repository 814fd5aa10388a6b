//! Caches the routes of forwarding tables: each is looked up once for all nodes of a leaf.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{DedicatedRouting, RouteStep, Routing, SwitchPlace, Unreachable};
use crate::fabric::Fabric;
use crate::ids::NodeIndex;
use crate::link::{Channel, channel_of};

/// A cache over [`DedicatedRouting`], for callers that ask for many routes. After the first link, packets from all nodes of
/// a leaf take the same route to a destination, so one entry serves the whole leaf.
#[derive(Debug)]
pub struct RememberedRoutes {
    tables: DedicatedRouting,
    routes: Mutex<HashMap<(SwitchPlace, NodeIndex, Rail), RememberedPath>>,
}

/// The rail of the adapter at the end; `None` for any.
type Rail = Option<u32>;

/// The channels from a leaf to a node; `None` if there is no complete route.
type RememberedPath = Option<Vec<Channel>>;

impl RememberedRoutes {
    /// Returns a cache for these tables.
    pub fn new(tables: DedicatedRouting) -> Self {
        RememberedRoutes { tables, routes: Mutex::default() }
    }

    fn path_on(
        &self,
        from: NodeIndex,
        to: NodeIndex,
        rail: Rail,
        path: &mut Vec<Channel>,
    ) -> Result<(), Unreachable> {
        let place = SwitchPlace::node(from);
        let step = self.tables.step_on(place, SwitchPlace::node(to), rail);
        let Some(RouteStep { link, to: leaf }) = step else {
            return Err(Unreachable { from, to });
        };
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        let route = routes.entry((leaf, to, rail));
        let route = route.or_insert_with(|| self.tables.route(leaf, to, rail));
        let Some(route) = route else { return Err(Unreachable { from, to }) };
        path.extend(link.map(channel_of));
        path.extend_from_slice(route);
        Ok(())
    }
}

impl Routing for RememberedRoutes {
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
        self.path_on(from, to, None, path)
    }

    fn distinguishes_rails(&self) -> bool {
        true
    }

    fn rail_path(
        &self,
        (from, to): (NodeIndex, NodeIndex),
        rails: (u32, u32),
        path: &mut Vec<Channel>,
    ) -> Result<(), Unreachable> {
        let fabric = self.fabric();
        if from == to || fabric.common_level(from, to).is_none() || fabric.share_domain(from, to) {
            return self.tables.rail_path((from, to), rails, path);
        }
        self.path_on(from, to, Some(rails.1), path)
    }
}
