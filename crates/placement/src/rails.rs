//! Computes which rails carry the traffic of a job.

use topolane_fabric::{Fabric, NodeIndex};
use topolane_traffic::RailShares;

use crate::gpus::GpuSet;
use crate::placement::Placement;
use crate::request::Share;

/// For each slot of a job, in rank order, the rails that its traffic takes. GPU i sends on rail i. If a node has
/// several GPUs per rail, neighbouring GPUs share one. Whole nodes without GPUs send evenly on all rails. `None` if
/// there is one rail, and for parts of nodes without GPUs: there the routing chooses.
pub fn rails_of(fabric: &Fabric, placement: &Placement) -> Option<Vec<RailShares>> {
    rails_on(fabric, placement.nodes(), placement.share(), placement.gpus())
}

/// As [`rails_of`], for slots on these nodes, with the GPUs of each slot that holds a part of its node.
pub(crate) fn rails_on(
    fabric: &Fabric,
    nodes: &[NodeIndex],
    share: &Share,
    gpus: &[GpuSet],
) -> Option<Vec<RailShares>> {
    let rails = fabric.rails(fabric.site_of_group(0, *nodes.first()?));
    if rails == 1 {
        return None;
    }
    match share {
        Share::Whole => {
            let of_node = |&node: &NodeIndex| {
                let gpus = gpus_of(fabric, node);
                shares(GpuSet::range(0, gpus), gpus, rails)
            };
            Some(nodes.iter().map(of_node).collect())
        }
        Share::Part(_) if gpus.len() < nodes.len() => None,
        Share::Part(_) => {
            let of_slot = |(&node, &gpus)| shares(gpus, gpus_of(fabric, node), rails);
            Some(nodes.iter().zip(gpus).map(of_slot).collect())
        }
    }
}

fn gpus_of(fabric: &Fabric, node: NodeIndex) -> usize {
    let gpu = fabric.resources().index("gpu");
    gpu.map_or(0, |gpu| fabric.counts(node)[gpu] as usize)
}

/// The share of traffic on each rail for some of the `all` GPUs of a node; all rails evenly if the node has no GPU.
fn shares(gpus: GpuSet, all: usize, rails: u32) -> RailShares {
    let mut count = vec![0u32; rails as usize];
    for gpu in gpus.iter() {
        let rail = if all > count.len() { gpu * count.len() / all } else { gpu };
        if let Some(count) = count.get_mut(rail) {
            *count += 1;
        }
    }
    let taken: u32 = count.iter().sum();
    if taken == 0 {
        return (0..rails).map(|rail| (rail, 1.0 / f64::from(rails))).collect();
    }
    let of_rail = |(rail, count)| (rail, f64::from(count) / f64::from(taken));
    (0..rails).zip(count).filter(|&(_, count)| count > 0).map(of_rail).collect()
}
