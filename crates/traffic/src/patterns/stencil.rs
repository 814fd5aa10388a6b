//! Nearest neighbours on a grid.

use topolane_fabric::InputError;

use super::grid::{along, sides};
use super::parameter::{Parameter, bytes};
use super::phase::{Draft, Phase};

pub(super) const PARAMETERS: &[Parameter] = &[bytes("to each neighbour", "65536")];

/// Periodic 4-D grid, both neighbours along every axis.
pub(super) fn stencil4d(ranks: u32, values: &[f64], _: u64) -> Result<Vec<Phase>, InputError> {
    let sides = sides(ranks, 4);
    let mut draft = Draft::new(ranks, 8)?;
    for rank in 0..ranks {
        let mut stride = 1;
        for &side in &sides {
            for steps in [1, side - 1] {
                draft.send(rank, along(rank, stride, side, steps), values[0]);
            }
            stride *= side;
        }
    }
    draft.alone("halo")
}
