//! Arranges ranks on a grid.

/// Factors `ranks` into `axes` sides, the longest first, as equal as possible: the result of `MPI_Dims_create`. A prime
/// number of ranks lies on one axis.
pub(super) fn sides(ranks: u32, axes: u32) -> Vec<u32> {
    let mut left = ranks.max(1);
    let mut sides = Vec::new();
    for axis in (1..=axes).rev() {
        let ideal = f64::from(left).powf(1.0 / f64::from(axis)) + 1e-9;
        let side = (1..=ideal as u32).rev().find(|side| left.is_multiple_of(*side)).unwrap_or(1);
        sides.push(side);
        left /= side;
    }
    sides.sort_unstable_by(|a, b| b.cmp(a));
    sides
}

/// A periodic grid of ranks, numbered along the first axis first.
pub(super) struct Grid {
    sides: Vec<u32>,
}

impl Grid {
    /// Returns a grid of all `ranks` with `axes` axes.
    pub fn new(ranks: u32, axes: u32) -> Grid {
        Grid { sides: sides(ranks, axes) }
    }

    /// For every axis, the distance in ranks between neighbours, and the length of its side.
    pub fn axes(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.sides.iter().scan(1, |stride, &side| {
            let axis = (*stride, side);
            *stride *= side;
            Some(axis)
        })
    }
}

/// The rank that is `steps` along an axis from `rank`, wrapping around at the end.
pub(super) fn along(rank: u32, (stride, side): (u32, u32), steps: i64) -> u32 {
    let at = rank / stride % side;
    let to = (i64::from(at) + steps).rem_euclid(i64::from(side)) as u32;
    rank - at * stride + to * stride
}
