//! A guard for tentative changes of an occupancy.

use std::ops::Deref;
use std::sync::Arc;

use crate::network_load::NetworkLoad;
use crate::occupancy::{Mark, Occupancy, OccupancyError};
use crate::placement::Placement;

/// A guard over an [`Occupancy`]: claims and releases made through it are undone when it drops.
#[derive(Debug)]
pub struct WhatIf<'a> {
    occupancy: &'a mut Occupancy,
    done: Vec<(OccupancyChange, Arc<Placement>)>,
    /// The traffic, set aside until the guard drops.
    network: Option<Box<NetworkLoad>>,
    /// The position in the list of changes to return to.
    mark: Mark,
}

#[derive(Debug, Clone, Copy)]
enum OccupancyChange {
    Claimed,
    Released,
}

impl Occupancy {
    /// Returns a guard through which to try changes; dropping it undoes them.
    pub fn what_if(&mut self) -> WhatIf<'_> {
        WhatIf::new(self, None)
    }

    /// Same as [`Occupancy::what_if`], without tracking traffic. It is cheaper, for questions where traffic does not
    /// matter.
    pub fn what_if_without_network(&mut self) -> WhatIf<'_> {
        let network = self.take_network();
        WhatIf::new(self, network)
    }
}

impl<'a> WhatIf<'a> {
    fn new(occupancy: &'a mut Occupancy, network: Option<Box<NetworkLoad>>) -> Self {
        let mark = occupancy.mark_changes();
        WhatIf { occupancy, done: Vec::new(), network, mark }
    }

    /// As [`Occupancy::claim`].
    ///
    /// # Errors
    /// As [`Occupancy::claim`].
    pub fn claim(&mut self, placement: Arc<Placement>) -> Result<(), OccupancyError> {
        self.occupancy.claim(&placement)?;
        self.done.push((OccupancyChange::Claimed, placement));
        Ok(())
    }

    /// As [`Occupancy::release`].
    pub fn release(&mut self, placement: Arc<Placement>) {
        self.occupancy.release(&placement);
        self.done.push((OccupancyChange::Released, placement));
    }
}

impl Deref for WhatIf<'_> {
    type Target = Occupancy;

    fn deref(&self) -> &Occupancy {
        self.occupancy
    }
}

impl Drop for WhatIf<'_> {
    fn drop(&mut self) {
        while let Some((change, placement)) = self.done.pop() {
            match change {
                OccupancyChange::Claimed => self.occupancy.release(&placement),
                // The nodes may be out of service now, but the placement must be restored all the same.
                OccupancyChange::Released => {
                    let restored = self.occupancy.adopt(&placement);
                    debug_assert!(restored.is_ok(), "undo in reverse order always fits");
                }
            }
        }
        self.occupancy.forget_changes(self.mark);
        if let Some(network) = self.network.take() {
            self.occupancy.restore_network(network);
        }
    }
}
