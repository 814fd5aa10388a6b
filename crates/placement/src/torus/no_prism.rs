//! A quick proof that no prism is large enough.
//!
//! Each router of a prism lies in a run of routers in each dimension, as long as the side of the prism, whose links no job
//! uses. So if a prism has at least some side in a dimension, routers outside of such runs cannot be in it. Sides have
//! bounds because their product is the number of routers. Usually too few routers are left at once. If not, the range of a
//! side is halved, and each half has closer bounds.

use std::borrow::Cow;

use topolane_fabric::Torus;

use super::grid::{Grid, Routers};
use super::prisms::{largest_side, runs};

/// The most words of sets of routers that one proof computes.
const MOST_WORDS: u32 = 50_000;

impl Grid<'_> {
    /// Whether it is proven that no prism has at least this number of routers, enough free slots and links that no job uses.
    pub fn has_no_prism(&self, routers: u32) -> bool {
        let torus = self.search.torus;
        let mut sides = Sides { least: [1; 6], most: [1; 6] };
        for (dimension, most) in sides.most.iter_mut().enumerate().take(torus.sizes().len()) {
            *most = largest_side(torus, dimension);
        }
        let with_slots = self.routers_with_slots();
        let mut proof = Proof { grid: self, routers, with_slots, words: MOST_WORDS };
        proof.excludes(&self.all_routers(), sides)
    }
}

/// The least and the largest sides of a prism, by dimension.
#[derive(Debug, Clone, Copy)]
struct Sides {
    least: [u32; 6],
    most: [u32; 6],
}

impl Sides {
    /// The same for prisms with at least this number of routers; `None` if there are none.
    fn with(mut self, routers: u32) -> Option<Self> {
        let largest = product(&self.most);
        for (least, &most) in self.least.iter_mut().zip(&self.most) {
            let others = largest / u64::from(most);
            let needed = u64::from(routers).div_ceil(others);
            if needed > u64::from(most) {
                return None;
            }
            *least = needed.max(u64::from(*least)) as u32;
        }
        Some(self)
    }

    /// Both halves of the widest range, the longer sides first.
    fn halves(self) -> [Self; 2] {
        let width = |&dimension: &usize| self.most[dimension] - self.least[dimension];
        let widest = (0..self.most.len()).max_by_key(width).unwrap_or(0);
        let middle = u32::midpoint(self.least[widest], self.most[widest]);
        let mut halves = [self; 2];
        halves[0].least[widest] = middle + 1;
        halves[1].most[widest] = middle;
        halves
    }
}

fn product(sides: &[u32]) -> u64 {
    sides.iter().copied().map(u64::from).product()
}

struct Proof<'a> {
    grid: &'a Grid<'a>,
    /// The fewest routers that can have enough slots.
    routers: u32,
    with_slots: Cow<'a, Routers>,
    /// The words that may still be computed.
    words: u32,
}

impl Proof<'_> {
    /// Whether it is proven that no prism with such sides lies in a set of routers.
    fn excludes(&mut self, inside: &Routers, sides: Sides) -> bool {
        let Some(sides) = sides.with(self.routers) else { return true };
        let torus = self.grid.search.torus;
        let (mut inside, mut scratch) = (inside.clone(), inside.clone());
        for (dimension, open) in self.grid.open.iter().enumerate() {
            let side = sides.least[dimension];
            if side == 1 {
                continue;
            }
            keep_runs(torus, &mut inside, open, dimension, side, &mut scratch);
            self.words = self.words.saturating_sub(2 * side.ilog2() * inside.len() as u32);
            let slots = inside.iter().zip(&*self.with_slots);
            let able: u32 = slots.map(|(inside, slots)| (inside & slots).count_ones()).sum();
            if able < self.routers {
                return true;
            }
        }
        if product(&sides.least) >= u64::from(self.routers) || self.words == 0 {
            return false;
        }
        sides.halves().into_iter().all(|half| self.excludes(&inside, half))
    }
}

/// Keeps the routers that lie in a run of `side` routers in a dimension, with open links between them.
fn keep_runs(
    torus: &Torus,
    set: &mut Routers,
    open: &Routers,
    dimension: usize,
    side: u32,
    scratch: &mut Routers,
) {
    torus.shifted(set, dimension, 1, scratch);
    for ((word, next), open) in set.iter_mut().zip(&*scratch).zip(open) {
        *word &= next & open;
    }
    runs(torus, set, dimension, side - 1, scratch);
    let mut known = 1;
    while known < side {
        let by = known.min(side - known);
        torus.shifted_back(set, dimension, by, scratch);
        set.iter_mut().zip(&*scratch).for_each(|(word, before)| *word |= before);
        known += by;
    }
}
