//! Ranks on a grid.

/// `ranks` as a product of `axes` sides, the smallest first, as near to equal as its factors allow
/// (as `MPI_Dims_create` asks).
pub(super) fn sides(ranks: u32, axes: u32) -> Vec<u32> {
    let mut left = ranks.max(1);
    let mut sides = Vec::new();
    for axis in (1..=axes).rev() {
        let ideal = f64::from(left).powf(1.0 / f64::from(axis)) + 1e-9;
        let side = (1..=ideal as u32).rev().find(|side| left % side == 0).unwrap_or(1);
        sides.push(side);
        left /= side;
    }
    sides.sort_unstable();
    sides
}

/// The rank `steps` along an axis from `rank` on a periodic grid; `stride` ranks lie between
/// neighbours along it.
pub(super) fn along(rank: u32, stride: u32, side: u32, steps: u32) -> u32 {
    let at = rank / stride % side;
    let to = (u64::from(at) + u64::from(steps)) % u64::from(side);
    rank - at * stride + to as u32 * stride
}
