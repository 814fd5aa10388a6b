//! Static routing: one way for every pair, by a rule for the port at each level.

use std::sync::Arc;

use super::{Channel, Routing, Unreachable};
use crate::fabric::{Fabric, NodeIndex};
use crate::route::{Direction, Link};

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
                (mix(mix(seed ^ pair) ^ level as u64) % u64::from(ports)) as u32
            }
        }
    }
}

/// The finaliser of `SplitMix64` (Steele, Lea & Flood 2014): every bit of the key moves every bit.
fn mix(key: u64) -> u64 {
    let mut z = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
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
    /// The ways by `rule` on a machine.
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

    fn channels(&self) -> u32 {
        2 * self.fabric.links()
    }

    fn capacity(&self, channel: Channel) -> f64 {
        self.bandwidth[channel as usize / 2]
    }

    fn links(&self, channel: Channel) -> Vec<Link> {
        vec![link_of(channel)]
    }

    fn path(
        &self,
        from: NodeIndex,
        to: NodeIndex,
        path: &mut Vec<Channel>,
    ) -> Result<(), Unreachable> {
        let way = self.fabric.route_by(self.rule, from, to).ok_or(Unreachable { from, to })?;
        path.extend(way.into_iter().map(channel_of));
        Ok(())
    }
}
