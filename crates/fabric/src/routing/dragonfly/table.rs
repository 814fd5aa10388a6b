//! What the splits of a dragonfly are: the parts of a route that many pairs of nodes share.

use std::sync::OnceLock;

use super::channels::DragonflyChannels;
use crate::link::Channel;
use crate::routing::SplitTable;

type Parts = Box<[(Channel, f64)]>;

/// The splits of `minimal` and `valiant`. Of the bytes between two groups, the part `fraction` goes through a group that
/// is drawn from all; if that is one of the two groups themselves, the route is minimal. Of the bytes inside a group,
/// the same part goes through a switch that is drawn from all of the group.
///
/// Each split is computed on first use.
#[derive(Debug)]
pub(super) struct DragonflySplits {
    channels: DragonflyChannels,
    fraction: f64,
    /// The first split of each kind, in the order of [`Self::compute`]; then their number.
    first: [u32; 9],
    /// The first split inside each group.
    inside: Vec<u32>,
    found: Box<[OnceLock<Parts>]>,
}

impl DragonflySplits {
    pub fn new(channels: DragonflyChannels, fraction: f64) -> Self {
        let (groups, switches) = (channels.groups(), channels.switches());
        let mut inside = Vec::with_capacity(channels.shapes.len());
        let mut pairs = 0;
        for shape in &channels.shapes {
            inside.push(pairs);
            pairs += (shape.size() * shape.size()) as u32;
        }
        let detours = |count: u32| if fraction > 0.0 { count } else { 0 };
        let counts = [
            switches * groups,
            switches * groups,
            pairs,
            detours(groups * groups),
            detours(switches),
            detours(switches),
            detours(switches),
            detours(switches),
        ];
        let mut first = [0; 9];
        for (kind, count) in counts.iter().enumerate() {
            first[kind + 1] = first[kind] + count;
        }
        let found = (0..first[8]).map(|_| OnceLock::new()).collect();
        DragonflySplits { channels, fraction, first, inside, found }
    }

    pub fn channels(&self) -> &DragonflyChannels {
        &self.channels
    }

    /// The part of the bytes that goes over a drawn group or switch.
    pub fn fraction(&self) -> f64 {
        self.fraction
    }

    /// From a switch to the cables to another group.
    pub fn departure(&self, switch: u32, group: u32) -> u32 {
        switch * self.channels.groups() + group
    }

    /// From the cables of another group to a switch.
    pub fn arrival(&self, group: u32, switch: u32) -> u32 {
        self.first[1] + switch * self.channels.groups() + group
    }

    /// From one switch of a group to another.
    pub fn inside(&self, from: u32, to: u32) -> u32 {
        let channels = &self.channels;
        let group = channels.group(from) as usize;
        let size = channels.shapes[group].size();
        let pair = channels.place(from) * size + channels.place(to);
        self.first[2] + self.inside[group] + pair as u32
    }

    /// From one group to another: the cables that join them, and the inside of the groups on detours.
    pub fn transit(&self, group: u32, other: u32) -> u32 {
        self.first[3] + group * self.channels.groups() + other
    }

    /// From a switch to a group drawn from all.
    pub fn outward(&self, switch: u32) -> u32 {
        self.first[4] + switch
    }

    /// To a switch from a group drawn from all.
    pub fn homeward(&self, switch: u32) -> u32 {
        self.first[5] + switch
    }

    /// From a switch to one drawn from its group.
    pub fn aside(&self, switch: u32) -> u32 {
        self.first[6] + switch
    }

    /// To a switch from one drawn from its group.
    pub fn back(&self, switch: u32) -> u32 {
        self.first[7] + switch
    }

    /// The part of all bytes that goes over one drawn group.
    fn drawn(&self) -> f64 {
        self.fraction / f64::from(self.channels.groups())
    }

    fn compute(&self, split: u32) -> Parts {
        let groups = self.channels.groups();
        let kind = self.first.partition_point(|&first| first <= split) - 1;
        let number = split - self.first[kind];
        // Half of the draws of one of the two groups themselves are in `outward` and `homeward`.
        let minimal = 1.0 - self.fraction + self.drawn();
        match kind {
            0 => self.near_gates(number / groups, &[number % groups], minimal, false),
            1 => self.near_gates(number / groups, &[number % groups], minimal, true),
            2 => self.inside_parts(number),
            3 => self.transit_parts(number / groups, number % groups),
            4 | 5 => {
                let (others, arrives) = (self.others(number), kind == 5);
                let mut parts = self.near_gates(number, &others, self.drawn(), arrives).into_vec();
                let own = self.channels.group(number);
                parts.extend(others.into_iter().map(|other| {
                    let (from, to) = if arrives { (other, own) } else { (own, other) };
                    (self.channels.between(from, to), self.drawn())
                }));
                parts.into()
            }
            6 | 7 => self.detour_inside(number, kind == 7),
            _ => Parts::default(),
        }
    }

    fn others(&self, switch: u32) -> Vec<u32> {
        let own = self.channels.group(switch);
        (0..self.channels.groups()).filter(|&group| group != own).collect()
    }

    /// The ways inside a group from a switch to the cables to each of these groups, or from these cables to the switch.
    fn near_gates(&self, switch: u32, groups: &[u32], part: f64, arrives: bool) -> Parts {
        let channels = &self.channels;
        let (own, at) = (channels.group(switch), channels.place(switch));
        let mut sums = GroupSums::new(channels, own);
        for &other in groups {
            for (gate, share) in channels.gates(own, other) {
                let (from, to) = if arrives { (gate, at) } else { (at, gate) };
                sums.add(from, to, share * part);
            }
        }
        sums.parts().into()
    }

    fn inside_parts(&self, number: u32) -> Parts {
        let group = self.inside.partition_point(|&first| first <= number) - 1;
        let size = self.channels.shapes[group].size();
        let pair = (number - self.inside[group]) as usize;
        let mut sums = GroupSums::new(&self.channels, group as u32);
        sums.add(pair / size, pair % size, 1.0 - self.fraction);
        sums.parts().into()
    }

    /// The ways inside a group from a switch to all of the group, or from these to the switch.
    fn detour_inside(&self, switch: u32, arrives: bool) -> Parts {
        let channels = &self.channels;
        let (own, at) = (channels.group(switch), channels.place(switch));
        let size = channels.shapes[own as usize].size();
        let mut sums = GroupSums::new(channels, own);
        for other in 0..size {
            let (from, to) = if arrives { (other, at) } else { (at, other) };
            sums.add(from, to, self.fraction / size as f64);
        }
        sums.parts().into()
    }

    fn transit_parts(&self, group: u32, other: u32) -> Parts {
        let channels = &self.channels;
        let mut parts = Vec::new();
        for between in
            (0..channels.groups()).filter(|&between| between != group && between != other)
        {
            let mut sums = GroupSums::new(channels, between);
            for (arrival, first) in channels.gates(between, group) {
                for (departure, second) in channels.gates(between, other) {
                    sums.add(arrival, departure, self.drawn() * first * second);
                }
            }
            parts.extend(sums.parts());
        }
        if group != other && self.fraction < 1.0 {
            parts.push((channels.between(group, other), 1.0 - self.fraction));
        }
        parts.into()
    }
}

impl SplitTable for DragonflySplits {
    fn count(&self) -> u32 {
        self.found.len() as u32
    }

    fn parts(&self, split: u32) -> &[(Channel, f64)] {
        self.found
            .get(split as usize)
            .map_or(&[], |found| found.get_or_init(|| self.compute(split)))
    }
}

/// Sums of traffic on the channels inside one group.
struct GroupSums<'a> {
    channels: &'a DragonflyChannels,
    group: u32,
    first: Channel,
    sums: Vec<f64>,
}

impl<'a> GroupSums<'a> {
    fn new(channels: &'a DragonflyChannels, group: u32) -> Self {
        let inside = channels.inside_of(group);
        let sums = vec![0.0; inside.len()];
        GroupSums { channels, group, first: inside.start, sums }
    }

    fn add(&mut self, from: usize, to: usize, part: f64) {
        let GroupSums { channels, group, first, sums } = self;
        channels.divide(*group, from, to, &mut |channel, share| {
            sums[(channel - *first) as usize] += part * share;
        });
    }

    fn parts(&self) -> Vec<(Channel, f64)> {
        let all = (self.first..).zip(self.sums.iter().copied());
        all.filter(|&(_, part)| part > 0.0).collect()
    }
}
