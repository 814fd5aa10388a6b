//! Random small trees, with nodes and cables of random jobs.
#![allow(dead_code)]

use std::sync::Arc;

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use topolane_fabric::{CableId, Fabric, MissingCable, NodeIndex, pgft};

/// PGFT(children; parents; cables) of two or three levels, with some cables missing.
#[derive(Debug, Clone)]
pub struct Tree {
    pub children: Vec<u32>,
    pub parents: Vec<u32>,
    pub cables: Vec<u32>,
    pub missing: Vec<MissingCable>,
}

impl Tree {
    pub fn random(rng: &mut ChaCha8Rng) -> Self {
        let depth = if rng.random_bool(0.4) { 2 } else { 3 };
        let twice = |rng: &mut ChaCha8Rng| if rng.random_bool(0.25) { 2 } else { 1 };
        let mut tree = Tree {
            children: vec![rng.random_range(1..4), rng.random_range(2..5), rng.random_range(2..4)],
            parents: vec![1, rng.random_range(1..5), rng.random_range(1..4)],
            cables: vec![1, twice(rng), twice(rng)],
            missing: Vec::new(),
        };
        for part in [&mut tree.children, &mut tree.parents, &mut tree.cables] {
            part.truncate(depth);
        }
        if rng.random_bool(0.3) {
            let level = rng.random_range(1..depth);
            let (mut group, mut switch) = (rng.random_range(0..tree.children[depth - 1]), 0);
            if level == 2 {
                switch = rng.random_range(0..tree.parents[1]);
            } else if depth == 3 {
                group *= tree.children[1];
            }
            let parent = rng.random_range(0..tree.parents[level]);
            tree.missing.push(MissingCable { level, group, switch, parent, cable: 0 });
        }
        tree
    }

    pub fn fabric(&self) -> Arc<Fabric> {
        let mut description = pgft("n", &self.children, &self.parents, &self.cables);
        description.sites[0].missing.clone_from(&self.missing);
        Arc::new(Fabric::build(&description).unwrap())
    }

    /// The number of uplinks per node, at most 1, of a leaf and (in a tree of three levels) of a pod.
    pub fn shares(&self) -> [f64; 2] {
        let share = |up: u32, below: u32| (f64::from(up) / f64::from(below)).min(1.0);
        let leaf = self.parents[1] * self.cables[1];
        let above = self.parents.get(2).map(|parents| self.parents[1] * parents * self.cables[2]);
        let pod = above.map_or(1.0, |up| share(up, self.children[0] * self.children[1]));
        [share(leaf, self.children[0]), pod]
    }
}

/// The number of cables of a switch to each parent. Parallel cables are equivalent.
type Counts = Vec<u32>;

fn some_of(rng: &mut ChaCha8Rng, of: &Counts, odds: f64) -> Counts {
    of.iter().map(|&cables| (0..cables).filter(|_| rng.random_bool(odds)).count() as u32).collect()
}

/// Takes `left` cables, one to each parent before the second one to any.
fn first_of(of: &Counts, mut left: u32) -> Counts {
    let mut counts = vec![0; of.len()];
    for most in 1..=of.iter().copied().max().unwrap_or(0) {
        for (count, &there) in counts.iter_mut().zip(of) {
            let more = u32::from(left > 0 && *count < most.min(there));
            *count += more;
            left -= more;
        }
    }
    counts
}

/// Random nodes and cables of a job. Mostly all switches of a level own one set and a few own a part of it, or each set
/// contains the smaller ones; sometimes the sets are arbitrary.
pub fn random_job(
    rng: &mut ChaCha8Rng,
    fabric: &Fabric,
    most: u32,
) -> (Vec<NodeIndex>, Vec<CableId>) {
    let mut nodes: Vec<NodeIndex> = (0..fabric.nodes()).collect();
    nodes.shuffle(rng);
    nodes.truncate(rng.random_range(2..most.max(2) + 1) as usize);
    nodes.sort_unstable();
    let mut leaves: Vec<u32> = nodes.iter().map(|&node| fabric.group(1, node)).collect();
    leaves.dedup();
    let mut links = Vec::new();
    let odd_one = rng.random_bool(0.3);
    let mut switches: Vec<_> = leaves.iter().map(|&leaf| (1, leaf, 0)).collect();
    own(rng, fabric, &switches, odd_one, &mut links);
    if fabric.depth() > 2 {
        let mut pods: Vec<u32> = leaves.iter().map(|&leaf| fabric.parent(1, leaf)).collect();
        pods.dedup();
        for plane in 0..fabric.width(0, 2) {
            switches = pods.iter().map(|&pod| (2, pod, plane)).collect();
            own(rng, fabric, &switches, odd_one && plane % 2 == 0, &mut links);
        }
    }
    (nodes, links)
}

fn own(
    rng: &mut ChaCha8Rng,
    fabric: &Fabric,
    switches: &[(usize, u32, u32)],
    odd: bool,
    links: &mut Vec<CableId>,
) {
    let cabling = fabric.cabling(0, switches[0].0);
    let all = vec![cabling.cables; cabling.parents as usize];
    let odds = rng.random_range(0.5..1.0);
    let set = some_of(rng, &all, odds);
    let part = some_of(rng, &set, 0.6);
    let nested = rng.random_bool(0.5);
    for &(level, group, switch) in switches {
        let counts = match rng.random_range(0..10) {
            _ if nested => first_of(&all, rng.random_range(1..=cabling.cables * cabling.parents)),
            0..5 => set.clone(),
            5..7 => part.clone(),
            7 => some_of(rng, &set, 0.7),
            _ if odd => some_of(rng, &all, 0.7),
            _ => set.clone(),
        };
        for (parent, &count) in counts.iter().enumerate() {
            let ids = (0..cabling.cables)
                .filter_map(|cable| fabric.cable(level, group, switch, parent as u32, cable));
            links.extend(ids.filter(|&id| fabric.has_cable(id)).take(count as usize));
        }
    }
}
