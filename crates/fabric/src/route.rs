//! The links of a route between two nodes: climb to the common level, then descend.

use crate::fabric::{CableId, Fabric, NodeIndex};

/// Which way a link is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From the node towards the core (for a WAN link: from its first site to its second).
    Up,
    /// From the core towards the node.
    Down,
}

/// One directed link of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Link {
    /// The cable.
    pub cable: CableId,
    /// Which way.
    pub direction: Direction,
}

/// Links from one node to another, in order; empty from a node to itself.
pub type Route = Vec<Link>;

impl Fabric {
    /// The d-mod-k route from `from` to `to` (Zahavi 2010): at level l the up port is
    /// `floor(to / (w_1 ... w_l)) mod (w_{l+1} p_{l+1})`, missing cables skipped in port order.
    /// Includes the node-to-leaf links. `None` where the two are not joined. O(depth) on a
    /// whole tree.
    pub fn route(&self, from: NodeIndex, to: NodeIndex) -> Option<Route> {
        match self.common_level(from, to) {
            Some(0) => Some(Route::new()),
            Some(top) => {
                let mut route = vec![Link { cable: 0, direction: Direction::Up }; 2 * top];
                let found = self.climb_to(from, to, top, 0, 0, &mut route);
                // A padded level has no cable of its own.
                route.retain(|link| link.cable != CableId::MAX);
                found.then_some(route)
            }
            None => self.route_between_sites(from, to),
        }
    }

    /// Fills `route[level]` and its mirror image on the way down; false if no way is whole.
    fn climb_to(
        &self,
        from: NodeIndex,
        to: NodeIndex,
        top: usize,
        level: usize,
        switch: u32,
        route: &mut [Link],
    ) -> bool {
        if level == top {
            return true;
        }
        let site = self.site_of_group(level, self.group(level, from));
        let cabling = self.cabling(site, level);
        let ports = cabling.parents * cabling.cables;
        let preferred = to / self.width(site, level) % ports;
        for port in (preferred..ports).chain(0..preferred) {
            let (parent, cable) = (port % cabling.parents, port / cabling.parents);
            let end =
                |node| self.group_uplink(level, self.group(level, node), switch, parent, cable);
            let (Some(up), Some(down)) = (end(from), end(to)) else {
                continue;
            };
            route[level] = Link { cable: up, direction: Direction::Up };
            route[2 * top - 1 - level] = Link { cable: down, direction: Direction::Down };
            let above = switch * cabling.parents + parent;
            if self.climb_to(from, to, top, level + 1, above, route) {
                return true;
            }
        }
        false
    }

    /// The cable if it is there, `None` if it is missing, `CableId::MAX` where the tree needs none:
    /// above padding, and above a leaf that is a site of its own.
    fn group_uplink(
        &self,
        level: usize,
        group: u32,
        switch: u32,
        parent: u32,
        cable: u32,
    ) -> Option<CableId> {
        if self.uplinks(level, group).is_empty() {
            return Some(CableId::MAX);
        }
        self.cable(level, group, switch, parent, cable).filter(|&id| self.has_cable(id))
    }

    /// Up to the first core switch of the one site, over the WAN, down from the other's.
    fn route_between_sites(&self, from: NodeIndex, to: NodeIndex) -> Option<Route> {
        let top = self.depth();
        let (mut site, goal) = (self.group(top, from), self.group(top, to));
        let half = |node| {
            let mut route = vec![Link { cable: 0, direction: Direction::Up }; 2 * top];
            self.climb_to(node, node, top, 0, 0, &mut route).then_some(route)
        };
        let mut route = half(from)?[..top].to_vec();
        while site != goal {
            let left = self.site_hops(site, goal)?;
            let (next, link) = self.wans().find_map(|(cable, (a, b), _, _)| {
                let (other, direction) = match (a == site, b == site) {
                    (true, _) => (b, Direction::Up),
                    (_, true) => (a, Direction::Down),
                    _ => return None,
                };
                (self.site_hops(other, goal)? < left).then_some((other, Link { cable, direction }))
            })?;
            route.push(link);
            site = next;
        }
        route.extend_from_slice(&half(to)?[top..]);
        route.retain(|link| link.cable != CableId::MAX);
        Some(route)
    }
}
