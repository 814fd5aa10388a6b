//! Finds routes for a permutation over owned cables, by exhaustive search and by linear programming. Neither uses edge
//! colouring.
#![allow(dead_code)]

use std::collections::BTreeMap;

use microlp::{ComparisonOp, OptimizationDirection, Problem, Variable};
use topolane_fabric::{CableId, Fabric, GroupIndex, NodeIndex};

/// A job's nodes by leaf, and its cables; parallel cables are counted together.
#[derive(Debug, Clone)]
pub struct Job {
    /// The pod of every leaf, as an index into `core`.
    pub pod: Vec<usize>,
    /// The number of nodes on every leaf.
    pub nodes: Vec<u32>,
    /// The number of cables from every leaf to every second-level switch.
    pub up: Vec<Vec<u32>>,
    /// The number of cables of every pod, from every second-level switch to each of its core switches.
    pub core: Vec<Vec<Vec<u32>>>,
}

/// The number of flows from each leaf to each leaf.
pub type Flows = Vec<Vec<u32>>;

impl Job {
    pub fn of(fabric: &Fabric, nodes: &[NodeIndex], links: &[CableId]) -> Self {
        let mut on: BTreeMap<GroupIndex, u32> = BTreeMap::new();
        for &node in nodes {
            *on.entry(fabric.group(1, node)).or_default() += 1;
        }
        let pod_of = |leaf| if fabric.depth() > 2 { fabric.parent(1, leaf) } else { 0 };
        let mut pods: Vec<GroupIndex> = on.keys().map(|&leaf| pod_of(leaf)).collect();
        pods.dedup();
        let cabling = |level| if level < fabric.depth() { fabric.cabling(0, level).parents } else { 0 } as usize;
        let (planes, cores) = (cabling(1), cabling(2));
        let mut job = Job {
            pod: on.keys().map(|&leaf| pods.binary_search(&pod_of(leaf)).unwrap()).collect(),
            nodes: on.values().copied().collect(),
            up: vec![vec![0; planes]; on.len()],
            core: vec![vec![vec![0; cores]; planes]; pods.len()],
        };
        let leaves: Vec<GroupIndex> = on.into_keys().collect();
        for &link in links {
            match fabric.cable_place(link) {
                Some((1, leaf, _, parent, _)) => {
                    if let Ok(at) = leaves.binary_search(&leaf) {
                        job.up[at][parent as usize] += 1;
                    }
                }
                Some((2, pod, plane, parent, _)) => {
                    if let Ok(at) = pods.binary_search(&pod) {
                        job.core[at][plane as usize][parent as usize] += 1;
                    }
                }
                _ => {}
            }
        }
        job
    }

    pub fn leaves(&self) -> usize {
        self.nodes.len()
    }

    /// The flows of all permutations of the nodes, at most `most`: all tables with these row and column sums.
    pub fn permutations(&self, most: usize) -> Vec<Flows> {
        let mut all = Vec::new();
        let mut columns = self.nodes.clone();
        let mut table = vec![vec![0; self.leaves()]; self.leaves()];
        self.rows(0, 0, self.nodes[0], &mut columns, &mut table, &mut all, most);
        all
    }

    #[allow(clippy::too_many_arguments)]
    fn rows(
        &self,
        row: usize,
        column: usize,
        left: u32,
        columns: &mut [u32],
        table: &mut Flows,
        all: &mut Vec<Flows>,
        most: usize,
    ) {
        if all.len() >= most {
            return;
        }
        if column == self.leaves() {
            match (left, row + 1 == self.leaves()) {
                (0, true) => all.push(table.clone()),
                (0, false) => self.rows(row + 1, 0, self.nodes[row + 1], columns, table, all, most),
                _ => {}
            }
            return;
        }
        for flows in 0..=left.min(columns[column]) {
            columns[column] -= flows;
            table[row][column] = flows;
            self.rows(row, column + 1, left - flows, columns, table, all, most);
            table[row][column] = 0;
            columns[column] += flows;
        }
    }

    /// The flows of one permutation; `to` has the receiver of each node.
    pub fn flows(&self, to: &[usize]) -> Flows {
        let leaf_of: Vec<usize> = self
            .nodes
            .iter()
            .enumerate()
            .flat_map(|(leaf, &n)| (0..n).map(move |_| leaf))
            .collect();
        let mut flows = vec![vec![0; self.leaves()]; self.leaves()];
        for (from, &to) in to.iter().enumerate() {
            flows[leaf_of[from]][leaf_of[to]] += 1;
        }
        flows
    }

    /// The share of full rate that all flows can have at once if each may be split over several routes, by linear
    /// programming. A flow at full rate takes `leaf` of a leaf's cable and `core` of a pod's cable.
    pub fn spread(&self, flows: &Flows, leaf: f64, core: f64) -> f64 {
        let mut problem = Problem::new(OptimizationDirection::Maximize);
        let share = problem.add_var(1.0, (0.0, 1.0));
        let mut loads: BTreeMap<Cable, Vec<(Variable, f64)>> = BTreeMap::new();
        for (from, to) in pairs(flows) {
            let mut split = vec![(share, -f64::from(flows[from][to]))];
            for way in self.ways(from, to) {
                let part = problem.add_var(0.0, (0.0, f64::INFINITY));
                split.push((part, 1.0));
                for cable in self.cables(from, to, way) {
                    let taken = if cable.3.is_none() { leaf } else { core };
                    loads.entry(cable).or_default().push((part, taken));
                }
            }
            problem.add_constraint(split, ComparisonOp::Eq, 0.0);
        }
        for (cable, load) in loads {
            problem.add_constraint(load, ComparisonOp::Le, f64::from(self.room(cable)));
        }
        problem.solve().unwrap().objective()
    }

    /// All routes between two leaves, over any switches.
    fn ways(&self, from: usize, to: usize) -> Vec<Way> {
        let (p, q) = (self.pod[from], self.pod[to]);
        let cores =
            |plane: usize| (0..self.core[p][plane].len()).map(move |core| (plane, Some(core)));
        let planes = 0..self.up[from].len();
        if p == q {
            planes.map(|plane| (plane, None)).collect()
        } else {
            planes.flat_map(cores).collect()
        }
    }

    /// The bundles of parallel cables that a flow uses on a route, each with its direction (out 0, in 1).
    fn cables(&self, from: usize, to: usize, (plane, core): Way) -> Vec<Cable> {
        let mut cables = vec![(0, from, plane, None), (1, to, plane, None)];
        if core.is_some() {
            cables.extend([(0, self.pod[from], plane, core), (1, self.pod[to], plane, core)]);
        }
        cables
    }

    fn room(&self, (_, group, plane, core): Cable) -> u32 {
        core.map_or(self.up[group][plane], |core| self.core[group][plane][core])
    }

    /// Whether every flow can have a single route, with at most `most` flows on a cable in each direction; `None` if
    /// `steps` steps do not decide it.
    pub fn routes(&self, flows: &Flows, most: u32, steps: u64) -> Option<bool> {
        let mut rooms = BTreeMap::new();
        for (from, to) in pairs(flows) {
            for cable in self.ways(from, to).into_iter().flat_map(|way| self.cables(from, to, way))
            {
                rooms.insert(cable, most * self.room(cable));
            }
        }
        let left = pairs(flows).map(|(from, to)| (from, to, flows[from][to])).collect();
        Search { job: self, rooms, left, steps }.run()
    }
}

/// A route: a plane and, between pods, one of its core switches.
type Way = (usize, Option<usize>);
/// A bundle of parallel cables: direction, leaf or pod, plane, core switch.
type Cable = (u8, usize, usize, Option<usize>);

/// Pairs of leaves with flows from the first to the second.
fn pairs(flows: &Flows) -> impl Iterator<Item = (usize, usize)> + '_ {
    let all = (0..flows.len()).flat_map(|from| (0..flows.len()).map(move |to| (from, to)));
    all.filter(|&(from, to)| from != to && flows[from][to] > 0)
}

/// The capacity left on every bundle, and the flows without a route.
struct Search<'a> {
    job: &'a Job,
    rooms: BTreeMap<Cable, u32>,
    left: Vec<(usize, usize, u32)>,
    steps: u64,
}

impl Search<'_> {
    /// Assigns a route to the flow that has the fewest, and backtracks if that fails.
    fn run(&mut self) -> Option<bool> {
        let mut fewest: Option<(usize, Vec<Way>)> = None;
        for (at, &(from, to, flows)) in self.left.iter().enumerate() {
            if flows > 0 {
                let mut ways = self.job.ways(from, to);
                ways.retain(|&way| {
                    self.job.cables(from, to, way).iter().all(|cable| self.rooms[cable] > 0)
                });
                if fewest.as_ref().is_none_or(|(_, least)| ways.len() < least.len()) {
                    fewest = Some((at, ways));
                }
            }
        }
        let Some((at, ways)) = fewest else { return Some(true) };
        self.steps = self.steps.checked_sub(1)?;
        let (from, to, _) = self.left[at];
        self.left[at].2 -= 1;
        for way in ways {
            let cables = self.job.cables(from, to, way);
            for cable in &cables {
                *self.rooms.get_mut(cable).unwrap() -= 1;
            }
            let found = self.run();
            for cable in &cables {
                *self.rooms.get_mut(cable).unwrap() += 1;
            }
            if found != Some(false) {
                return found;
            }
        }
        self.left[at].2 += 1;
        Some(false)
    }
}
