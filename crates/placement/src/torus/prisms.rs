//! Prisms whose links no job uses.

use std::cmp::Reverse;

use topolane_fabric::{Prism, Torus};

use super::grid::{Grid, Routers, each, first};

/// The shapes of free prisms that are tried before the search for any prism.
const CLEAN_SHAPES: usize = 24;
/// The most shapes that are compared to find these.
const MOST_COMPARED: usize = 128;
/// The most words of sets of routers that one search computes. On a machine of some hundred routers it computes all.
const MOST_WORDS: u32 = 100_000;
/// The most rows of routers whose slots one search counts. On such a machine it counts all.
const MOST_ROWS: u32 = 40_000;

/// A prism at its place: its first router and its sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PlacedPrism {
    pub start: u32,
    pub extents: [u8; 6],
}

impl PlacedPrism {
    /// The routers, such that the first ones form a prism of the same cross-section: its longest side is the slowest.
    pub fn routers(&self, torus: &Torus) -> Vec<u32> {
        let mut order: Vec<usize> = (0..torus.sizes().len()).collect();
        order.sort_by_key(|&dimension| Reverse(self.extents[dimension]));
        let mut routers = vec![self.start];
        for dimension in order {
            let (size, stride) = (torus.sizes()[dimension], torus.strides()[dimension]);
            let place = torus.place(self.start, dimension);
            let along = |router: u32| {
                (0..u32::from(self.extents[dimension]))
                    .map(move |step| router - place * stride + (place + step) % size * stride)
            };
            routers = routers.into_iter().flat_map(along).collect();
        }
        routers
    }
}

impl PlacedPrism {
    /// The first router of each row of the machine, along the last dimension, in which the prism has routers.
    fn rows(&self, torus: &Torus) -> Vec<u32> {
        let last = torus.sizes().len() - 1;
        let mut row = PlacedPrism { start: self.start - torus.place(self.start, last), ..*self };
        row.extents[last] = 1;
        row.routers(torus)
    }
}

impl Grid<'_> {
    /// The free slots of a prism with routers in these rows.
    fn slots_in(&self, prism: &PlacedPrism, rows: &[u32]) -> u32 {
        let (search, torus) = (self.search, self.search.torus);
        if self.most > 1 {
            return prism.routers(torus).into_iter().map(|router| search.slots(router)).sum();
        }
        let last = torus.sizes().len() - 1;
        let (size, side) = (torus.sizes()[last], u32::from(prism.extents[last]));
        let place = torus.place(prism.start, last);
        let run = u64::MAX >> (u64::BITS - side);
        let passed = (place + side).saturating_sub(size);
        let mask = if passed > 0 {
            (run << place & u64::MAX >> (u64::BITS - size)) | u64::MAX >> (u64::BITS - passed)
        } else {
            run << place
        };
        let free = |&row: &u32| {
            let (word, shift) = ((row / u64::BITS) as usize, row % u64::BITS);
            let low = self.full[word] >> shift;
            let high = match self.full.get(word + 1) {
                Some(next) if shift > 0 => next << (u64::BITS - shift),
                _ => 0,
            };
            ((low | high) & mask).count_ones()
        };
        rows.iter().map(free).sum()
    }

    /// A prism with at least this number of routers, enough free slots and links that no job uses.
    ///
    /// # Errors
    /// The most routers with free slots that any such prism has: it is known if it is proven that there is none.
    pub fn prism(&self, routers: u32) -> Result<PlacedPrism, Option<u32>> {
        let shapes = self.small_shapes(routers);
        // Most jobs that get a prism get one of the first shape. Most others get none, which is quicker to prove than to
        // search for.
        let first = shapes.iter().min_by_key(|prism| prism.price);
        if let Some(prism) = self.clean_prism(first) {
            return Ok(prism);
        }
        if self.has_no_prism(routers) {
            return Err(Some(routers - 1));
        }
        let found = self.clean_prism(compact(shapes)).or_else(|| self.any_prism(routers));
        found.ok_or(None)
    }

    /// The smallest shapes with at least this number of routers.
    fn small_shapes(&self, routers: u32) -> &[Prism] {
        let all = self.search.torus.prisms(routers);
        let near = all.partition_point(|prism| prism.routers <= routers + routers / 8 + 1);
        &all[..near.clamp(CLEAN_SHAPES, MOST_COMPARED).min(all.len())]
    }

    /// A prism of free routers whose links no job uses, around it neither: of these shapes the first that there is.
    fn clean_prism<'a>(&self, shapes: impl IntoIterator<Item = &'a Prism>) -> Option<PlacedPrism> {
        let torus = self.search.torus;
        let mut clean = self.full.clone();
        for (dimension, open) in self.open.iter().enumerate() {
            if torus.is_cabled(dimension) && torus.sizes()[dimension] > 1 {
                let inside = &mut clean.iter_mut().zip(open);
                inside.for_each(|(clean, open)| *clean &= open);
            }
        }
        let (mut set, mut scratch) = (clean.clone(), clean.clone());
        for prism in shapes {
            set.copy_from_slice(&clean);
            for dimension in 0..torus.sizes().len() {
                runs(torus, &mut set, dimension, u32::from(prism.extents[dimension]), &mut scratch);
            }
            if let Some(start) = first(&set) {
                return Some(PlacedPrism { start, extents: prism.extents });
            }
        }
        None
    }

    /// Any prism with enough free slots whose links no job uses; of those found, the one with the fewest slots left over.
    fn any_prism(&self, routers: u32) -> Option<PlacedPrism> {
        let torus = self.search.torus;
        let mut largest = vec![1; torus.sizes().len() + 1];
        for dimension in (0..torus.sizes().len()).rev() {
            largest[dimension] = largest[dimension + 1] * largest_side(torus, dimension);
        }
        let mut search = AnyPrism {
            grid: self,
            routers,
            largest,
            words: MOST_WORDS,
            rows: MOST_ROWS,
            best: None,
        };
        search.descend(
            0,
            &self.all_routers(),
            &self.open,
            PlacedPrism { start: 0, extents: [1; 6] },
            1,
        );
        search.best.map(|(_, prism)| prism)
    }
}

/// The most compact of some shapes.
fn compact(shapes: &[Prism]) -> impl Iterator<Item = &Prism> {
    let mut shapes: Vec<&Prism> = shapes.iter().collect();
    shapes.sort_by_key(|prism| prism.price);
    shapes.into_iter().take(CLEAN_SHAPES)
}

/// The most routers that a prism can have in a dimension.
pub(super) fn largest_side(torus: &Torus, dimension: usize) -> u32 {
    if torus.is_cabled(dimension) { torus.sizes()[dimension] } else { 1 }
}

/// Keeps the routers from which a run of `side` routers in a dimension is in the set.
pub(super) fn runs(
    torus: &Torus,
    set: &mut Routers,
    dimension: usize,
    side: u32,
    scratch: &mut Routers,
) {
    let mut known = 1;
    while known < side {
        let by = known.min(side - known);
        torus.shifted(set, dimension, by, scratch);
        set.iter_mut().zip(&*scratch).for_each(|(word, shifted)| *word &= shifted);
        known += by;
    }
}

/// A search over all sides of all dimensions, one after the other.
struct AnyPrism<'a> {
    grid: &'a Grid<'a>,
    /// The fewest routers that can have enough slots.
    routers: u32,
    /// By dimension: the most routers of a prism in this and all later dimensions.
    largest: Vec<u32>,
    words: u32,
    rows: u32,
    /// Slots left over, routers and shape of the best prism.
    best: Option<((u32, u32), PlacedPrism)>,
}

impl AnyPrism<'_> {
    /// Tries all sides of a dimension and those after it. `starts` has the routers from which a prism of the sides so far
    /// can begin; `open` the routers from which the links of such a prism to the next one of a dimension are free.
    fn descend(
        &mut self,
        dimension: usize,
        starts: &Routers,
        open: &[Routers],
        prism: PlacedPrism,
        size: u32,
    ) {
        let torus = self.grid.search.torus;
        if dimension == torus.sizes().len() {
            return self.judge(starts, prism, size);
        }
        let mut scratch = starts.clone();
        for side in 1..=largest_side(torus, dimension) {
            if u64::from(size) * u64::from(side) * u64::from(self.largest[dimension + 1])
                < u64::from(self.routers)
            {
                continue;
            }
            if self.words == 0 || self.is_tight() {
                return;
            }
            let mut starts = starts.clone();
            runs(torus, &mut starts, dimension, side, &mut scratch);
            if side > 1 {
                // From half of a ring on, messages go around it.
                let size = torus.sizes()[dimension];
                let goes_around = torus.rings()[dimension] && 2 * (side - 1) >= size;
                let links = if goes_around { size } else { side - 1 };
                let mut inner = open[dimension].clone();
                runs(torus, &mut inner, dimension, links, &mut scratch);
                starts.iter_mut().zip(&inner).for_each(|(start, open)| *start &= open);
            }
            let after = open.iter().enumerate().map(|(other, open)| {
                let mut open = if other > dimension { open.clone() } else { Vec::new() };
                if other > dimension {
                    runs(torus, &mut open, dimension, side, &mut scratch);
                }
                open
            });
            let after: Vec<Routers> = after.collect();
            let sets = open.len() - dimension + 1;
            self.words = self.words.saturating_sub((sets * starts.len()) as u32);
            if starts.iter().all(|&word| word == 0) {
                return;
            }
            let mut prism = prism;
            prism.extents[dimension] = side as u8;
            self.descend(dimension + 1, &starts, &after, prism, size * side);
        }
    }

    /// Whether the best prism leaves no slot over.
    fn is_tight(&self) -> bool {
        self.best.as_ref().is_some_and(|best| best.0.0 == 0)
    }

    fn judge(&mut self, starts: &Routers, prism: PlacedPrism, size: u32) {
        let search = self.grid.search;
        // A whole ring is the same prism from everywhere.
        let is_whole = |dimension: usize| {
            let side = u32::from(prism.extents[dimension]);
            side > 1 && side == search.torus.sizes()[dimension]
        };
        let dimensions = 0..search.torus.sizes().len();
        let whole: Vec<usize> = dimensions.filter(|&dimension| is_whole(dimension)).collect();
        for start in each(starts) {
            if whole.iter().any(|&dimension| search.torus.place(start, dimension) > 0) {
                continue;
            }
            let prism = PlacedPrism { start, ..prism };
            let rows = prism.rows(search.torus);
            if self.rows < rows.len() as u32 {
                return;
            }
            self.rows -= rows.len() as u32;
            let slots = self.grid.slots_in(&prism, &rows);
            if slots < search.wanted {
                continue;
            }
            let price = (slots - search.wanted, size);
            if self.best.as_ref().is_none_or(|best| price < best.0) {
                self.best = Some((price, prism));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use proptest::prelude::*;
    use topolane_fabric::{Fabric, preset};

    use super::*;
    use crate::torus::Search;
    use crate::{Occupancy, Request, policy};

    /// A machine on which jobs of these sizes started, each that had a place: of the policy `isolated`, or, if they begin
    /// with `true`, on random nodes.
    fn state(name: &str, jobs: &[(bool, u32)]) -> Occupancy {
        let fabric = Arc::new(Fabric::build(&preset(name).unwrap().unwrap()).unwrap());
        let mut occupancy = Occupancy::new(Arc::clone(&fabric));
        for (id, &(is_random, nodes)) in (1..).zip(jobs) {
            let rule = policy(if is_random { "random" } else { "isolated" }, id).unwrap();
            let request = Request::whole_nodes(id, nodes.min(fabric.nodes()), 1.0);
            if let Ok(placement) = rule.place(&request, &occupancy) {
                occupancy.claim(&placement).unwrap();
            }
        }
        occupancy
    }

    /// Calls `see` with the grid, and the routers that the job needs, for each job of several routers.
    fn for_each_job(occupancy: &Occupancy, mut see: impl FnMut(&Grid<'_>, u32)) {
        for wanted in 2..=occupancy.idle_nodes() {
            let free = &occupancy.free_slots(&Request::whole_nodes(0, wanted, 1.0));
            let torus = occupancy.fabric().wiring().torus().unwrap();
            let used = occupancy.used_links().unwrap();
            let most = free.largest(1);
            if most < wanted {
                let search = Search { torus, free, used, wanted };
                see(&Grid::new(&search, most), wanted.div_ceil(most));
            }
        }
    }

    /// The prism that the search alone finds.
    fn searched(grid: &Grid<'_>, routers: u32) -> Option<PlacedPrism> {
        let found = grid.clean_prism(compact(grid.small_shapes(routers)));
        found.or_else(|| grid.any_prism(routers))
    }

    proptest! {
        /// The proof that there is no prism changes no answer: each job gets the prism that the search alone finds, or
        /// none if it finds none.
        #[test]
        fn a_proof_changes_no_answer(
            name in prop::sample::select(vec![
                "torus(size=4x4x4)", "torus(size=4mx4mx4m)", "torus(size=5x3x2, nodes=2)", "torus(size=3x6x5m)",
                "torus(size=9x8)", "torus(size=11mx13)", "torus(size=2x3x2x3x2)", "torus(size=3x2x2mx2x3x2, nodes=3)",
                "torus(size=7x6x5)", "torus(size=8x4x4, cube=2x2x2)", "torus(size=8x8x8, cube=4x4x4)",
            ]),
            jobs in prop::collection::vec((prop::bool::weighted(0.2), prop_oneof![1u32..4, 1u32..40]), 0..40),
        ) {
            let mut different = Vec::new();
            for_each_job(&state(name, &jobs), |grid, routers| {
                let alone = searched(grid, routers);
                let is_right = alone.is_none() || !grid.has_no_prism(routers);
                if !is_right || grid.prism(routers).ok() != alone {
                    different.push((routers, alone));
                }
            });
            prop_assert_eq!(different, Vec::new());
        }
    }

    /// Of the jobs that get no prism, few need the search: on a machine whose free nodes are in pieces.
    #[test]
    fn most_refusals_are_proven() {
        for name in ["torus(size=12x12x12)", "torus(size=12mx12mx12m)", "torus(size=7x6x6x7)"] {
            let jobs: Vec<(bool, u32)> =
                (1..60).map(|job| (job % 9 == 0, 1 + job * 37 % 90)).collect();
            let (mut refused, mut proven) = (0, 0);
            for_each_job(&state(name, &jobs), |grid, routers| {
                if grid.prism(routers).is_err() {
                    refused += 1;
                    proven += u32::from(grid.has_no_prism(routers));
                }
            });
            assert!(refused > 50 && proven * 10 > refused * 9, "{name}: {proven} of {refused}");
        }
    }
}
