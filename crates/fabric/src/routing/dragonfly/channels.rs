//! The channels of a dragonfly on which traffic spreads over parallel cables.

use std::sync::Arc;

use crate::error::InputError;
use crate::fabric::Fabric;
use crate::ids::{CableId, NodeIndex};
use crate::link::{Channel, Direction, Link};
use crate::routing::node_channels::{node_capacity, node_links};
use crate::wiring::{Dragonfly, GroupShape, SwitchSet};

/// The most pairs of a switch and a group, because there are splits for each.
const MOST_PAIRS: u64 = 1 << 21;

/// Numbers of channels. A channel is one direction of all links of a node, of all cables between two switches of a group,
/// or of all cables between two groups; they are numbered in this order.
#[derive(Debug)]
pub(super) struct DragonflyChannels {
    pub fabric: Arc<Fabric>,
    /// The switch of each node.
    switch_of: Vec<u32>,
    group_of: Vec<u32>,
    /// The first switch of each group; then the number of switches.
    first: Vec<u32>,
    pub shapes: Vec<Arc<GroupShape>>,
    /// The first channel from each switch to others of its group; then the first between groups.
    local: Vec<Channel>,
    /// Bandwidth in bytes per second.
    pub capacity: Vec<f64>,
    /// For each channel between switches, counted from the first, cables with consecutive ids: the first, and their
    /// number.
    runs: Vec<Vec<(CableId, u32, Direction)>>,
    /// By group and other group: the switches, by their place, with cables to the other, and their part of the bandwidth.
    gates: Vec<Vec<(u8, f64)>>,
}

impl DragonflyChannels {
    /// Returns the channels, where traffic between two groups keeps to the lanes with the cables in `own`. Where none of them
    /// joins two groups, it has all cables.
    ///
    /// # Errors
    /// The machine has too many switches and groups.
    pub fn new(
        fabric: Arc<Fabric>,
        dragonfly: &Dragonfly,
        own: &[CableId],
    ) -> Result<Self, InputError> {
        let (switches, groups) = (dragonfly.switches(), dragonfly.groups());
        if u64::from(switches) * u64::from(groups) > MOST_PAIRS {
            return Err(InputError::whole(format!(
                "{switches} switches in {groups} groups are too many for a routing over all routes: take \
                 minimal-hashed"
            )));
        }
        let switch = |node| dragonfly.switch_of_leaf(fabric.group(1, node));
        let switch_of: Vec<u32> = (0..fabric.nodes()).map(switch).collect();
        let group_of: Vec<u32> = (0..switches).map(|switch| dragonfly.group_of(switch)).collect();
        let mut first: Vec<u32> =
            (0..groups).map(|group| dragonfly.switches_of(group).start).collect();
        first.push(switches);
        let shapes = dragonfly.shapes().to_vec();
        let mut next = 2 * fabric.nodes();
        let mut local = Vec::with_capacity(switches as usize + 1);
        for switch in 0..switches {
            local.push(next);
            let shape = &shapes[group_of[switch as usize] as usize];
            next += shape.near(dragonfly.place_of(switch) as usize).count_ones();
        }
        local.push(next);
        let pairs = (groups * groups) as usize;
        let to_nodes = 2 * fabric.nodes() as usize;
        let all = next as usize + pairs;
        let mut channels = DragonflyChannels {
            switch_of,
            group_of,
            first,
            shapes,
            local,
            capacity: node_capacity(&fabric),
            runs: vec![Vec::new(); all - to_nodes],
            gates: vec![Vec::new(); pairs],
            fabric,
        };
        channels.capacity.resize(all, 0.0);
        channels.lay(dragonfly, own);
        Ok(channels)
    }

    fn lay(&mut self, dragonfly: &Dragonfly, own: &[CableId]) {
        let below = self.fabric.links() - dragonfly.cables();
        let lanes = dragonfly.lanes_with(own.iter().filter_map(|cable| cable.checked_sub(below)));
        let mut at_gates: Vec<Vec<f64>> = vec![Vec::new(); self.gates.len()];
        for (cable, run) in dragonfly.runs() {
            if !dragonfly.may_use(&lanes, run) {
                continue;
            }
            let (a, b) = run.between;
            let bandwidth = f64::from(run.count) * run.bandwidth;
            for (from, to, direction) in [(a, b, Direction::Up), (b, a, Direction::Down)] {
                let (of_from, of_to) = (self.group(from), self.group(to));
                let channel = if of_from == of_to {
                    self.inside(of_from, self.place(from), self.place(to))
                } else {
                    self.between(of_from, of_to)
                };
                self.capacity[channel as usize] += bandwidth;
                let place = channel as usize - 2 * self.switch_of.len();
                self.runs[place].push((below + cable, run.count, direction));
                if of_from != of_to {
                    let at = &mut at_gates[(of_from * self.groups() + of_to) as usize];
                    at.resize(SwitchSet::BITS as usize, 0.0);
                    at[self.place(from)] += bandwidth;
                }
            }
        }
        for (gates, at) in self.gates.iter_mut().zip(at_gates) {
            let all: f64 = at.iter().sum();
            let with = (0..).zip(at).filter(|&(_, bandwidth)| bandwidth > 0.0);
            *gates = with.map(|(place, bandwidth)| (place, bandwidth / all)).collect();
        }
    }

    pub fn groups(&self) -> u32 {
        self.first.len() as u32 - 1
    }

    pub fn switches(&self) -> u32 {
        self.group_of.len() as u32
    }

    pub fn switch_of(&self, node: NodeIndex) -> u32 {
        self.switch_of[node as usize]
    }

    pub fn group(&self, switch: u32) -> u32 {
        self.group_of[switch as usize]
    }

    pub fn place(&self, switch: u32) -> usize {
        (switch - self.first[self.group(switch) as usize]) as usize
    }

    /// The switches with cables from a group to another, by their place, and the part of the traffic at each.
    pub fn gates(&self, group: u32, other: u32) -> impl Iterator<Item = (usize, f64)> + '_ {
        let gates = &self.gates[(group * self.groups() + other) as usize];
        gates.iter().map(|&(place, part)| (place.into(), part))
    }

    /// The channel from one switch of a group to a neighbour, by their places.
    pub fn inside(&self, group: u32, from: usize, to: usize) -> Channel {
        let near = self.shapes[group as usize].near(from);
        let before = (near & ((1 << to) - 1)).count_ones();
        self.local[self.first[group as usize] as usize + from] + before
    }

    /// The channel from one group to another.
    pub fn between(&self, group: u32, other: u32) -> Channel {
        self.local[self.local.len() - 1] + group * self.groups() + other
    }

    /// The channels inside a group, from the first.
    pub fn inside_of(&self, group: u32) -> std::ops::Range<Channel> {
        let first = |group: u32| self.local[self.first[group as usize] as usize];
        first(group)..first(group + 1)
    }

    /// Calls `each` with all channels on the ways between two switches of a group, and the part of the traffic on each.
    pub fn divide(&self, group: u32, from: usize, to: usize, each: &mut dyn FnMut(Channel, f64)) {
        let weight = |from, to| self.capacity[self.inside(group, from, to) as usize];
        let link = &mut |from, to, part| each(self.inside(group, from, to), part);
        self.shapes[group as usize].divide(from, to, &weight, link);
    }

    pub fn links(&self, channel: Channel) -> Vec<Link> {
        let nodes = self.switch_of.len();
        let Some(place) = (channel as usize).checked_sub(2 * nodes) else {
            return node_links(&self.fabric, channel);
        };
        let runs = self.runs.get(place).map_or(&[][..], Vec::as_slice);
        let of_run = |&(first, count, direction): &(CableId, u32, Direction)| {
            (first..first + count).map(move |cable| Link { cable, direction })
        };
        runs.iter().flat_map(of_run).collect()
    }
}
