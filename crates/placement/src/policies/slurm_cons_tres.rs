use std::cmp::Ordering;

use topolane_fabric::Fabric;

use crate::{Choice, FreeSlots, Occupancy, Policy, Refusal, Request, Traits};

/// The rule of Slurm's topology/tree with `select/cons_tres`: leaf by leaf, one that holds all that is left or the lowest switch
/// of which does, and then those near the leaves taken so far.
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

/// What is left of the free slots while leaves are taken.
struct Leaves<'a> {
    fabric: &'a Fabric,
    /// By level, from leaves on, and group.
    counts: Vec<Vec<u32>>,
    /// Of each leaf, to all the leaves taken: links up to a common switch.
    distance: Vec<usize>,
}

impl<'a> Leaves<'a> {
    /// Those under the last of the highest switches that have enough; all of them, if none has.
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

    /// The leaf to take slots of next, of which `left` are wanted.
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

    /// How good a leaf is compared with another one, and whether it or the switch above it that decides holds all that is left.
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

    /// All that a leaf has is taken.
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
