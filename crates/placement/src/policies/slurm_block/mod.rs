mod loose;
mod part;

use std::borrow::Cow;

use topolane_fabric::{BlockIndex, Fabric, NodeIndex};

use self::loose::take_runs;
use self::part::{BlockSizes, JobPart};
use crate::homes::outside;
use crate::{Choice, FreeSlots, Homes, Occupancy, Policy, Refusal, Request, Traits};

/// Slurm's topology/block, as Slurm 24.11 applies it to whole nodes of one weight.
///
/// The base blocks are the domains of the machine, or the leaves if it has no domains. A block is 1, 2, 4, ...
/// neighbouring base blocks, as the sizes permit ([`Fabric::block_sizes`](topolane_fabric::Fabric::block_sizes)). A job
/// goes into one block of the smallest size that could hold it. Among those with enough free nodes it takes the one
/// with the fewest; among equals the last. A job with segments is placed segment by segment, each in one base block.
/// Nodes outside all domains are given only to requests that can use no others, in runs of consecutive nodes.
#[derive(Debug, Clone, Copy, Default)]
pub struct SlurmBlock;

impl Policy for SlurmBlock {
    fn name(&self) -> &'static str {
        "slurm-block"
    }

    fn traits(&self) -> Traits {
        Traits { depends_only_on_size: true, ..Traits::NONE }
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        _: &Occupancy,
    ) -> Result<Choice, Refusal> {
        let counts = free.in_blocks();
        let base = base_blocks(free.fabric(), &counts);
        if base.iter().all(|&count| count == 0) {
            return Ok(Choice::nodes(take_runs(free, request.nodes)));
        }
        let mut nodes = Vec::with_capacity(request.nodes as usize);
        let taken = lay(request, free.fabric(), base)?;
        for same in taken.chunk_by(|one, next| one.0 == next.0) {
            let count = same.iter().map(|taken| taken.1).sum();
            free.take_in_block(same[0].0 as BlockIndex, count, &mut nodes);
        }
        // Slurm numbers ranks by node, regardless of the segment of each node.
        nodes.sort_unstable();
        Ok(Choice::nodes(nodes))
    }

    fn homes(&self, request: &Request, occupancy: &Occupancy) -> Option<Homes> {
        if request.stacked {
            return None;
        }
        let fabric = occupancy.fabric();
        let blocks = base_blocks(fabric, &vec![0; fabric.blocks() as usize]).len();
        let part = request.segment.unwrap_or(request.nodes);
        let outer = JobPart::new(part, blocks, &BlockSizes::of(fabric)).outer();
        let base: Vec<BlockIndex> = (0..blocks as BlockIndex).collect();
        let nodes = |blocks: &[BlockIndex]| {
            blocks.iter().flat_map(|&block| fabric.block_nodes(block)).copied().collect()
        };
        let mut sets: Vec<Vec<NodeIndex>> = base.chunks(outer.max(1)).map(nodes).collect();
        if fabric.domains() > 0 {
            sets.extend(outside(fabric));
        }
        Some(Homes { part: part.max(1), sets })
    }

    fn has_place(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        _: &Occupancy,
    ) -> Result<(), Refusal> {
        let counts = free.in_blocks();
        let base = base_blocks(free.fabric(), &counts);
        if base.iter().all(|&count| count == 0) {
            return Ok(());
        }
        lay(request, free.fabric(), base).map(drop)
    }
}

/// The free slots of the base blocks: of the domains, which come first, or of the leaves.
fn base_blocks<'a>(fabric: &Fabric, counts: &'a [u32]) -> &'a [u32] {
    match fabric.domains() as usize {
        0 => counts,
        domains => counts.get(..domains).unwrap_or(counts),
    }
}

/// The unit in which a request is placed: a segment, or the whole job. Slurm refuses a job that is not a multiple of
/// its segment, and a segment larger than the base block size, even if base blocks have more nodes than that. Slurm has
/// no requests for several slots of one node here, so these go into one base block if one can hold them.
fn part_of(request: &Request, fabric: &Fabric, counts: &[u32]) -> Result<JobPart, Refusal> {
    let wanted = request.nodes;
    let segment = request.segment.unwrap_or(wanted);
    let never = |most| Err(Refusal::Never { wanted, most });
    match wanted.checked_rem(segment) {
        None => return never(0),
        Some(0) => {}
        Some(rest) => return never(wanted - rest),
    }
    if request.stacked {
        return Ok(JobPart::anywhere(segment, counts));
    }
    let sizes = BlockSizes::of(fabric);
    if request.segment.is_some() && segment > sizes.base() {
        return never(0);
    }
    Ok(JobPart::new(segment, counts.len(), &sizes))
}

/// The nodes that a request takes from base blocks, part by part, ascending. A block appears once for every part.
fn lay(request: &Request, fabric: &Fabric, counts: &[u32]) -> Result<Vec<(usize, u32)>, Refusal> {
    let wanted = request.nodes;
    let part = part_of(request, fabric, counts)?;
    let mut taken: Vec<(usize, u32)> = Vec::new();
    let mut free = Cow::Borrowed(counts);
    let mut left = wanted;
    while left > 0 {
        let more = part
            .choose(&free)
            .map_err(|most| Refusal::NotNow { wanted, free: wanted - left + most })?;
        left -= more.iter().map(|&(_, nodes)| nodes).sum::<u32>();
        if left > 0 {
            let free = free.to_mut();
            for &(block, nodes) in &more {
                free[block] -= nodes;
            }
        }
        taken.extend(more);
    }
    taken.sort_unstable();
    Ok(taken)
}
