//! Which links a job has to itself on a wiring that is not a tree.

use topolane_fabric::{Fabric, LinkSet, NodeIndex};

use crate::detours::{DetourLoad, Spread};
use crate::link_load::LinkLoad;
use crate::occupancy::Occupancy;

/// Which links no other job may use. Whatever is promised to a job, it keeps off the links that others have to themselves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Promise {
    /// The links between groups of a dragonfly; elsewhere all links.
    BetweenGroups,
    /// All links.
    AllLinks,
    /// All links, of which the job has only some cables between each two groups of a dragonfly.
    OwnCables {
        /// The share that it wants of the bandwidth that its nodes have there.
        share: f64,
    },
}

/// The links that a job must not use. A wiring without groups has them all between groups.
#[derive(Clone, Copy)]
pub(crate) struct LinksToAvoid<'a> {
    /// Between groups.
    pub between: &'a LinkLoad,
    /// Inside groups.
    pub inside: &'a LinkLoad,
    /// What other jobs leave of the cables between groups, if messages may take detours.
    pub detours: Option<&'a DetourLoad>,
    /// Whether the job has a promise itself.
    pub has_promise: bool,
}

impl<'a> LinksToAvoid<'a> {
    /// The links that a job with this promise must not use; `None` on a tree.
    pub fn of(promise: Promise, occupancy: &'a Occupancy) -> Option<Self> {
        let between = occupancy.used_links()?;
        let inside = match promise {
            Promise::AllLinks | Promise::OwnCables { .. } => between,
            Promise::BetweenGroups => occupancy.owned_links()?,
        };
        Some(LinksToAvoid { between, inside, detours: occupancy.detours(), has_promise: true })
    }

    /// The links that a job without a promise must not use, since others have them to themselves; `None` on a tree.
    pub fn of_others(occupancy: &'a Occupancy) -> Option<Self> {
        let owned = occupancy.owned_links()?;
        let detours = occupancy.detours();
        Some(LinksToAvoid { between: owned, inside: owned, detours, has_promise: false })
    }

    /// Whether all jobs keep their shares of cables on which detours meet.
    pub fn leave_shares(&self, spread: Option<&Spread>) -> bool {
        match (self.detours, spread) {
            (Some(detours), Some(spread)) => detours.has_room_for(spread, self.has_promise),
            _ => true,
        }
    }

    /// Whether a job on some nodes uses none of them, if it uses these links, and all jobs keep their shares.
    pub fn are_avoided(&self, fabric: &Fabric, nodes: &[NodeIndex], links: &LinkSet) -> bool {
        if self.detours.is_some() && !self.leave_shares(Spread::of(fabric, nodes).as_ref()) {
            return false;
        }
        let words = links.words();
        let dragonfly = fabric.wiring().dragonfly();
        let between = dragonfly.map_or(words, |dragonfly| dragonfly.between_groups(links));
        let (inside, _) = words.split_at(words.len() - between.len());
        !self.between.meets(between) && !self.inside.meets(inside)
    }
}
