use topolane_fabric::NodeIndex;

use super::{Cost, cheapest};
use crate::{
    Choice, FreeSlots, GpuSet, Occupancy, Policy, Refusal, Request, Share, Traits, WHOLE_GPU,
};

/// Takes the node with the least left after the slot: the sum over its resources, each relative to the most that any
/// node has. This is the usual baseline of GPU schedulers. The occupancy chooses the GPUs on the node.
#[derive(Debug, Clone, Copy, Default)]
pub struct BestFit;

impl Policy for BestFit {
    fn name(&self) -> &'static str {
        "best-fit"
    }

    fn traits(&self) -> Traits {
        Traits::COUNT_ONLY
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<Choice, Refusal> {
        let taken = taken(request, occupancy);
        let cost = |node| Cost::new(left(occupancy, node) - taken, 0.0, GpuSet::EMPTY);
        Ok(cheapest(request, free, cost))
    }
}

/// What a slot takes, in the unit of [`left`]. It is the same on every node. For whole nodes it is 0, so the smallest
/// node wins.
fn taken(request: &Request, occupancy: &Occupancy) -> f64 {
    let Share::Part(amounts) = &request.share else { return 0.0 };
    let fabric = occupancy.fabric();
    let (names, most) = (fabric.resources().names(), fabric.most_of_a_node());
    let counted = names.iter().zip(amounts.iter()).zip(most);
    let others = counted.filter(|((name, _), most)| !is_gpu(name) && **most > 0);
    let others: f64 = others.map(|((_, amount), &most)| amount as f64 / most as f64).sum();
    others + amounts.gpu_thousandths(fabric.resources()) as f64 / most_gpus(occupancy)
}

/// What is free on a node: the sum over resources, each relative to the most that any node has.
pub(super) fn left(occupancy: &Occupancy, node: NodeIndex) -> f64 {
    let fabric = occupancy.fabric();
    let (names, most) = (fabric.resources().names(), fabric.most_of_a_node());
    let counted = names.iter().zip(occupancy.free(node)).zip(most);
    let others = counted.filter(|((name, _), most)| !is_gpu(name) && **most > 0);
    let others: f64 = others.map(|((_, &free), &most)| free as f64 / most as f64).sum();
    let gpus: u64 = occupancy.gpus_free(node).iter().map(|&free| u64::from(free)).sum();
    others + gpus as f64 / most_gpus(occupancy)
}

fn is_gpu(name: &str) -> bool {
    name == "gpu" || name.starts_with("gpu:")
}

/// Thousandths of GPUs on the node with the most GPUs; at least 1.
fn most_gpus(occupancy: &Occupancy) -> f64 {
    let fabric = occupancy.fabric();
    let gpu = fabric.resources().index("gpu");
    let most = gpu.map_or(0, |gpu| fabric.most_of_a_node()[gpu]);
    (most as f64 * f64::from(WHOLE_GPU)).max(1.0)
}
