//! Rails: networks that each connect the adapters with the same number on all nodes.

use super::Fabric;
use crate::ids::NodeIndex;
use crate::link::Route;
use crate::route::RailEnds;
use crate::routing::rule::Rule;

/// How traffic goes between GPUs with different indices on different nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CrossRail {
    /// Over NVLink inside the sending node to the GPU with the receiver's index, then on that rail, as NCCL does (PXN).
    #[default]
    NvLink,
    /// Up on the sender's rail and down on the receiver's, through the switches where rails meet.
    Spines,
}

impl CrossRail {
    /// Returns the choice of this name; `None` if there is none.
    pub fn named(name: &str) -> Option<CrossRail> {
        match name {
            "nvlink" => Some(CrossRail::NvLink),
            "spines" => Some(CrossRail::Spines),
            _ => None,
        }
    }
}

/// A route between GPUs of two nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RailRoute {
    /// Whether the route goes over NVLink inside the first node.
    pub nvlink_first: bool,
    /// Whether the route goes over NVLink inside the last node.
    pub nvlink_last: bool,
    /// The links between the nodes; empty inside one node.
    pub links: Route,
}

impl Fabric {
    /// The number of rails of a site: adapter `r` of every node is on rail `r`. 1 if each node has one leaf switch.
    pub fn rails(&self, site: u32) -> u32 {
        self.cabling(site, 0).parents
    }

    /// Whether the rails of a site meet above the leaves, so that a switch connects them. True for a single rail.
    pub fn rails_meet(&self, site: u32) -> bool {
        self.rails(site) == 1 || self.meets_from(site, 1)
    }

    /// The number of parallel switches of a group of `level` on one rail; all of them if rails have met below. In a
    /// group with several rails, switch `n` is number `n % rail_width` of rail `n / rail_width`.
    pub fn rail_width(&self, site: u32, level: usize) -> u32 {
        let own = &self.sites[site as usize].cabling;
        own[..level]
            .iter()
            .skip(1)
            .fold(1, |width, cabling| cabling.width_above(width).unwrap_or(u32::MAX))
    }

    /// The number of rails with switches of their own at `level`: 1 if rails have met below, and at the level of the
    /// nodes.
    pub fn rails_at(&self, site: u32, level: usize) -> u32 {
        self.width(site, level) / self.rail_width(site, level)
    }

    /// Whether parallel switches of a site are joined at `level` or above.
    pub(crate) fn meets_from(&self, site: u32, level: usize) -> bool {
        self.sites[site as usize].cabling.iter().skip(level).any(|cabling| cabling.joined)
    }

    /// The route by `rule` from the GPU on rail `rails.0` of one node to the GPU on rail `rails.1` of another.
    ///
    /// Traffic between GPUs with the same index takes their rail. Other traffic goes as `cross` says. If that route is
    /// interrupted, because a node lacks a rail or the rails do not meet, it tries the others: NVLink in the first
    /// node, NVLink in the last node, then the spines. `None` if no route is complete, or a rail does not exist.
    pub fn rail_route(
        &self,
        rule: Rule,
        pair: (NodeIndex, NodeIndex),
        rails: (u32, u32),
        cross: CrossRail,
    ) -> Option<RailRoute> {
        let site = self.site_of_group(0, pair.0);
        if rails.0.max(rails.1) >= self.rails(site) || self.site_of_group(0, pair.1) != site {
            return None;
        }
        let (first, last) = rails;
        let direct = (RailEnds::Rails(first, last), false, false);
        if pair.0 == pair.1 || first == last {
            return self.first_whole(rule, pair, &[direct]).map(|route| RailRoute {
                nvlink_first: pair.0 == pair.1 && first != last,
                ..route
            });
        }
        let inside = [
            (RailEnds::Rails(last, last), true, false),
            (RailEnds::Rails(first, first), false, true),
        ];
        match cross {
            CrossRail::NvLink => self.first_whole(rule, pair, &[inside[0], inside[1], direct]),
            CrossRail::Spines => self.first_whole(rule, pair, &[direct, inside[0], inside[1]]),
        }
    }

    fn first_whole(
        &self,
        rule: Rule,
        pair: (NodeIndex, NodeIndex),
        ways: &[(RailEnds, bool, bool)],
    ) -> Option<RailRoute> {
        ways.iter().find_map(|&(ends, nvlink_first, nvlink_last)| {
            let links = self.route_on(rule, pair, ends)?;
            Some(RailRoute { nvlink_first, nvlink_last, links })
        })
    }
}
