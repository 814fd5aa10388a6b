use std::cmp::Reverse;

use crate::{Choice, FreeSlots, Occupancy, Policy, Refusal, Request, Traits};

/// Slurm's topology/tree with `select/linear` (best fit on switches). It takes the lowest switch with enough slots,
/// among these the one with the fewest. Below it, it takes the tightest leaf that holds all that is left, otherwise the
/// leaf with most slots, and so on.
#[derive(Debug, Clone, Copy, Default)]
pub struct SlurmTree;

impl Policy for SlurmTree {
    fn name(&self) -> &'static str {
        "slurm-tree"
    }

    fn traits(&self) -> Traits {
        Traits::COUNT_ONLY
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        _: &Occupancy,
    ) -> Result<Choice, Refusal> {
        let fabric = free.fabric();
        let lowest = (1..=fabric.depth()).find_map(|level| {
            (0..fabric.groups(level))
                .filter(|&group| free.count(level, group) >= request.nodes)
                .min_by_key(|&group| free.count(level, group))
                .map(|group| fabric.node_range(level, group))
        });
        // If no single site has enough slots, use the whole machine: its sites are joined by a WAN.
        let range = lowest.unwrap_or(0..fabric.nodes());
        let first = fabric.group(1, range.start);
        let mut leaves: Vec<(u32, u32)> = (first..=fabric.group(1, range.end - 1))
            .map(|leaf| (free.count(1, leaf), leaf))
            .collect();
        leaves.sort_by_key(|&(slots, leaf)| (Reverse(slots), leaf));
        let mut nodes = Vec::with_capacity(request.nodes as usize);
        let mut next = 0;
        while nodes.len() < request.nodes as usize {
            let left = request.nodes - nodes.len() as u32;
            // The tightest leaf that holds the rest; the first among equals.
            let holding = next + leaves[next..].partition_point(|&(slots, _)| slots >= left);
            let tightest = match holding {
                0 => 0,
                end if end == next => next,
                end => {
                    leaves[next..].partition_point(|&(slots, _)| slots > leaves[end - 1].0) + next
                }
            };
            free.take(1, leaves[tightest].1, left, &mut nodes);
            next += 1;
        }
        nodes.sort_unstable();
        Ok(Choice::nodes(nodes))
    }
}
