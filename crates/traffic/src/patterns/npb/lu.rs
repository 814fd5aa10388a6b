//! LU: wavefronts over a grid of pencils.

use topolane_fabric::InputError;

use super::{DOUBLE, of_class, share};
use crate::patterns::grid::sides;
use crate::patterns::phase::{Draft, Phase};

/// Unknowns per grid point.
const UNKNOWNS: u32 = 5;

/// One iteration is one time step. Ranks form a grid over x and y, as square as their factors allow, with x the longer
/// side. Each of the n - 2 inner planes is swept forwards and backwards, with one message to each next neighbour per
/// plane and sweep. Then two layers of each face are exchanged.
pub(in crate::patterns) fn lu(
    ranks: u32,
    values: &[f64],
    _: u64,
) -> Result<Vec<Phase>, InputError> {
    let points: u32 = of_class(values, [12, 33, 64, 102, 162, 408]);
    let sides = sides(ranks, 2);
    let mut sweeps = Draft::new(ranks, 4)?;
    let mut faces = Draft::new(ranks, 4)?;
    for rank in 0..ranks {
        let at = [rank % sides[0], rank / sides[0]];
        for axis in [0, 1] {
            let other = 1 - axis;
            let width = share(points, sides[other], at[other]);
            // The sweeps do not include the boundary of the domain.
            let edges = u32::from(at[other] == 0) + u32::from(at[other] + 1 == sides[other]);
            let line = f64::from(UNKNOWNS * width.saturating_sub(edges)) * DOUBLE;
            let face = f64::from(2 * UNKNOWNS * width * points) * DOUBLE;
            let stride = if axis == 0 { 1 } else { sides[0] };
            let before = (at[axis] > 0).then(|| rank - stride);
            let after = (at[axis] + 1 < sides[axis]).then(|| rank + stride);
            for neighbour in [before, after].into_iter().flatten() {
                sweeps.repeat(rank, neighbour, line, f64::from(points - 2));
                faces.send(rank, neighbour, face);
            }
        }
    }
    let kind = crate::patterns::PhaseKind::PointToPoint;
    Ok(vec![sweeps.phase("sweeps", kind)?, faces.phase("faces", kind)?])
}
