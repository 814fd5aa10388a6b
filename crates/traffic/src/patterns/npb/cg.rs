//! CG: sums over the rows of a grid, and its transpose.

use topolane_fabric::InputError;

use super::{DOUBLE, of_class, share};
use crate::patterns::phase::{Draft, Phase};

/// Matrix-vector products per iteration: 25 solver steps and the residual.
const PRODUCTS: f64 = 26.0;

/// Sums of one number per iteration: two per step, one before them and one after.
const SUMS: f64 = 52.0;

/// One iteration is one outer iteration of the benchmark. 2^k ranks form 2^floor(k/2) rows and 2^ceil(k/2) columns. A
/// product is summed over a row by exchanges over the row's hypercube, then sent to the rank across the diagonal. Ranks
/// beyond a power of two are idle.
pub(in crate::patterns) fn cg(
    ranks: u32,
    values: &[f64],
    _: u64,
) -> Result<Vec<Phase>, InputError> {
    let order: u32 = of_class(values, [1400, 7000, 14_000, 75_000, 150_000, 1_500_000]);
    let log = ranks.ilog2();
    let (rows, steps) = (1u32 << (log / 2), log.div_ceil(2));
    let columns = 1u32 << steps;
    let square = rows == columns;
    let mut draft = Draft::new(ranks, 3 * u64::from(steps) + 1)?;
    for rank in 0..rows * columns {
        let (row, column) = (rank / columns, rank % columns);
        let length = share(order, rows, row);
        // With twice as many columns as rows, two neighbours share the work on a row's piece.
        let piece = if square { length } else { (length + 1 - rank % 2) / 2 };
        for step in 0..steps {
            // The first exchange of the vector is with the nearest column.
            let nearest = step + 1 == steps;
            let sent = if nearest && !square { length - piece } else { piece };
            let partner = row * columns + (column ^ (columns >> (step + 1)));
            draft.repeat(rank, partner, f64::from(sent) * DOUBLE, PRODUCTS);
            draft.repeat(rank, partner, DOUBLE, SUMS);
            draft.send(rank, partner, 2.0 * DOUBLE);
        }
        draft.repeat(rank, across(rank, rows, square), f64::from(piece) * DOUBLE, PRODUCTS);
    }
    draft.alone("rows and transpose")
}

/// The rank across the diagonal. If there are two columns per row, it is the one on the same side.
fn across(rank: u32, rows: u32, square: bool) -> u32 {
    let mirror = |place: u32| place % rows * rows + place / rows;
    if square { mirror(rank) } else { 2 * mirror(rank / 2) + rank % 2 }
}
