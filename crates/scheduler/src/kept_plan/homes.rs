//! Where a job must lie.

use std::ops::Range;

use topolane_placement::{Occupancy, Policy, Request};

/// Runs of leaves one of which must hold the whole job, ascending.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Homes {
    pub runs: Vec<Range<u32>>,
    /// Whether each is one leaf.
    pub are_leaves: bool,
    /// For each leaf how many of the runs end before it.
    before: Vec<usize>,
}

impl Homes {
    /// Where a policy places a request; `None` if it does not tell, or if it divides the request.
    pub fn of(request: &Request, policy: &dyn Policy, occupancy: &Occupancy) -> Option<Self> {
        let fabric = occupancy.fabric();
        let homes = policy.homes(request, occupancy).filter(|homes| homes.part == request.nodes)?;
        let leaf = |node: Option<&u32>| node.map(|&node| fabric.group(1, node));
        let run = |set: &Vec<u32>| Some(leaf(set.iter().min())?..leaf(set.iter().max())? + 1);
        let mut runs: Vec<Range<u32>> = homes.sets.iter().filter_map(run).collect();
        runs.sort_unstable_by_key(|run| run.start);
        // Of those that overlap, one run that holds both.
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
        Some(Homes { runs, are_leaves, before })
    }

    /// The indices of the runs that have some of these leaves.
    pub fn with(&self, leaves: &Range<u32>) -> Range<usize> {
        let first = self.before.get(leaves.start as usize).copied().unwrap_or_default();
        let later = self.runs[first..].partition_point(|run| run.start < leaves.end);
        first..first + later
    }
}
