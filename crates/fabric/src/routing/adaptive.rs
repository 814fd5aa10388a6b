//! Ideal adaptive routing: every flow is spread over all shortest routes.

use std::sync::Arc;

use super::{Routing, Unreachable};
use crate::fabric::Fabric;
use crate::ids::NodeIndex;
use crate::link::{Channel, Direction, Link, link_of};

/// Ideal adaptive routing. A channel is one direction of all uplinks of a group together, with the sum of their
/// bandwidths. On a complete tree, the shortest routes between two groups use their uplinks evenly. If cables are
/// missing, the remaining ones are assumed to be used evenly too, which is the best case. The WAN links are numbered
/// after the groups.
#[derive(Debug, Clone)]
pub struct AdaptiveRouting {
    fabric: Arc<Fabric>,
    /// The first bundle of every level below the top; then the first WAN link.
    first: Vec<u32>,
    /// Bandwidth of every bundle, then of every WAN link, in each direction, in bytes per second.
    bandwidth: Vec<f64>,
}

impl AdaptiveRouting {
    /// Returns the routing of a machine.
    pub fn new(fabric: Arc<Fabric>) -> Self {
        let mut first = vec![0];
        let mut bandwidth = Vec::new();
        for level in 0..fabric.depth() {
            for group in 0..fabric.groups(level) {
                bandwidth.push(fabric.uplinks(level, group).map(|id| fabric.bandwidth(id)).sum());
            }
            first.push(bandwidth.len() as u32);
        }
        bandwidth.extend(fabric.wans().map(|(_, _, _, bandwidth)| bandwidth));
        AdaptiveRouting { fabric, first, bandwidth }
    }

    /// The channels from a node up to its group at level `top`, in this order.
    fn climb(&self, node: NodeIndex, top: usize) -> impl DoubleEndedIterator<Item = Channel> + '_ {
        (0..top).map(move |level| (level, self.fabric.group(level, node))).filter_map(
            |(level, group)| {
                // A padded level has no uplinks.
                let there = !self.fabric.uplinks(level, group).is_empty();
                there.then(|| 2 * (self.first[level] + group))
            },
        )
    }

    /// Whether a complete route exists. If cables are missing, two groups that both have uplinks left may have none to
    /// the same switch.
    fn joins(&self, from: NodeIndex, to: NodeIndex) -> bool {
        let is_whole = self.fabric.missing_cables().is_empty() && self.fabric.wiring().is_tree();
        is_whole || self.fabric.route(from, to).is_some()
    }
}

impl Routing for AdaptiveRouting {
    fn name(&self) -> &'static str {
        "adaptive"
    }

    fn fabric(&self) -> &Arc<Fabric> {
        &self.fabric
    }

    fn channels(&self) -> u32 {
        2 * self.bandwidth.len() as u32
    }

    fn capacity(&self, channel: Channel) -> f64 {
        self.bandwidth[channel as usize / 2]
    }

    fn links(&self, channel: Channel) -> Vec<Link> {
        let bundle = channel / 2;
        let direction = link_of(channel).direction;
        let Some(level) = (0..self.fabric.depth()).find(|&level| bundle < self.first[level + 1])
        else {
            let wan = bundle - self.first[self.fabric.depth()];
            let cable = self.fabric.links() - self.fabric.wans().count() as u32 + wan;
            return vec![Link { cable, direction }];
        };
        self.fabric
            .uplinks(level, bundle - self.first[level])
            .filter(|&cable| self.fabric.has_cable(cable))
            .map(|cable| Link { cable, direction })
            .collect()
    }

    fn by_leaf(&self) -> bool {
        self.fabric.missing_cables().is_empty() && self.fabric.domains() == 0
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
        if !self.joins(from, to) {
            return Err(Unreachable { from, to });
        }
        let depth = self.fabric.depth();
        let (climbed, wan) = if let Some(level) = self.fabric.common_level(from, to) {
            (level, Vec::new())
        } else {
            let site = |node| self.fabric.group(depth, node);
            let wan = self.fabric.wan_route(site(from), site(to));
            (depth, wan.ok_or(Unreachable { from, to })?)
        };
        path.extend(self.climb(from, climbed));
        let first_wan = self.fabric.links() - self.fabric.wans().count() as u32;
        let over_wan = |link: &Link| {
            let bundle = self.first[self.fabric.depth()] + link.cable - first_wan;
            2 * bundle + Channel::from(link.direction == Direction::Down)
        };
        path.extend(wan.iter().map(over_wan));
        path.extend(self.climb(to, climbed).rev().map(|channel| channel + 1));
        Ok(())
    }
}
