//! Static routing: one route per pair of nodes, by a rule for the port at each level.

use std::sync::Arc;

use super::rule::Rule;
use super::{Routing, Unreachable};
use crate::fabric::{CrossRail, Fabric};
use crate::ids::NodeIndex;
use crate::link::{Channel, channel_of};
use crate::route::RailEnds;

/// Static routing by a [`Rule`]. A channel is one direction of one link.
#[derive(Debug, Clone)]
pub struct Fixed {
    fabric: Arc<Fabric>,
    rule: Rule,
    /// Bandwidth of every link in each direction, in bytes per second.
    bandwidth: Box<[f64]>,
}

impl Fixed {
    /// Returns the routing by `rule` on a machine.
    pub fn new(fabric: Arc<Fabric>, rule: Rule) -> Self {
        let bandwidth = (0..fabric.links()).map(|link| fabric.bandwidth(link)).collect();
        Fixed { fabric, rule, bandwidth }
    }
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
            && self.fabric.wiring().is_tree()
        {
            self.fabric.whole_path(self.rule, (from, to), RailEnds::Same, top, path);
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

    fn distinguishes_rails(&self) -> bool {
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
