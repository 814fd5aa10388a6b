//! Routings of a dragonfly.

mod channels;
mod hashed;
mod table;

use std::sync::Arc;

use super::node_channels::ends;
use super::{Routing, Splits, Unreachable};
use crate::error::InputError;
use crate::fabric::Fabric;
use crate::ids::{CableId, NodeIndex};
use crate::link::{Channel, Link};
use crate::wiring::Dragonfly;
use channels::DragonflyChannels;
use table::DragonflySplits;

pub use hashed::HashedRouting;

/// Minimal routing over all routes, Valiant's, or a mix of both (Kim et al. 2008).
///
/// Minimal routing spreads a message over all cables that join the two groups, in proportion to their bandwidth, and
/// over all shortest ways inside both groups. Valiant's draws a group from all for each packet, and goes minimally there
/// and on to its destination; inside a group it draws a switch of the group.
#[derive(Debug)]
pub struct SpreadRouting {
    name: String,
    table: Arc<DragonflySplits>,
}

impl SpreadRouting {
    /// Returns the routing of a dragonfly with this name. `fraction` of the bytes between groups take Valiant's routes,
    /// from 0 to 1.
    ///
    /// # Errors
    /// The machine is no dragonfly, or has too many switches.
    pub fn new(fabric: Arc<Fabric>, name: String, fraction: f64) -> Result<Self, InputError> {
        let channels =
            DragonflyChannels::new(Arc::clone(&fabric), dragonfly_of(&fabric, &name)?, &[])?;
        Ok(SpreadRouting { name, table: Arc::new(DragonflySplits::new(channels, fraction)) })
    }

    /// Returns minimal routing for a job that keeps to the lanes with these cables between groups.
    ///
    /// # Errors
    /// As [`SpreadRouting::new`].
    pub fn over(fabric: Arc<Fabric>, cables: &[CableId]) -> Result<Self, InputError> {
        let name = "minimal".to_owned();
        let dragonfly = dragonfly_of(&fabric, &name)?;
        let channels = DragonflyChannels::new(Arc::clone(&fabric), dragonfly, cables)?;
        Ok(SpreadRouting { name, table: Arc::new(DragonflySplits::new(channels, 0.0)) })
    }
}

/// The dragonfly of a machine.
fn dragonfly_of<'a>(fabric: &'a Fabric, name: &str) -> Result<&'a Dragonfly, InputError> {
    fabric.wiring().dragonfly().ok_or_else(|| {
        InputError::whole(format!(
            "routing {name} needs a dragonfly, not a {}",
            fabric.wiring().name()
        ))
    })
}

impl Routing for SpreadRouting {
    fn name(&self) -> &str {
        &self.name
    }

    fn fabric(&self) -> &Arc<Fabric> {
        &self.table.channels().fabric
    }

    fn channels(&self) -> u32 {
        self.table.channels().capacity.len() as u32
    }

    fn capacity(&self, channel: Channel) -> f64 {
        self.table.channels().capacity[channel as usize]
    }

    fn links(&self, channel: Channel) -> Vec<Link> {
        self.table.channels().links(channel)
    }

    fn splits(&self) -> Splits {
        Splits::new(self.channels(), Arc::clone(&self.table) as _)
    }

    fn by_leaf(&self) -> bool {
        self.fabric().domains() == 0
    }

    fn path(
        &self,
        from: NodeIndex,
        to: NodeIndex,
        path: &mut Vec<Channel>,
    ) -> Result<(), Unreachable> {
        if from == to || self.fabric().share_domain(from, to) {
            return Ok(());
        }
        let (table, channels) = (&*self.table, self.table.channels());
        let (up, down) = ends(&channels.capacity, from, to).ok_or(Unreachable { from, to })?;
        let split = |number| self.channels() + number;
        let (a, b) = (channels.switch_of(from), channels.switch_of(to));
        let (of_a, of_b) = (channels.group(a), channels.group(b));
        path.push(up);
        if of_a != of_b {
            path.push(split(table.departure(a, of_b)));
            if table.fraction() > 0.0 {
                path.push(split(table.outward(a)));
                path.push(split(table.transit(of_a, of_b)));
                path.push(split(table.homeward(b)));
            } else {
                path.push(channels.between(of_a, of_b));
            }
            path.push(split(table.arrival(of_a, b)));
        } else if a != b {
            let (at, there) = (channels.place(a), channels.place(b));
            if table.fraction() > 0.0 {
                path.push(split(table.inside(a, b)));
                path.push(split(table.aside(a)));
                path.push(split(table.back(b)));
            } else if channels.shapes[of_a as usize].distance(at, there) == 1 {
                path.push(channels.inside(of_a, at, there));
            } else {
                path.push(split(table.inside(a, b)));
            }
        }
        path.push(down);
        Ok(())
    }
}
