//! Routes to one destination over a subset of the cables: up, then down, spread as by d-mod-k.

use crate::description::Cabling;
use crate::fabric::Fabric;
use crate::ids::{CableId, GroupIndex, NodeIndex};
use crate::link::{Direction, Link};
use crate::nodeset::NodeSet;

/// One of the parallel switches of a group. At level 0 it is a node, with number 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SwitchPlace {
    /// The level; 1 for a leaf.
    pub level: usize,
    /// The index of the group at that level.
    pub group: GroupIndex,
    /// The number of the switch in its group.
    pub number: u32,
}

impl SwitchPlace {
    /// Returns a node as the end of a route.
    pub fn node(node: NodeIndex) -> SwitchPlace {
        SwitchPlace { level: 0, group: node, number: 0 }
    }
}

/// One step of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteStep {
    /// The link; `None` above padding, where the tree needs none.
    pub link: Option<Link>,
    /// The switch or node to which it leads.
    pub to: SwitchPlace,
}

/// The cables that routes may use. Links of nodes are in every layer.
#[derive(Clone, Copy)]
pub(super) enum Layer<'a> {
    /// Cables that a job owns.
    Dedicated(&'a NodeSet),
    /// This number of highest uplink slots of every switch.
    Reserved(u32),
    /// All cables that exist.
    All,
}

/// An uplink of a switch: the number of the parent, and the number of the parallel cable.
#[derive(Clone, Copy)]
struct Uplink {
    parent: u32,
    cable: u32,
    id: CableId,
}

/// The routes to one destination over the cables of a layer. On a complete tree they are those of d-mod-k (Zahavi 2010)
/// with `place` as the number of the destination. On a subset of the cables they are the same on the tree that these
/// cables form: a packet from anywhere goes up over the uplink that the destination's own switch of the same number
/// would use, if the layer leads there.
pub(super) struct DestinationRoutes<'a> {
    fabric: &'a Fabric,
    layer: Layer<'a>,
    to: SwitchPlace,
    /// A node below the destination, or the destination itself.
    node: NodeIndex,
    /// The number of the destination among those that share the layer.
    place: u32,
    /// The rail on which the node is entered; `None` for any.
    rail: Option<u32>,
}

impl<'a> DestinationRoutes<'a> {
    pub(super) fn new(
        fabric: &'a Fabric,
        layer: Layer<'a>,
        to: SwitchPlace,
        place: u32,
    ) -> DestinationRoutes<'a> {
        let node = fabric.node_range(to.level, to.group).start;
        DestinationRoutes { fabric, layer, to, node, place, rail: None }
    }

    /// Returns the routes to the adapter of the node on this rail.
    pub(super) fn on_rail(self, rail: Option<u32>) -> DestinationRoutes<'a> {
        DestinationRoutes { rail, ..self }
    }

    /// The step from a switch or node; `None` if the layer does not lead to the destination from there.
    pub(super) fn step(&self, at: SwitchPlace) -> Option<RouteStep> {
        if !self.covers(at) {
            return self.up(at);
        }
        if self.falls(at) {
            return Some(self.down(at));
        }
        if self.turns(at) { self.up(at) } else { None }
    }

    /// Whether the layer leads from a switch or node to the destination, up and then down.
    pub(super) fn arrives(&self, at: SwitchPlace) -> bool {
        if at == self.to {
            return true;
        }
        if self.covers(at) && (self.falls(at) || !self.turns(at)) {
            return self.falls(at);
        }
        if at.level == self.fabric.depth() {
            return false;
        }
        if self.is_short(at) {
            return self.arrives(self.above(at, 0));
        }
        self.uplinks(at).any(|uplink| self.arrives(self.above(at, uplink.parent)))
    }

    fn up(&self, at: SwitchPlace) -> Option<RouteStep> {
        let step = |uplink: Uplink| {
            let link = Link { cable: uplink.id, direction: Direction::Up };
            RouteStep { link: Some(link), to: self.above(at, uplink.parent) }
        };
        if at == self.to || at.level == self.fabric.depth() {
            return None;
        }
        if self.is_short(at) {
            let to = self.above(at, 0);
            return self.arrives(to).then_some(RouteStep { link: None, to });
        }
        if let Some(wanted) = self.wanted(at.level, at.number)
            && self.arrives(self.above(at, wanted.parent))
        {
            let uplink = self.parallel(at, wanted.parent, wanted.cable);
            if uplink.is_some() {
                return uplink.map(step);
            }
        }
        let open = self.uplinks(at).filter(|uplink| self.arrives(self.above(at, uplink.parent)));
        let open: Vec<Uplink> = open.collect();
        let turn = self.turn(at.level, at.number) as usize;
        (!open.is_empty()).then(|| step(open[turn % open.len()]))
    }

    /// Whether a packet above the destination, but on another rail, can go on up to where the rails meet.
    fn turns(&self, at: SwitchPlace) -> bool {
        self.fabric.meets_from(self.fabric.site_of_group(at.level, at.group), at.level)
    }

    /// The step down from a switch for which [`DestinationRoutes::falls`] holds.
    fn down(&self, at: SwitchPlace) -> RouteStep {
        let (to, parent) = self.fall(at).unwrap_or_else(|| self.first_below(at));
        let wanted = self.wanted(to.level, to.number).filter(|uplink| uplink.parent == parent);
        let cable = wanted.map_or_else(|| self.turn(to.level, to.number), |uplink| uplink.cable);
        let uplink = self.parallel(to, parent, cable);
        let link = uplink.map(|uplink| Link { cable: uplink.id, direction: Direction::Down });
        RouteStep { link, to }
    }

    /// The uplink to a parent over this parallel cable, or over another one if the layer does not have it.
    fn parallel(&self, at: SwitchPlace, parent: u32, cable: u32) -> Option<Uplink> {
        let uplinks = || self.uplinks(at).filter(|uplink| uplink.parent == parent);
        let same = uplinks().find(|uplink| uplink.cable == cable);
        same.or_else(|| uplinks().nth(cable as usize % uplinks().count().max(1)))
    }

    /// The uplink that the switch with this level and number above the destination would use towards it.
    fn wanted(&self, level: usize, number: u32) -> Option<Uplink> {
        if level < self.to.level {
            return None;
        }
        let own = SwitchPlace { level, group: self.fabric.group(level, self.node), number };
        let turn = self.turn(level, number) as usize;
        let uplinks =
            || self.uplinks(own).filter(|uplink| level > 0 || self.is_entered(uplink.parent));
        uplinks().nth(turn % uplinks().count().max(1))
    }

    /// The rank of the destination among those that share a switch with this level and number: `floor(place / w)`,
    /// where `w` is the number of routes up to it.
    fn turn(&self, level: usize, number: u32) -> u32 {
        let (mut routes, mut number) = (1u32, number);
        for level in (self.to.level..level).rev() {
            let group = self.fabric.group(level + 1, self.node);
            let (own, _) = self.first_below(SwitchPlace { level: level + 1, group, number });
            number = own.number;
            routes = routes.saturating_mul(self.planes(own).max(1));
        }
        self.place / routes
    }

    /// The number of a switch's parents in the layer.
    fn planes(&self, at: SwitchPlace) -> u32 {
        let ports = self.ports(at);
        let reached = |parent: &u32| {
            (0..ports.cabling.cables).any(|cable| self.uplink(ports, *parent, cable).is_some())
        };
        (0..ports.cabling.parents).filter(reached).count() as u32
    }

    fn covers(&self, at: SwitchPlace) -> bool {
        at.level > self.to.level && self.fabric.group(at.level, self.node) == at.group
    }

    /// Whether the cables of the layer lead down to the destination from a switch above it.
    fn falls(&self, at: SwitchPlace) -> bool {
        at == self.to || (at.level > self.to.level && self.fall(at).is_some())
    }

    /// The switch below that leads to the destination, and the number by which it knows this switch as its parent.
    fn fall(&self, at: SwitchPlace) -> Option<(SwitchPlace, u32)> {
        self.below(at).find(|&(below, parent)| self.is_joined(below, parent) && self.falls(below))
    }

    /// Whether a cable of the layer connects a switch below with its parent of this number.
    fn is_joined(&self, below: SwitchPlace, parent: u32) -> bool {
        if below.level == 0 && !self.is_entered(parent) {
            return false;
        }
        if self.is_short(below) {
            return parent == 0; // the first parent stands for all that padding would have
        }
        self.uplinks(below).any(|uplink| uplink.parent == parent)
    }

    /// Whether the destination, a node, may be entered from this parent.
    fn is_entered(&self, parent: u32) -> bool {
        self.rail.is_none_or(|rail| rail == parent)
    }

    /// The switches below towards the destination, each with the number by which it knows this switch as its parent. At
    /// a joined level these are all switches of the group; the one that the destination prefers comes first.
    fn below(&self, at: SwitchPlace) -> impl Iterator<Item = (SwitchPlace, u32)> + '_ {
        let (first, parent) = self.first_below(at);
        let site = self.fabric.site_of_group(first.level, first.group);
        let joined = self.fabric.cabling(site, first.level).joined;
        let width = if joined { self.fabric.width(site, first.level) } else { 1 };
        (0..width).map(move |next| {
            let number = if joined { (first.number + next) % width } else { first.number };
            (SwitchPlace { number, ..first }, parent)
        })
    }

    fn first_below(&self, at: SwitchPlace) -> (SwitchPlace, u32) {
        let level = at.level - 1;
        let group = self.fabric.group(level, self.node);
        let cabling = self.fabric.cabling(self.fabric.site_of_group(level, group), level);
        if cabling.joined {
            let number = self.preferred(level);
            return (SwitchPlace { level, group, number }, at.number);
        }
        let (number, parent) = (at.number / cabling.parents, at.number % cabling.parents);
        (SwitchPlace { level, group, number }, parent)
    }

    /// The number of the switch, at a level above the destination, through which d-mod-k enters it.
    fn preferred(&self, level: usize) -> u32 {
        (self.to.level..level).fold(self.to.number, |number, level| {
            let group = self.fabric.group(level, self.node);
            let cabling = self.fabric.cabling(self.fabric.site_of_group(level, group), level);
            let parent = self.wanted(level, number).map_or(0, |uplink| uplink.parent);
            cabling.upper(number, parent)
        })
    }

    fn above(&self, at: SwitchPlace, parent: u32) -> SwitchPlace {
        above(self.fabric, at, parent)
    }

    /// Whether the group is padding, which has no cables.
    fn is_short(&self, at: SwitchPlace) -> bool {
        self.fabric.uplinks(at.level, at.group).is_empty()
    }

    /// The uplinks of a switch in the layer, in port order: all parents for the first parallel cable, then for the next
    /// one.
    fn uplinks(&self, at: SwitchPlace) -> impl Iterator<Item = Uplink> + '_ {
        let ports = self.ports(at);
        let Cabling { parents, cables, .. } = ports.cabling;
        let all =
            (0..cables).flat_map(move |cable| (0..parents).map(move |parent| (parent, cable)));
        all.filter_map(move |(parent, cable)| self.uplink(ports, parent, cable))
    }

    fn ports(&self, at: SwitchPlace) -> UplinkPorts {
        let cabling = self.fabric.cabling(self.fabric.site_of_group(at.level, at.group), at.level);
        let of_group = self.fabric.uplinks(at.level, at.group);
        let first = of_group.start + at.number * cabling.parents * cabling.cables;
        UplinkPorts { level: at.level, cabling, first, there: !of_group.is_empty() }
    }

    fn uplink(&self, ports: UplinkPorts, parent: u32, cable: u32) -> Option<Uplink> {
        let Cabling { parents, cables, .. } = ports.cabling;
        let slot = parent * cables + cable;
        let id = ports.first + slot;
        let allowed = match self.layer {
            Layer::Dedicated(links) => ports.level == 0 || links.contains(id),
            Layer::Reserved(slots) => {
                ports.level == 0 || slot.saturating_add(slots) >= parents * cables
            }
            Layer::All => true,
        };
        let is_there = ports.there && allowed && self.fabric.has_cable(id);
        is_there.then_some(Uplink { parent, cable, id })
    }
}

/// The uplink ports of a switch.
#[derive(Clone, Copy)]
struct UplinkPorts {
    level: usize,
    cabling: Cabling,
    first: CableId,
    /// Whether the switch has uplinks; padding has none.
    there: bool,
}

/// The switch that is the parent number `parent` of a switch or node.
pub(crate) fn above(fabric: &Fabric, at: SwitchPlace, parent: u32) -> SwitchPlace {
    let cabling = fabric.cabling(fabric.site_of_group(at.level, at.group), at.level);
    SwitchPlace {
        level: at.level + 1,
        group: fabric.parent(at.level, at.group),
        number: cabling.upper(at.number, parent),
    }
}
