//! Random jobs that own links, by the condition of docs/explanation/dedicated-links.md.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use topolane_fabric::{Fabric, JobLinks, scramble};

/// Random draws that depend on a seed only, so that a failing case can be made smaller.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = scramble(self.0);
        (self.0 % bound.max(1) as u64) as usize
    }

    fn some<T: Clone>(&mut self, from: &[T]) -> Vec<T> {
        let count = 1 + self.below(from.len());
        let mut left = from.to_vec();
        (0..count).map(|_| left.swap_remove(self.below(left.len()))).collect()
    }
}

/// The nodes and the cables between switches that no job has.
struct Free {
    fabric: Arc<Fabric>,
    nodes: BTreeSet<u32>,
    cables: HashSet<u32>,
}

type Uplinks = Vec<(u32, u32)>;

impl Free {
    fn of(fabric: &Arc<Fabric>) -> Free {
        let between = |id: &u32| fabric.cable_place(*id).is_some_and(|at| at.0 > 0);
        let cables = (0..fabric.links()).filter(|&id| fabric.has_cable(id)).filter(between);
        let hangs = |&node: &u32| fabric.uplinks(0, node).any(|id| fabric.has_cable(id));
        Free {
            fabric: Arc::clone(fabric),
            nodes: (0..fabric.nodes()).filter(hangs).collect(),
            cables: cables.collect(),
        }
    }

    /// The uplinks that all these switches have free. An uplink is a parent and the place of a cable among the free
    /// cables to it.
    fn common(&self, switches: &[(usize, u32, u32)]) -> Uplinks {
        let of = |&(level, group, number): &(usize, u32, u32)| -> Uplinks {
            let cabling = self.fabric.cabling(0, level);
            let free = |parent: u32| {
                let cable = |cable| self.fabric.cable(level, group, number, parent, cable);
                (0..cabling.cables).filter_map(cable).filter(|id| self.cables.contains(id)).count()
            };
            (0..cabling.parents).flat_map(|a| (0..free(a) as u32).map(move |j| (a, j))).collect()
        };
        let mut uplinks = of(&switches[0]);
        for switch in &switches[1..] {
            let others = of(switch);
            uplinks.retain(|uplink| others.contains(uplink));
        }
        uplinks
    }

    /// Takes a free cable to the parent of each of these uplinks. Returns the cables.
    fn take(&mut self, (level, group, number): (usize, u32, u32), uplinks: &Uplinks) -> Vec<u32> {
        let mut taken = Vec::new();
        for &(parent, _) in uplinks {
            let cables = self.fabric.cabling(0, level).cables;
            let mut ids =
                (0..cables).filter_map(|j| self.fabric.cable(level, group, number, parent, j));
            let id = ids.find(|id| self.cables.contains(id)).unwrap();
            self.cables.remove(&id);
            taken.push(id);
        }
        taken
    }

    /// A job on some free nodes that owns the links that the condition wants: the same planes at every leaf, and for
    /// each plane the same core uplinks at every pod. One leaf, or one pod, owns only a part of them. `None` if there
    /// are no such links or nodes.
    fn job(&mut self, draws: &mut Draws, name: String) -> Option<JobLinks> {
        let fabric = Arc::clone(&self.fabric);
        let level = 1 + draws.below(fabric.depth());
        let home = draws.below(fabric.groups(level) as usize) as u32;
        let inside: Vec<u32> = self.nodes.range(fabric.node_range(level, home)).copied().collect();
        if inside.is_empty() {
            return None;
        }
        let nodes = draws.some(&inside);
        let groups = |level| -> Vec<u32> {
            let of = nodes.iter().map(|&node| fabric.group(level, node));
            of.collect::<BTreeSet<u32>>().into_iter().collect()
        };
        let (leaves, pods) = (groups(1), groups(2.min(fabric.depth())));
        let mut links = Vec::new();
        if leaves.len() > 1 {
            let all: Vec<_> = leaves.iter().map(|&leaf| (1, leaf, 0)).collect();
            let common = self.common(&all);
            if common.is_empty() {
                return None;
            }
            let set = draws.some(&common);
            let planes: BTreeSet<u32> = set.iter().map(|uplink| uplink.0).collect();
            let mut cores = BTreeMap::new();
            if pods.len() > 1 {
                for &plane in &planes {
                    let all: Vec<_> = pods.iter().map(|&pod| (2, pod, plane)).collect();
                    let common = self.common(&all);
                    if common.is_empty() {
                        return None;
                    }
                    cores.insert(plane, draws.some(&common));
                }
            }
            let short = draws.below(leaves.len().max(pods.len()));
            for (place, &leaf) in leaves.iter().enumerate() {
                let part = pods.len() == 1 && place == short;
                let set = if part { draws.some(&set) } else { set.clone() };
                links.extend(self.take((1, leaf, 0), &set));
            }
            for (place, &pod) in pods.iter().enumerate() {
                for (&plane, set) in &cores {
                    let set = if place == short { draws.some(set) } else { set.clone() };
                    links.extend(self.take((2, pod, plane), &set));
                }
            }
        }
        for node in &nodes {
            self.nodes.remove(node);
        }
        Some(JobLinks { name, nodes, links })
    }
}

/// Up to eight jobs that share no nodes and no links.
pub fn jobs_on(fabric: &Arc<Fabric>, seed: u64) -> Vec<JobLinks> {
    let (mut free, mut draws) = (Free::of(fabric), Draws(seed));
    (0..8).filter_map(|number| free.job(&mut draws, number.to_string())).collect()
}
