//! Measures how many GPUs jobs hold.

use topolane_fabric::{Fabric, NodeIndex};
use topolane_placement::{GpuSet, Placement, Share};

use crate::simulate::Outcome;
use crate::workload::Workload;

/// The share of all GPUs that jobs held, from the first submission to the last end. `None` for a machine without GPUs
/// or a run of no duration. A whole node counts with all its GPUs, a part of a GPU with its fraction.
pub(crate) fn allocated_gpus(fabric: &Fabric, outcome: &Outcome, makespan: f64) -> Option<f64> {
    let gpu = fabric.resources().index("gpu")?;
    let of_node = |node: u32| fabric.counts(node)[gpu] as f64;
    let all: f64 = (0..fabric.nodes()).map(of_node).sum();
    let held = |placement: &Placement| match placement.share() {
        Share::Whole => placement.held().map(of_node).sum(),
        Share::Part(amounts) => {
            amounts.gpu_thousandths(fabric.resources()) as f64 / 1000.0
                * placement.held().count() as f64
        }
    };
    let used: f64 =
        outcome.jobs.iter().map(|job| held(&job.placement) * (job.finish - job.start)).sum();
    (all > 0.0 && makespan > 0.0).then(|| used / (all * makespan))
}

/// The offered load of GPUs: GPU-seconds that jobs ask for, divided by (GPUs x span of submissions). `None` for a
/// machine without GPUs, or if all jobs are submitted at once. A whole node counts as the machine's mean number of GPUs
/// per node.
pub(crate) fn gpu_load(fabric: &Fabric, workload: &Workload) -> Option<f64> {
    let gpu = fabric.resources().index("gpu")?;
    let all: f64 = (0..fabric.nodes()).map(|node| fabric.counts(node)[gpu] as f64).sum();
    let per_node = all / f64::from(fabric.nodes());
    let of_node = |share: &Share| match share {
        Share::Whole => per_node,
        Share::Part(amounts) => amounts.gpu_thousandths(&workload.resources) as f64 / 1000.0,
    };
    let work: f64 =
        workload.jobs.iter().map(|job| f64::from(job.nodes) * of_node(&job.share) * job.run).sum();
    let offered = work / (all * workload.span());
    offered.is_finite().then_some(offered)
}

/// The GPUs on each of a job's nodes, in ascending order of nodes: `0-3|0-3|1,4`. Empty if they are not named.
pub(crate) fn gpus_of(placement: &Placement) -> String {
    let of_node = |gpus: GpuSet| {
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        for gpu in gpus.iter() {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == gpu => *last = gpu,
                _ => ranges.push((gpu, gpu)),
            }
        }
        let shown = ranges.iter().map(|&(first, last)| {
            if first == last { first.to_string() } else { format!("{first}-{last}") }
        });
        shown.collect::<Vec<_>>().join(",")
    };
    let in_rank_order = placement.nodes().iter().copied().zip(placement.gpus().iter().copied());
    let mut nodes: Vec<(NodeIndex, GpuSet)> = in_rank_order.collect();
    nodes.sort_unstable_by_key(|&(node, _)| node);
    nodes.into_iter().map(|(_, gpus)| of_node(gpus)).collect::<Vec<_>>().join("|")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use topolane_fabric::preset;

    use super::*;

    #[test]
    fn gpus_stand_in_the_order_of_the_nodes_that_jobs_csv_names() {
        let fabric = Fabric::build(&preset("nvl72(units=1)").unwrap().unwrap()).unwrap();
        let placement = Placement::new(&fabric, vec![5, 2], Share::Whole);
        let placement = placement.with_gpus(vec![GpuSet::range(0, 2), GpuSet::one(3)]);
        assert_eq!(gpus_of(&placement), "3|0-1");
    }
}
