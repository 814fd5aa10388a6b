//! BT: solves lines over a multipartition of the cube.

use topolane_fabric::InputError;

use super::{DOUBLE, of_class, share};
use crate::patterns::phase::{Draft, Phase, PhaseKind};

/// Unknowns per grid point; the blocks of the systems are square matrices of this size.
const UNKNOWNS: f64 = 5.0;

/// One iteration is one time step. Each of p^2 ranks has p of the p^3 cells, no two in the same plane, so it has one
/// neighbour in each direction of every axis. Two layers of the cells' faces are exchanged. Then every line is solved
/// cell by cell: forwards (a block and a vector per point of the face) and backwards (a vector). Ranks beyond a square
/// number are idle, as in NPB.
pub(in crate::patterns) fn bt(
    ranks: u32,
    values: &[f64],
    _: u64,
) -> Result<Vec<Phase>, InputError> {
    let points: u32 = of_class(values, [12, 24, 64, 102, 162, 408]);
    let cells = ranks.isqrt();
    let mut faces = Draft::new(ranks, 6)?;
    let mut lines = Draft::new(ranks, 6)?;
    // The buffers of a line's system are always sent in full, with the size for the largest cell.
    let largest = f64::from(points / cells + 1).powi(2);
    let (block, vector) = (largest * UNKNOWNS * (UNKNOWNS + 1.0), largest * UNKNOWNS);
    let passed_on = f64::from(cells - 1);
    for rank in 0..cells * cells {
        for axis in 0..3 {
            let [before, after] = neighbours(rank, cells, axis);
            let [low, high] = surface(rank, points, cells, axis);
            faces.send(rank, before, 2.0 * UNKNOWNS * low * DOUBLE);
            faces.send(rank, after, 2.0 * UNKNOWNS * high * DOUBLE);
            lines.repeat(rank, after, block * DOUBLE, passed_on);
            lines.repeat(rank, before, vector * DOUBLE, passed_on);
        }
    }
    let kind = PhaseKind::PointToPoint;
    Ok(vec![faces.phase("faces", kind)?, lines.phase("lines", kind)?])
}

/// The ranks before and after along an axis.
fn neighbours(rank: u32, p: u32, axis: usize) -> [u32; 2] {
    let (i, j) = (rank % p, rank / p);
    let (next, last) = (|x: u32| (x + 1) % p, |x: u32| (x + p - 1) % p);
    match axis {
        0 => [last(i) + p * j, next(i) + p * j],
        1 => [i + p * last(j), i + p * next(j)],
        _ => [next(i) + p * last(j), last(i) + p * next(j)],
    }
}

/// The points on faces of a rank's cells that have a neighbour below and above, along an axis.
fn surface(rank: u32, points: u32, p: u32, axis: usize) -> [f64; 2] {
    let mut sum = [0.0; 2];
    for cell in 0..p {
        let at = [(rank % p + cell) % p, (rank / p + p - cell) % p, cell];
        let sides = (0..3).filter(|&other| other != axis);
        let area: f64 = sides.map(|other| f64::from(share(points, p, at[other]))).product();
        sum[0] += if at[axis] > 0 { area } else { 0.0 };
        sum[1] += if at[axis] + 1 < p { area } else { 0.0 };
    }
    sum
}
