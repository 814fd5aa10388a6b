use std::cmp::Ordering;

use topolane_fabric::Fabric;

use crate::{Choice, FreeSlots, Occupancy, Policy, Refusal, Request, Traits};

/// Slurm's topology/tree with `select/cons_tres`. It takes leaf by leaf: first a leaf that holds all that is left, or
/// one under the lowest switch that does, then leaves near those taken so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct SlurmConsTres;

impl Policy for SlurmConsTres {
    fn name(&self) -> &'static str {
        "slurm-cons-tres"
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
        let mut leaves = Leaves::of(request, free);
        let mut nodes = Vec::with_capacity(request.nodes as usize);
        while let left @ 1.. = request.nodes - nodes.len() as u32
            && let Some(leaf) = leaves.best(left)
        {
            free.take(1, leaf, left, &mut nodes);
            leaves.take(leaf);
        }
        nodes.sort_unstable();
        Ok(Choice::nodes(nodes))
    }
}

/// The free slots that remain while leaves are taken.
struct Leaves<'a> {
    fabric: &'a Fabric,
    /// By level from the leaves on: the remaining free slots of each group.
    counts: Vec<Vec<u32>>,
    /// For each leaf, the sum of the links up to a common switch with each leaf taken.
    distance: Vec<usize>,
}

impl<'a> Leaves<'a> {
    /// Starts with the leaves under the last of the highest switches with enough slots; with all leaves if no switch
    /// has enough.
    fn of(request: &Request, free: &'a FreeSlots<'_>) -> Self {
        let fabric = free.fabric();
        let depth = fabric.depth();
        let counts_of =
            |level| (0..fabric.groups(level)).map(move |group| free.count(level, group));
        let mut counts: Vec<Vec<u32>> =
            (1..=depth).map(|level| counts_of(level).collect()).collect();
        let top = counts[depth - 1].iter().rposition(|&count| count >= request.nodes);
        if let Some(top) = top {
            for (leaf, count) in counts[0].iter_mut().enumerate() {
                if ancestor(fabric, leaf as u32, depth) as usize != top {
                    *count = 0;
                }
            }
        }
        let distance = vec![0; counts[0].len()];
        Leaves { fabric, counts, distance }
    }

    /// The next leaf to take; `left` slots are still wanted.
    fn best(&self, left: u32) -> Option<u32> {
        let with_room = (0..self.counts[0].len() as u32).filter(|&leaf| self.count(1, leaf) > 0);
        with_room.reduce(|best, leaf| {
            let (order, holds) = self.compare(leaf, best, left);
            let nearer = self.distance[leaf as usize].cmp(&self.distance[best as usize]);
            let is_better = match nearer {
                Ordering::Less => holds,
                Ordering::Equal => order.is_gt(),
                Ordering::Greater => false,
            };
            if is_better { leaf } else { best }
        })
    }

    /// Compares two leaves. Also returns whether the better leaf, or the switch above it that decided, holds all that
    /// is left.
    fn compare(&self, one: u32, other: u32, left: u32) -> (Ordering, bool) {
        let depth = self.fabric.depth();
        for level in 1..=depth {
            let (a, b) = (ancestor(self.fabric, one, level), ancestor(self.fabric, other, level));
            let (room, other_room) = (self.count(level, a), self.count(level, b));
            let (holds, other_holds) = (room >= left, other_room >= left);
            let parents_differ = level < depth
                && ancestor(self.fabric, one, level + 1) != ancestor(self.fabric, other, level + 1);
            match (holds, other_holds) {
                (true, true) => return (other_room.cmp(&room), true),
                (true, false) => return (Ordering::Greater, true),
                (false, true) => return (Ordering::Less, false),
                (false, false) if parents_differ => {}
                (false, false) => return (room.cmp(&other_room), false),
            }
        }
        (Ordering::Equal, false)
    }

    fn count(&self, level: usize, group: u32) -> u32 {
        self.counts[level - 1][group as usize]
    }

    /// Takes all remaining slots of a leaf.
    fn take(&mut self, leaf: u32) {
        let taken = self.count(1, leaf);
        for level in 1..=self.fabric.depth() {
            let group = ancestor(self.fabric, leaf, level) as usize;
            self.counts[level - 1][group] = self.counts[level - 1][group].saturating_sub(taken);
        }
        for other in 0..self.distance.len() {
            let common = (1..=self.fabric.depth()).find(|&level| {
                ancestor(self.fabric, leaf, level) == ancestor(self.fabric, other as u32, level)
            });
            self.distance[other] += common.unwrap_or(self.fabric.depth() + 1) - 1;
        }
    }
}

/// The switch of a level above a leaf.
fn ancestor(fabric: &Fabric, leaf: u32, level: usize) -> u32 {
    fabric.group(level, fabric.node_range(1, leaf).start)
}
