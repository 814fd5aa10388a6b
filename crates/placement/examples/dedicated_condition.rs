//! Shows what the condition of docs/explanation/dedicated-links.md misses: on tiny trees, it tries every set of cables
//! for every number of nodes on the leaves. Exhaustive search decides whether all permutations have routes; `check` is
//! compared with it.
//!
//! cargo run --release -p topolane-placement --example `dedicated_condition`
#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[path = "../tests/common/reference.rs"]
mod reference;
#[path = "../tests/common/routing.rs"]
mod routing;

use routing::Job;
use topolane_fabric::{CableId, Fabric, NodeIndex, pgft};
use topolane_placement::dedicated::check;

/// Nodes per leaf, leaves, pods; uplinks of a node, a leaf, a second-level switch.
const TREES: [(&[u32], &[u32]); 8] = [
    (&[2, 2], &[1, 4]),
    (&[1, 4], &[1, 3]),
    (&[2, 3], &[1, 3]),
    (&[3, 3], &[1, 3]),
    (&[2, 4], &[1, 3]),
    (&[1, 5], &[1, 3]),
    (&[1, 2, 2], &[1, 2, 2]),
    (&[2, 1, 3], &[1, 2, 2]),
];

/// The results for one tree.
#[derive(Default)]
struct Row {
    sets: u64,
    routable: u64,
    accepted: u64,
    by_common: u64,
    shapes: u64,
    dearer: u64,
}

fn main() {
    println!(
        "| tree | sets of cables | routable | accepted | by (1) to (3) | shapes | that take more cables |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (children, parents) in TREES {
        let fabric =
            Fabric::build(&pgft("n", children, parents, &vec![1; children.len()])).unwrap();
        let mut row = Row::default();
        for nodes in all_shapes(&fabric) {
            row.add(&fabric, &nodes);
        }
        let Row { sets, routable, accepted, by_common, shapes, dearer } = row;
        println!(
            "| {children:?} {parents:?} | {sets} | {routable} | {accepted} | {by_common} | {shapes} | {dearer} |"
        );
    }
}

impl Row {
    /// Adds all sets of cables for these nodes.
    fn add(&mut self, fabric: &Fabric, nodes: &[NodeIndex]) {
        let groups = (1..fabric.depth())
            .flat_map(|level| (0..fabric.groups(level)).map(move |group| (level, group)));
        let links: Vec<CableId> =
            groups.flat_map(|(level, group)| fabric.uplinks(level, group)).collect();
        let permutations = Job::of(fabric, nodes, &[]).permutations(usize::MAX);
        let (mut least, mut least_accepted) = (u32::MAX, u32::MAX);
        for set in 0..1u64 << links.len() {
            let is_in = |&(bit, _): &(usize, &CableId)| set >> bit & 1 == 1;
            let own: Vec<CableId> =
                links.iter().enumerate().filter(is_in).map(|(_, &id)| id).collect();
            let job = Job::of(fabric, nodes, &own);
            let routes =
                permutations.iter().all(|flows| job.routes(flows, 1, u64::MAX) == Some(true));
            let passes = check(fabric, nodes, &own, 1.0).is_ok();
            let in_common = reference::meets(&job, 1.0, 1.0);
            assert!((routes || !passes) && (passes || !in_common));
            self.sets += 1;
            self.routable += u64::from(routes);
            self.accepted += u64::from(passes);
            self.by_common += u64::from(in_common);
            least = if routes { least.min(set.count_ones()) } else { least };
            least_accepted =
                if passes { least_accepted.min(set.count_ones()) } else { least_accepted };
        }
        self.shapes += 1;
        self.dearer += u64::from(least < least_accepted);
    }
}

/// All numbers of nodes on the leaves that do not increase within a pod; on each leaf the first nodes are taken.
fn all_shapes(fabric: &Fabric) -> Vec<Vec<NodeIndex>> {
    let mut shapes = vec![Vec::new()];
    for leaf in 0..fabric.groups(1) {
        let range = fabric.node_range(1, leaf);
        let longer = |shape: Vec<NodeIndex>| {
            let first = range.start;
            (1..=range.len() as u32).map(move |count| {
                let mut shape = shape.clone();
                shape.extend(first..first + count);
                shape
            })
        };
        shapes = shapes.into_iter().flat_map(longer).collect();
    }
    shapes.retain(|nodes| grows_nowhere(fabric, nodes));
    shapes
}

fn grows_nowhere(fabric: &Fabric, nodes: &[NodeIndex]) -> bool {
    let count = |leaf| nodes.iter().filter(|&&node| fabric.group(1, node) == leaf).count();
    (1..fabric.groups(1)).all(|leaf| {
        fabric.parent(1, leaf) != fabric.parent(1, leaf - 1) || count(leaf) <= count(leaf - 1)
    })
}
