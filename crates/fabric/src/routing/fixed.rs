//! Static routing: one route for every pair, by a rule for the port at each level.

use std::sync::Arc;

use super::{Channel, Routing, Unreachable};
use crate::fabric::{CrossRail, Fabric, NodeIndex};
use crate::route::{Direction, Ends, Link};
use crate::scramble::scramble;

/// How the port up is chosen at every level; `w` counts the parallel switches there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// `floor(to / w) mod ports` (Zahavi 2010).
    DestinationModK,
    /// `floor(from / w) mod ports`.
    SourceModK,
    /// Drawn for every pair and level.
    Random {
        /// Seed of the draws.
        seed: u64,
    },
}

impl Rule {
    /// The preferred port of `ports` for a pair of nodes at a level whose groups have `width`
    /// parallel switches.
    pub(crate) fn port(
        self,
        (from, to): (NodeIndex, NodeIndex),
        level: usize,
        width: u32,
        ports: u32,
    ) -> u32 {
        match self {
            Rule::DestinationModK => to / width % ports,
            Rule::SourceModK => from / width % ports,
            Rule::Random { seed } => {
                let pair = u64::from(from) << 32 | u64::from(to);
                (scramble(scramble(seed ^ pair) ^ level as u64) % u64::from(ports)) as u32
            }
        }
    }
}

/// Static routing by a [`Rule`]. A channel is one direction of one link.
#[derive(Debug, Clone)]
pub struct Fixed {
    fabric: Arc<Fabric>,
    rule: Rule,
    /// Of every link, bytes per second in each direction.
    bandwidth: Box<[f64]>,
}

impl Fixed {
    /// The routes by `rule` on a machine.
    pub fn new(fabric: Arc<Fabric>, rule: Rule) -> Self {
        let bandwidth = (0..fabric.links()).map(|link| fabric.bandwidth(link)).collect();
        Fixed { fabric, rule, bandwidth }
    }
}

/// The channel of one direction of a link.
pub(crate) fn channel_of(link: Link) -> Channel {
    2 * link.cable + Channel::from(link.direction == Direction::Down)
}

/// The link of a channel that [`channel_of`] made.
pub(crate) fn link_of(channel: Channel) -> Link {
    let direction = if channel % 2 == 0 { Direction::Up } else { Direction::Down };
    Link { cable: channel / 2, direction }
}

impl Routing for Fixed {
    fn name(&self) -> &str {
        match self.rule {
            Rule::DestinationModK => "d-mod-k",
            Rule::SourceModK => "s-mod-k",
            Rule::Random { .. } => "random",
        }
    }

    fn fabric(&self) -> &Arc<Fabric> {
        &self.fabric
    }

    fn capacity(&self, channel: Channel) -> f64 {
        self.bandwidth[channel as usize / 2]
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
        if let Some(top) = self.fabric.common_level(from, to)
            && self.fabric.missing_cables().is_empty()
        {
            self.fabric.whole_path(self.rule, (from, to), Ends::Same, top, path);
            return Ok(());
        }
        let route = self.fabric.route_by(self.rule, from, to).ok_or(Unreachable { from, to })?;
        path.extend(route.into_iter().map(channel_of));
        Ok(())
    }

    fn by_leaf(&self) -> bool {
        let fabric = &self.fabric;
        let has_one_link = |site| {
            let cabling = fabric.cabling(site, 0);
            cabling.parents * cabling.cables == 1
        };
        self.rule == Rule::DestinationModK
            && fabric.missing_cables().is_empty()
            && fabric.domains() == 0
            && (0..fabric.sites()).all(has_one_link)
    }

    fn tells_rails(&self) -> bool {
        true
    }

    fn rail_path(
        &self,
        (from, to): (NodeIndex, NodeIndex),
        rails: (u32, u32),
        path: &mut Vec<Channel>,
    ) -> Result<(), Unreachable> {
        let fabric = &self.fabric;
        if from == to || fabric.share_domain(from, to) {
            return Ok(());
        }
        if fabric.common_level(from, to).is_none() {
            return self.path(from, to, path);
        }
        let route = fabric.rail_route(self.rule, (from, to), rails, CrossRail::NvLink);
        let route = route.ok_or(Unreachable { from, to })?;
        path.extend(route.links.into_iter().map(channel_of));
        Ok(())
    }
}
