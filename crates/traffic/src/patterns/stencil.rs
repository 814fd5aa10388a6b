//! Nearest neighbours on a grid.

use topolane_fabric::InputError;

use crate::matrix::{Entry, Traffic};

/// Periodic 4-D grid, both neighbours along every axis; values: bytes.
pub(super) fn stencil4d(ranks: u32, values: &[f64], _: u64) -> Result<Traffic, InputError> {
    let sides = sides(ranks, 4);
    let mut entries = Vec::new();
    for rank in 0..ranks {
        let mut stride = 1;
        for &side in &sides {
            let at = rank / stride % side;
            for next in [(at + 1) % side, (at + side - 1) % side] {
                let to = rank - at * stride + next * stride;
                entries.push(Entry { from: rank, to, bytes: values[0], messages: 1.0 });
            }
            stride *= side;
        }
    }
    Traffic::new(ranks, entries)
}

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
    if let Some(last) = sides.last_mut() {
        *last *= left;
    }
    sides.sort_unstable();
    sides
}
