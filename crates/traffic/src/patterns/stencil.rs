//! Nearest-neighbour patterns: on a grid and on a ring.

use topolane_fabric::InputError;

use super::grid::{Grid, along};
use super::parameter::{Parameter, bytes};
use super::phase::{Draft, Phase};

pub(super) const STENCIL4D: &[Parameter] = &[bytes("to each neighbour", "65536")];
pub(super) const RING: &[Parameter] = &[bytes("to the next rank", "65536")];

/// The pattern in which every rank sends to both neighbours along every axis of a periodic 4-D grid.
pub(super) fn stencil4d(ranks: u32, values: &[f64], _: u64) -> Result<Vec<Phase>, InputError> {
    let grid = Grid::new(ranks, 4);
    let mut draft = Draft::new(ranks, 8)?;
    for rank in 0..ranks {
        for axis in grid.axes() {
            for steps in [1, -1] {
                draft.send(rank, along(rank, axis, steps), values[0]);
            }
        }
    }
    draft.alone("halo")
}

/// The pattern in which every rank sends to the next one, and the last to the first.
pub(super) fn ring(ranks: u32, values: &[f64], _: u64) -> Result<Vec<Phase>, InputError> {
    let mut draft = Draft::new(ranks, 1)?;
    for rank in 0..ranks {
        draft.send(rank, (rank + 1) % ranks, values[0]);
    }
    draft.alone("ring")
}
