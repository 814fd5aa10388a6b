//! Routings of tori and HyperX: one dimension after another.

mod parts;

use std::sync::Arc;

use super::node_channels::{ends, node_capacity, node_links};
use super::{Routing, Splits, Unreachable};
use crate::error::InputError;
use crate::fabric::Fabric;
use crate::ids::{CableId, NodeIndex};
use crate::link::{Channel, Direction, Link, link_of};
use crate::wiring::{HyperX, Torus, Wiring};
use parts::{ChannelParts, one_in_orders};

/// Minimal routing on a torus or HyperX in the order of the dimensions, or on a HyperX in all orders alike.
///
/// In a ring a message goes the shorter way; if both are equally short, half of it goes each way. A channel is one
/// direction of all links of a node, or of all cables between two switches.
#[derive(Debug)]
pub struct GridRouting {
    fabric: Arc<Fabric>,
    in_all_orders: bool,
    switch_of: Vec<u32>,
    /// Bandwidth in bytes per second.
    capacity: Vec<f64>,
    /// Of each pair of joined switches: the first of their cables, whose ids are consecutive, and their number.
    cables: Vec<(CableId, u32)>,
    parts: Arc<ChannelParts>,
}

impl GridRouting {
    /// Returns the routing in the order of the dimensions.
    ///
    /// # Errors
    /// The machine is no torus or HyperX, or a pod.
    pub fn in_order(fabric: Arc<Fabric>) -> Result<Self, InputError> {
        let one_in = match fabric.wiring() {
            Wiring::Torus(torus) if torus.is_pod() => {
                return Err(InputError::whole(format!(
                    "{} is a pod, whose optical switches are set for each job, so it has no routes between its cubes",
                    fabric.name()
                )));
            }
            Wiring::Torus(torus) => {
                let has_ties = |(&size, &is_ring): (&u32, &bool)| is_ring && size % 2 == 0;
                let is_tied = torus.sizes().iter().zip(torus.rings()).any(has_ties);
                if is_tied { vec![2] } else { Vec::new() }
            }
            Wiring::HyperX(_) => Vec::new(),
            other => {
                return Err(InputError::whole(format!(
                    "routing dimension-order needs a torus or a HyperX, not a {}",
                    other.name()
                )));
            }
        };
        GridRouting::new(fabric, false, one_in)
    }

    /// Returns the routing over all orders of the dimensions.
    ///
    /// # Errors
    /// The machine is no HyperX, or has too many links.
    pub fn in_all_orders(fabric: Arc<Fabric>) -> Result<Self, InputError> {
        let Some(hyperx) = fabric.wiring().hyperx() else {
            return Err(InputError::whole(format!(
                "a routing over all orders of the dimensions needs a HyperX, not a {}",
                fabric.wiring().name()
            )));
        };
        let most = hyperx.sizes().iter().filter(|&&size| size > 1).count() as u32;
        let all = (2..=most).flat_map(|count| (0..count).map(move |before| (count, before)));
        let mut one_in: Vec<u32> =
            all.map(|(count, before)| one_in_orders(count, before)).collect();
        one_in.sort_unstable();
        one_in.dedup();
        GridRouting::new(fabric, true, one_in)
    }

    fn new(fabric: Arc<Fabric>, in_all_orders: bool, one_in: Vec<u32>) -> Result<Self, InputError> {
        let switch = |node| {
            let leaf = fabric.group(1, node);
            match fabric.wiring() {
                Wiring::Torus(torus) => torus.router_of_leaf(leaf),
                Wiring::HyperX(hyperx) => hyperx.switch_of_leaf(leaf),
                _ => leaf,
            }
        };
        let switch_of = (0..fabric.nodes()).map(switch).collect();
        let mut capacity = node_capacity(&fabric);
        let first = capacity.len() as Channel;
        let mut cables = Vec::new();
        let mut next = fabric.links() - fabric.wiring().cables();
        while let Some(cable) = fabric.wired_cable(next) {
            capacity.extend([f64::from(cable.count) * cable.bandwidth; 2]);
            cables.push((next, cable.count));
            next += cable.count;
        }
        let parts = ChannelParts::new(first, capacity.len() as Channel, one_in)?;
        let parts = Arc::new(parts);
        Ok(GridRouting { fabric, in_all_orders, switch_of, capacity, cables, parts })
    }

    /// The channel of one direction of the cables of a pair of switches; up is from the first to the second.
    fn channel(&self, pair: u32, direction: Direction) -> Channel {
        2 * (self.fabric.nodes() + pair) + Channel::from(direction == Direction::Down)
    }

    fn over_torus(&self, torus: &Torus, (from, to): (u32, u32), path: &mut Vec<Channel>) {
        let mut at = from;
        for (dimension, &stride) in torus.strides().iter().enumerate() {
            let (own, end) = (torus.place(at, dimension), torus.place(to, dimension));
            let line = at - own * stride;
            self.along(torus, (dimension, line), (own, end), path);
            at = line + end * stride;
        }
    }

    /// Goes from one place of a line to another, the shorter way or half of it either way.
    fn along(
        &self,
        torus: &Torus,
        (dimension, line): (usize, u32),
        (from, to): (u32, u32),
        path: &mut Vec<Channel>,
    ) {
        let (size, stride) = (torus.sizes()[dimension], torus.strides()[dimension]);
        let up = (to + size - from) % size;
        let down = size - up;
        let is_ring = torus.rings()[dimension];
        let goes_up = if is_ring { up <= down } else { from <= to };
        let goes_down = if is_ring { down <= up } else { to < from };
        let one_in = 1 + u32::from(goes_up && goes_down);
        let mut go = |place: u32, direction: Direction| {
            let cable = torus.cable_after(line + place % size * stride, dimension);
            path.push(self.parts.entry(self.channel(cable, direction), one_in));
        };
        if goes_up {
            (from..from + up).for_each(|place| go(place, Direction::Up));
        }
        if goes_down {
            (to..to + down).rev().for_each(|place| go(place, Direction::Down));
        }
    }

    fn over_hyperx(&self, hyperx: &HyperX, (from, to): (u32, u32), path: &mut Vec<Channel>) {
        let dimensions = || 0..hyperx.sizes().len();
        let differs = |dimension| hyperx.place(from, dimension) != hyperx.place(to, dimension);
        // Sets of dimensions are bits.
        let all: u32 = dimensions().filter(|&it| differs(it)).map(|it| 1 << it).sum();
        for passed in (0..all).filter(|passed| passed & !all == 0) {
            let left = all & !passed;
            let first = left & left.wrapping_neg();
            let (next, one_in) = match (self.in_all_orders, passed < first) {
                (true, _) => (left, one_in_orders(all.count_ones(), passed.count_ones())),
                (false, true) => (first, 1),
                (false, false) => continue,
            };
            let place = |dimension: usize| {
                hyperx.place(if passed >> dimension & 1 == 1 { to } else { from }, dimension)
            };
            let at = dimensions().map(|it| place(it) * hyperx.strides()[it]).sum();
            for dimension in dimensions().filter(|&it| next >> it & 1 == 1) {
                let channel = self.across(hyperx, at, (dimension, hyperx.place(to, dimension)));
                path.push(self.parts.entry(channel, one_in));
            }
        }
    }

    /// The channel from a switch to the one with another place in a dimension.
    fn across(&self, hyperx: &HyperX, from: u32, (dimension, to): (usize, u32)) -> Channel {
        let is_up = hyperx.place(from, dimension) < to;
        let direction = if is_up { Direction::Up } else { Direction::Down };
        self.channel(hyperx.pair(from, dimension, to), direction)
    }
}

impl Routing for GridRouting {
    fn name(&self) -> &'static str {
        if self.in_all_orders { "minimal" } else { "dimension-order" }
    }

    fn fabric(&self) -> &Arc<Fabric> {
        &self.fabric
    }

    fn channels(&self) -> u32 {
        self.capacity.len() as u32
    }

    fn capacity(&self, channel: Channel) -> f64 {
        self.capacity[channel as usize]
    }

    fn splits(&self) -> Splits {
        Splits::new(self.channels(), Arc::clone(&self.parts) as _)
    }

    fn links(&self, channel: Channel) -> Vec<Link> {
        let Some(pair) = (channel / 2).checked_sub(self.fabric.nodes()) else {
            return node_links(&self.fabric, channel);
        };
        let direction = link_of(channel).direction;
        let (first, count) = self.cables[pair as usize];
        (first..first + count).map(|cable| Link { cable, direction }).collect()
    }

    fn by_leaf(&self) -> bool {
        self.fabric.domains() == 0
    }

    fn path(
        &self,
        from: NodeIndex,
        to: NodeIndex,
        path: &mut Vec<Channel>,
    ) -> Result<(), Unreachable> {
        if from == to || self.fabric.share_domain(from, to) {
            return Ok(());
        }
        let (up, down) = ends(&self.capacity, from, to).ok_or(Unreachable { from, to })?;
        let switches = (self.switch_of[from as usize], self.switch_of[to as usize]);
        path.push(up);
        match self.fabric.wiring() {
            Wiring::Torus(torus) => self.over_torus(torus, switches, path),
            Wiring::HyperX(hyperx) => self.over_hyperx(hyperx, switches, path),
            Wiring::Tree | Wiring::Dragonfly(_) => {}
        }
        path.push(down);
        Ok(())
    }
}
