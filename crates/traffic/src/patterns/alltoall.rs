//! All-to-all patterns: over all ranks, and over the lines of a grid.

use topolane_fabric::InputError;

use super::grid::{Grid, along};
use super::parameter::{AllowedValues, Parameter, bytes, whole};
use super::phase::{Draft, Phase, PhaseKind};

pub(super) const ALLTOALL: &[Parameter] = &[bytes("of every rank to every other", "65536")];
pub(super) const SUBA2A: &[Parameter] = &[
    bytes("of every rank to every other of a line", "65536"),
    whole("dims", "number of axes, the longest first", AllowedValues::Whole(1, 3), "2"),
];

/// The pattern in which every rank sends to every other.
pub(super) fn alltoall(ranks: u32, values: &[f64], _: u64) -> Result<Vec<Phase>, InputError> {
    let mut draft = Draft::new(ranks, u64::from(ranks) - 1)?;
    everybody(&mut draft, ranks, values[0], 1.0);
    Ok(vec![draft.phase("all to all", PhaseKind::Collective)?])
}

/// Adds `messages` messages from every rank to every other.
pub(super) fn everybody(draft: &mut Draft, ranks: u32, bytes: f64, messages: f64) {
    for from in 0..ranks {
        for to in (0..ranks).filter(|&to| to != from) {
            draft.repeat(from, to, bytes, messages);
        }
    }
}

/// The pattern of chatterbug's `subcom3d-a2a`: all-to-all within every line of a 3-D grid, along its first axes.
pub(super) fn suba2a(ranks: u32, values: &[f64], _: u64) -> Result<Vec<Phase>, InputError> {
    let grid = Grid::new(ranks, 3);
    let axes: Vec<(u32, u32)> = grid.axes().take(values[1] as usize).collect();
    let mut draft = Draft::new(ranks, axes.iter().map(|&(_, side)| u64::from(side) - 1).sum())?;
    for rank in 0..ranks {
        for &axis in &axes {
            for steps in 1..i64::from(axis.1) {
                draft.send(rank, along(rank, axis, steps), values[0]);
            }
        }
    }
    Ok(vec![draft.phase("lines", PhaseKind::Collective)?])
}
