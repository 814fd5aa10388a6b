//! Computes the links of a route between two nodes: up to the common level, then down.

use crate::fabric::Fabric;
use crate::ids::{CableId, NodeIndex};
use crate::link::{Channel, Direction, Link, Route, channel_of, link_of};
use crate::routing::rule::Rule;

impl Fabric {
    /// The d-mod-k route from `from` to `to` (Zahavi 2010), including the links of the nodes; see [`Fabric::route_by`].
    pub fn route(&self, from: NodeIndex, to: NodeIndex) -> Option<Route> {
        self.route_by(Rule::DestinationModK, from, to)
    }

    /// The route from `from` to `to` by `rule`, including the links of the nodes. Missing cables are skipped in port
    /// order, separately on the way up and the way down. `None` if no route connects the nodes, and between switches of a
    /// wiring that is not a tree. O(depth) on a complete
    /// tree.
    ///
    /// The route stays on one rail. Only if no rail has a complete route, and the rails meet, it goes up on one rail
    /// and down on another.
    pub fn route_by(&self, rule: Rule, from: NodeIndex, to: NodeIndex) -> Option<Route> {
        self.route_on(rule, (from, to), RailEnds::Same).or_else(|| {
            let site = self.site_of_group(0, from);
            let may_cross = self.rails(site) > 1 && self.meets_from(site, 1);
            may_cross.then(|| self.route_on(rule, (from, to), RailEnds::Any))?
        })
    }

    /// The route between two nodes that starts and ends on these rails.
    pub(crate) fn route_on(
        &self,
        rule: Rule,
        pair: (NodeIndex, NodeIndex),
        ends: RailEnds,
    ) -> Option<Route> {
        let (from, to) = pair;
        if !self.wiring().is_tree() && self.group(1, from) != self.group(1, to) {
            return None;
        }
        let mut climb = Climb { fabric: self, rule, pair, ends, route: Route::new() };
        let Some(top) = self.common_level(from, to) else {
            return climb.between_sites().then_some(climb.route);
        };
        if top == 0 {
            return Some(Route::new());
        }
        if !ends.may_differ() && self.missing_cables().is_empty() {
            let mut path = Vec::with_capacity(2 * top);
            self.whole_path(rule, pair, ends, top, &mut path);
            return Some(path.into_iter().map(link_of).collect());
        }
        let top = if ends.may_differ() { top.max(self.meeting_level(from)?) } else { top };
        climb.to(from, to, top).then_some(climb.route)
    }

    /// Appends the route on one rail between two nodes that meet at level `top`, on a tree without missing cables. The
    /// way down uses the same switches as the way up.
    pub(crate) fn whole_path(
        &self,
        rule: Rule,
        pair: (NodeIndex, NodeIndex),
        ends: RailEnds,
        top: usize,
        path: &mut Vec<Channel>,
    ) {
        let site = self.site_of_group(0, pair.0);
        let first = path.len();
        let end = first + 2 * top;
        path.resize(end, Channel::MAX);
        let mut switch = 0;
        for level in 0..top {
            let cabling = self.cabling(site, level);
            let ports = cabling.parents * cabling.cables;
            let mut port = rule.port(pair, level, self.width(site, level), ports);
            if let RailEnds::Rails(rail, _) = ends
                && level == 0
            {
                // The next port that leads to the parent on that rail.
                let parents = cabling.parents;
                port = (port + (rail + parents - port % parents) % parents) % ports;
            }
            let (parent, cable) = (port % cabling.parents, port / cabling.parents);
            let offset = (switch * cabling.parents + parent) * cabling.cables + cable;
            let channel = |node, direction| {
                let uplinks = self.uplinks(level, self.group(level, node));
                let link = Link { cable: uplinks.start + offset, direction };
                if uplinks.is_empty() { Channel::MAX } else { channel_of(link) }
            };
            path[first + level] = channel(pair.0, Direction::Up);
            path[end - 1 - level] = channel(pair.1, Direction::Down);
            switch = cabling.upper(switch, parent);
        }
        // A padded level has no cable.
        if path[first..].contains(&Channel::MAX) {
            let cables = path.split_off(first);
            path.extend(cables.into_iter().filter(|&channel| channel != Channel::MAX));
        }
    }

    /// The level of the switches where the rails of a node's site meet; `None` if they do not.
    fn meeting_level(&self, node: NodeIndex) -> Option<usize> {
        let site = self.site_of_group(0, node);
        (1..self.depth()).find(|&level| self.cabling(site, level).joined).map(|level| level + 1)
    }

    /// The cable if it exists; `None` if it is missing; `CableId::MAX` if the tree needs no cable there: above padding,
    /// and above a leaf that is a site of its own.
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
}

/// The rails on which a route leaves its first node and enters its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RailEnds {
    /// The same rail for both, as the rule prefers.
    Same,
    /// Any rails; the rails must meet.
    Any,
    /// Up on the first rail and down on the second.
    Rails(u32, u32),
}

impl RailEnds {
    fn may_differ(self) -> bool {
        match self {
            RailEnds::Same => false,
            RailEnds::Any => true,
            RailEnds::Rails(up, down) => up != down,
        }
    }

    /// Whether a route may use the node link to parent `up` and the one from parent `down`.
    fn allow(self, up: u32, down: u32) -> bool {
        match self {
            RailEnds::Same => up == down,
            RailEnds::Any => true,
            RailEnds::Rails(first, last) => (up, down) == (first, last),
        }
    }
}

/// A search for a route. It goes up by the rule, and down through switches with the same numbers, or with others if the
/// two sides can still meet in one switch.
struct Climb<'a> {
    fabric: &'a Fabric,
    rule: Rule,
    /// The pair of nodes whose ports the rule chooses.
    pair: (NodeIndex, NodeIndex),
    ends: RailEnds,
    route: Route,
}

impl Climb<'_> {
    /// Sets `route` to the links between two nodes that meet at level `top`. Returns false if no complete route exists.
    fn to(&mut self, from: NodeIndex, to: NodeIndex, top: usize) -> bool {
        self.route.clear();
        self.route.resize(2 * top, Link { cable: 0, direction: Direction::Up });
        let found = self.at_level(from, to, top, 0, (0, 0));
        // A padded level has no cable.
        self.route.retain(|link| link.cable != CableId::MAX);
        found
    }

    /// Sets `route[level]` and its counterpart on the way down, starting from these switches on both sides. Returns
    /// false if no complete route exists.
    fn at_level(
        &mut self,
        from: NodeIndex,
        to: NodeIndex,
        top: usize,
        level: usize,
        (up_from, down_to): (u32, u32),
    ) -> bool {
        if level == top {
            return up_from == down_to;
        }
        let fabric = self.fabric;
        let site = fabric.site_of_group(level, fabric.group(level, from));
        let cabling = fabric.cabling(site, level);
        let ports = cabling.parents * cabling.cables;
        let preferred = self.rule.port(self.pair, level, fabric.width(site, level), ports);
        // Sides on different switches meet at a joined level, where both take the same parent.
        let may_part = self.ends.may_differ() && !cabling.joined;
        for port in (preferred..ports).chain(0..preferred) {
            let (parent, cable) = (port % cabling.parents, port / cabling.parents);
            let end = |node, switch, parent, cable| {
                fabric.group_uplink(level, fabric.group(level, node), switch, parent, cable)
            };
            let Some(up) = end(from, up_from, parent, cable) else { continue };
            let others = if may_part { cabling.parents } else { 1 };
            for down_parent in (0..others).map(|next| (parent + next) % cabling.parents) {
                if level == 0 && !self.ends.allow(parent, down_parent) {
                    continue;
                }
                // The way down chooses its own parallel cable, because the one used on the way up may be missing there.
                let mut downs = (cable..cabling.cables).chain(0..cable);
                let down = downs.find_map(|cable| end(to, down_to, down_parent, cable));
                let Some(down) = down else { continue };
                self.route[level] = Link { cable: up, direction: Direction::Up };
                self.route[2 * top - 1 - level] = Link { cable: down, direction: Direction::Down };
                let above = (cabling.upper(up_from, parent), cabling.upper(down_to, down_parent));
                if self.at_level(from, to, top, level + 1, above) {
                    return true;
                }
            }
        }
        false
    }

    /// Sets the route between two sites: up to a core switch of the first, over the WAN, and down in the second.
    fn between_sites(&mut self) -> bool {
        let (from, to) = self.pair;
        let top = self.fabric.depth();
        let Some(wan) =
            self.fabric.wan_route(self.fabric.group(top, from), self.fabric.group(top, to))
        else {
            return false;
        };
        if !self.to(from, from, top) {
            return false;
        }
        let mut whole = self.route[..self.route.len() / 2].to_vec();
        whole.extend(wan);
        if !self.to(to, to, top) {
            return false;
        }
        whole.extend_from_slice(&self.route[self.route.len() / 2..]);
        self.route = whole;
        true
    }
}

impl Fabric {
    /// The WAN links of the shortest route from one site to another; `None` if there is none.
    pub(crate) fn wan_route(&self, from: u32, to: u32) -> Option<Route> {
        let mut site = from;
        let mut route = Route::new();
        while site != to {
            let left = self.site_hops(site, to)?;
            let (next, link) = self.wans().find_map(|(cable, (a, b), _, _)| {
                let (other, direction) = match (a == site, b == site) {
                    (true, _) => (b, Direction::Up),
                    (_, true) => (a, Direction::Down),
                    _ => return None,
                };
                (self.site_hops(other, to)? < left).then_some((other, Link { cable, direction }))
            })?;
            route.push(link);
            site = next;
        }
        Some(route)
    }
}
