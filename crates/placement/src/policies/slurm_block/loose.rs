//! Places requests on nodes outside all domains.

use topolane_fabric::NodeIndex;

use super::part::is_tighter;
use crate::free_slots::FreeSlots;

/// Returns slots for a request that can use no node of a domain, from runs of consecutive free nodes. It takes the
/// tightest run that holds all that is left, otherwise the longest; among equals the first. Slurm does this for nodes
/// outside its blocks.
pub(super) fn take_runs(free: &FreeSlots<'_>, wanted: u32) -> Vec<NodeIndex> {
    let mut runs: Vec<(NodeIndex, NodeIndex, u32)> = Vec::new();
    for node in free.nodes() {
        let slots = free.count(0, node);
        match runs.last_mut() {
            Some((_, last, count)) if *last + 1 == node => {
                *last = node;
                *count = count.saturating_add(slots);
            }
            _ => runs.push((node, node, slots)),
        }
    }
    let mut nodes = Vec::with_capacity(wanted as usize);
    while !runs.is_empty() && nodes.len() < wanted as usize {
        let left = wanted - nodes.len() as u32;
        let best = (1..runs.len()).fold(0, |best, next| {
            if is_tighter(runs[next].2, runs[best].2, left) { next } else { best }
        });
        let (first, last, _) = runs.remove(best);
        for node in first..=last {
            let left = wanted - nodes.len() as u32;
            nodes.extend(std::iter::repeat_n(node, free.count(0, node).min(left) as usize));
        }
    }
    nodes.sort_unstable();
    nodes
}
