//! The ways of forwarding tables, each looked up once for all nodes of a leaf.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::fixed::channel_of;
use super::{Channel, Owned, Routing, Step, SwitchPlace, Unreachable};
use crate::fabric::{Fabric, GroupIndex, NodeIndex};

/// [`Owned`] for who asks for many ways: past its own link a packet goes the same way to a destination from every node
/// of a leaf, so that is remembered.
#[derive(Debug)]
pub struct Remembered {
    tables: Owned,
    ways: Mutex<HashMap<(GroupIndex, NodeIndex), Way>>,
}

/// From a leaf to a node; `None` where none is whole.
type Way = Option<Vec<Channel>>;

impl Remembered {
    /// The same ways.
    pub fn new(tables: Owned) -> Self {
        Remembered { tables, ways: Mutex::default() }
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
        let fabric = self.fabric();
        if from == to || fabric.common_level(from, to).is_none() {
            return self.tables.path(from, to, path);
        }
        let place = SwitchPlace::node(from);
        let step = self.tables.step(place, SwitchPlace::node(to));
        let Some(Step { link, to: leaf }) = step else {
            return Err(Unreachable { from, to });
        };
        let mut ways = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        let way = ways.entry((leaf.group, to)).or_insert_with(|| self.tables.way(leaf, to));
        let Some(way) = way else { return Err(Unreachable { from, to }) };
        path.extend(link.map(channel_of));
        path.extend_from_slice(way);
        Ok(())
    }
}
