//! Static minimal routing of a dragonfly: one route for each pair of a switch and a destination.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::super::{Routing, Unreachable};
use super::dragonfly_of;
use crate::error::InputError;
use crate::fabric::Fabric;
use crate::ids::{CableId, NodeIndex};
use crate::link::{Channel, Direction, Link, channel_of};
use crate::scramble::scramble;
use crate::wiring::GroupShape;

/// Minimal routing over one route, drawn from all minimal ones by a hash of the source's switch and the destination. A
/// channel is one direction of one cable.
#[derive(Debug)]
pub struct HashedRouting {
    fabric: Arc<Fabric>,
    seed: u64,
    switch_of: Vec<u32>,
    /// The group of each switch, and its place there.
    place_of: Vec<(u32, u32)>,
    first: Vec<u32>,
    shapes: Vec<Arc<GroupShape>>,
    bandwidth: Box<[f64]>,
    /// By two switches of a group: the cables from the first to the second.
    inside: HashMap<(u32, u32), Vec<CableRun>>,
    /// By two groups: the cables from the first to the second, with their ends, and the sum of their numbers so far.
    between: HashMap<(u32, u32), Vec<JoiningRun>>,
}

/// Cables between two groups, the switches at their ends, and the number of cables up to these.
type JoiningRun = (CableRun, (u32, u32), u32);

/// Parallel cables, and the direction in which a route uses them.
#[derive(Debug, Clone)]
struct CableRun {
    cables: Range<CableId>,
    direction: Direction,
}

impl HashedRouting {
    /// Returns the routing of a dragonfly.
    ///
    /// # Errors
    /// The machine is no dragonfly.
    pub fn new(fabric: Arc<Fabric>, seed: u64) -> Result<Self, InputError> {
        let dragonfly = dragonfly_of(&fabric, "minimal-hashed")?;
        let below = fabric.links() - dragonfly.cables();
        let mut inside: HashMap<_, Vec<_>> = HashMap::new();
        let mut between: HashMap<_, Vec<JoiningRun>> = HashMap::new();
        for (cable, run) in dragonfly.runs() {
            let (a, b) = run.between;
            let cables = below + cable..below + cable + run.count;
            for (from, to, direction) in [(a, b, Direction::Up), (b, a, Direction::Down)] {
                let groups = (dragonfly.group_of(from), dragonfly.group_of(to));
                let run = CableRun { cables: cables.clone(), direction };
                if groups.0 == groups.1 {
                    inside.entry((from, to)).or_default().push(run);
                } else {
                    let of_groups = between.entry(groups).or_default();
                    let before = of_groups.last().map_or(0, |last| last.2);
                    of_groups.push((run, (from, to), before + cables.len() as u32));
                }
            }
        }
        let place = |switch| (dragonfly.group_of(switch), dragonfly.place_of(switch));
        Ok(HashedRouting {
            seed,
            switch_of: (0..fabric.nodes())
                .map(|node| dragonfly.switch_of_leaf(fabric.group(1, node)))
                .collect(),
            place_of: (0..dragonfly.switches()).map(place).collect(),
            first: (0..dragonfly.groups())
                .map(|group| dragonfly.switches_of(group).start)
                .collect(),
            shapes: dragonfly.shapes().to_vec(),
            bandwidth: (0..fabric.links()).map(|link| fabric.bandwidth(link)).collect(),
            inside,
            between,
            fabric,
        })
    }

    /// Appends a way between two switches of a group. Each is as likely as any other, parallel cables apart.
    fn go(&self, from: u32, to: u32, draw: &mut Draw, path: &mut Vec<Channel>) {
        let (group, place) = self.place_of[to as usize];
        let (shape, first) = (&self.shapes[group as usize], self.first[group as usize]);
        let cables = |a: u32, b: u32| {
            let runs = self.inside.get(&(a, b)).map_or(&[][..], Vec::as_slice);
            runs.iter().map(|run| run.cables.len() as u32).sum::<u32>()
        };
        let mut at = from;
        while at != to {
            let here = (at - first) as usize;
            // The number of ways that begin with each neighbour is in proportion to the part of the traffic there.
            let mut next: Vec<(u32, f64)> = Vec::new();
            let weight = |a: usize, b: usize| f64::from(cables(first + a as u32, first + b as u32));
            shape.divide(here, place as usize, &weight, &mut |a, b, part| {
                if a == here {
                    next.push((first + b as u32, part));
                }
            });
            let mut left = draw.share();
            let chosen = next.iter().find(|&&(_, part)| {
                left -= part;
                left < 0.0
            });
            let Some(&(neighbour, _)) = chosen.or(next.last()) else { return };
            let nth = draw.below(cables(at, neighbour));
            let runs = self.inside.get(&(at, neighbour)).map_or(&[][..], Vec::as_slice);
            path.extend(nth_of(runs.iter(), nth));
            at = neighbour;
        }
    }
}

/// The channel of the cable with this number among all of some runs.
fn nth_of<'a>(runs: impl Iterator<Item = &'a CableRun>, nth: u32) -> Option<Channel> {
    let all = runs.flat_map(|run| run.cables.clone().map(|cable| (cable, run.direction)));
    let link = |(cable, direction)| channel_of(Link { cable, direction });
    all.map(link).nth(nth as usize)
}

/// Numbers that depend only on where they begin.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = scramble(self.0);
        ((u128::from(self.0) * u128::from(limit)) >> 64) as u32
    }

    /// A number from 0 to 1.
    fn share(&mut self) -> f64 {
        self.0 = scramble(self.0);
        self.0 as f64 / 2.0f64.powi(64)
    }
}

impl Routing for HashedRouting {
    fn name(&self) -> &'static str {
        "minimal-hashed"
    }

    fn fabric(&self) -> &Arc<Fabric> {
        &self.fabric
    }

    fn capacity(&self, channel: Channel) -> f64 {
        self.bandwidth[channel as usize / 2]
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
        // A node's own link is the same for all of its routes.
        let own = |node: NodeIndex, direction| {
            let links = self.fabric.uplinks(0, node);
            let mut there = links.filter(|&cable| self.fabric.has_cable(cable));
            there.next().map(|cable| channel_of(Link { cable, direction }))
        };
        let ends = own(from, Direction::Up).zip(own(to, Direction::Down));
        let (up, down) = ends.ok_or(Unreachable { from, to })?;
        let (a, b) = (self.switch_of[from as usize], self.switch_of[to as usize]);
        let (of_a, of_b) = (self.place_of[a as usize].0, self.place_of[b as usize].0);
        let mut draw = Draw(scramble(self.seed) ^ u64::from(a) << 32 ^ u64::from(to));
        path.push(up);
        if of_a == of_b {
            self.go(a, b, &mut draw, path);
        } else if let Some(cables) = self.between.get(&(of_a, of_b)) {
            let nth = draw.below(cables.last().map_or(0, |last| last.2));
            let place = cables.partition_point(|run| run.2 <= nth);
            if let Some((run, (gate, arrival), until)) = cables.get(place) {
                self.go(a, *gate, &mut draw, path);
                let nth = nth + run.cables.len() as u32 - until;
                path.extend(nth_of([run].into_iter(), nth));
                self.go(*arrival, b, &mut draw, path);
            }
        }
        path.push(down);
        Ok(())
    }
}
