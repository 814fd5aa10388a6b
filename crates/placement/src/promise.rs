//! Which links a job has to itself on a wiring that is not a tree.

use topolane_fabric::{Fabric, LinkSet};

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
}

impl<'a> LinksToAvoid<'a> {
    /// The links that a job with this promise must not use; `None` on a tree.
    pub fn of(promise: Promise, occupancy: &'a Occupancy) -> Option<Self> {
        let between = occupancy.used_links()?;
        let inside = match promise {
            Promise::AllLinks | Promise::OwnCables { .. } => between,
            Promise::BetweenGroups => occupancy.owned_links()?,
        };
        Some(LinksToAvoid { between, inside })
    }

    /// Whether none of them is among these links.
    pub fn are_avoided(&self, fabric: &Fabric, links: &LinkSet) -> bool {
        let words = links.words();
        let dragonfly = fabric.wiring().dragonfly();
        let between = dragonfly.map_or(words, |dragonfly| dragonfly.between_groups(links));
        let (inside, _) = words.split_at(words.len() - between.len());
        !self.between.meets(between) && !self.inside.meets(inside)
    }
}
