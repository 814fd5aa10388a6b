//! Rails: what joins the adapters of one number of all nodes.

use super::{Fabric, NodeIndex};
use crate::link::Route;
use crate::route::Ends;
use crate::routing::rule::Rule;

/// How traffic goes from a GPU to one of another index on another node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CrossRail {
    /// Over NVLink to the GPU of the other's index in its own node, then on that rail, as NCCL does (PXN).
    #[default]
    NvLink,
    /// Up on the rail of the first GPU and down on that of the other, where the rails meet.
    Spines,
}

impl CrossRail {
    /// The choice of that name.
    pub fn named(name: &str) -> Option<CrossRail> {
        match name {
            "nvlink" => Some(CrossRail::NvLink),
            "spines" => Some(CrossRail::Spines),
            _ => None,
        }
    }
}

/// A route from a GPU of one node to a GPU of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RailRoute {
    /// Whether it changes the GPU over NVLink inside the first node.
    pub nvlink_first: bool,
    /// Whether it changes the GPU over NVLink inside the last node.
    pub nvlink_last: bool,
    /// The links between the nodes; none inside one node.
    pub links: Route,
}

impl Fabric {
    /// Rails of a site: adapter number `r` of every node hangs on rail `r`. 1 where a node has one leaf switch.
    pub fn rails(&self, site: u32) -> u32 {
        self.cabling(site, 0).parents
    }

    /// Whether the rails of a site meet above the leaves, so that a switch leads from one to another. True for one rail.
    pub fn rails_meet(&self, site: u32) -> bool {
        self.rails(site) == 1 || self.meets_from(site, 1)
    }

    /// Parallel switches of a group of `level` that lead to one rail: all of them where rails have met below. Switch number
    /// `n` of a group of several rails is number `n % rail_width` of rail `n / rail_width`.
    pub fn rail_width(&self, site: u32, level: usize) -> u32 {
        let own = &self.sites[site as usize].cabling;
        own[..level]
            .iter()
            .skip(1)
            .fold(1, |width, cabling| cabling.width_above(width).unwrap_or(u32::MAX))
    }

    /// Rails that have switches of their own at `level`: 1 where rails have met below, and at the level of the nodes.
    pub fn rails_at(&self, site: u32, level: usize) -> u32 {
        self.width(site, level) / self.rail_width(site, level)
    }

    /// Whether parallel switches of a site are joined at `level` or above.
    pub(crate) fn meets_from(&self, site: u32, level: usize) -> bool {
        self.sites[site as usize].cabling.iter().skip(level).any(|cabling| cabling.joined)
    }

    /// The route from the GPU on rail `rails.0` of a node to the GPU on rail `rails.1` of another by `rule`.
    ///
    /// Traffic between GPUs of one index takes their rail. Other traffic goes as `cross` says. If the chosen way is not
    /// whole, because a node lacks a rail or the rails do not meet, the others are tried: over NVLink in the first node, over
    /// NVLink in the last, over the spines. `None` if no way is whole, or a rail is not there.
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
        let direct = (Ends::Rails(first, last), false, false);
        if pair.0 == pair.1 || first == last {
            return self.first_whole(rule, pair, &[direct]).map(|route| RailRoute {
                nvlink_first: pair.0 == pair.1 && first != last,
                ..route
            });
        }
        let inside =
            [(Ends::Rails(last, last), true, false), (Ends::Rails(first, first), false, true)];
        match cross {
            CrossRail::NvLink => self.first_whole(rule, pair, &[inside[0], inside[1], direct]),
            CrossRail::Spines => self.first_whole(rule, pair, &[direct, inside[0], inside[1]]),
        }
    }

    fn first_whole(
        &self,
        rule: Rule,
        pair: (NodeIndex, NodeIndex),
        ways: &[(Ends, bool, bool)],
    ) -> Option<RailRoute> {
        ways.iter().find_map(|&(ends, nvlink_first, nvlink_last)| {
            let links = self.route_on(rule, pair, ends)?;
            Some(RailRoute { nvlink_first, nvlink_last, links })
        })
    }
}
