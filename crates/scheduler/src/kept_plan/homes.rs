//! The places where a job must lie.

use std::ops::Range;

use topolane_placement::{Occupancy, Policy, Request};

/// Runs of leaves, ascending. One of them must hold the whole job.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LeafRuns {
    pub runs: Vec<Range<u32>>,
    /// Whether every run is a single leaf.
    pub are_leaves: bool,
    /// For each leaf, the number of runs that end before it.
    before: Vec<usize>,
}

impl LeafRuns {
    /// Returns where a policy places a request; `None` if the policy does not say, or splits the request.
    pub fn of(request: &Request, policy: &dyn Policy, occupancy: &Occupancy) -> Option<Self> {
        let fabric = occupancy.fabric();
        let homes = policy.homes(request, occupancy).filter(|homes| homes.part == request.nodes)?;
        let leaf = |node: Option<&u32>| node.map(|&node| fabric.group(1, node));
        let run = |set: &Vec<u32>| Some(leaf(set.iter().min())?..leaf(set.iter().max())? + 1);
        let mut runs: Vec<Range<u32>> = homes.sets.iter().filter_map(run).collect();
        runs.sort_unstable_by_key(|run| run.start);
        // Join runs that overlap.
        runs.dedup_by(|next, run| {
            let overlap = next.start < run.end;
            if overlap {
                run.end = run.end.max(next.end);
            }
            overlap
        });
        let are_leaves = runs.iter().all(|run| run.len() == 1);
        let ends_before = |leaf| runs.partition_point(|run| run.end <= leaf);
        let before = (0..fabric.groups(1)).map(ends_before).collect();
        Some(LeafRuns { runs, are_leaves, before })
    }

    /// The indices of the runs that contain any of these leaves.
    pub fn with(&self, leaves: &Range<u32>) -> Range<usize> {
        let first = self.before.get(leaves.start as usize).copied().unwrap_or_default();
        let later = self.runs[first..].partition_point(|run| run.start < leaves.end);
        first..first + later
    }
}
