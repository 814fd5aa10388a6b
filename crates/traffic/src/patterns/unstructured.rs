//! An unstructured mesh: neighbours are drawn nearby on a grid.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use topolane_fabric::InputError;

use super::grid::{Grid, along};
use super::parameter::{AllowedValues, Parameter, bytes, whole};
use super::phase::{Draft, Phase};

pub(super) const PARAMETERS: &[Parameter] = &[
    bytes("to each neighbour drawn", "65536"),
    whole("least", "fewest draws of a rank", AllowedValues::Whole(0, 1024), "6"),
    whole("most", "most draws of a rank", AllowedValues::Whole(0, 1024), "20"),
    whole(
        "reach",
        "a neighbour lies less than this number of ranks away",
        AllowedValues::Whole(2, 64),
        "3",
    ),
];

/// The pattern of chatterbug's `unstr-mesh`. Every rank draws the number of its neighbours, and for each a distance and
/// a direction along every axis of a periodic 3-D grid. A neighbour that is drawn twice gets two messages; a rank that
/// draws itself sends nothing.
pub(super) fn unstructured3d(
    ranks: u32,
    values: &[f64],
    seed: u64,
) -> Result<Vec<Phase>, InputError> {
    let (least, most, reach) = (values[1] as u32, values[2] as u32, values[3] as i64);
    if least > most {
        return Err(InputError::whole(format!("least {least} is more than most {most}")));
    }
    let grid = Grid::new(ranks, 3);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut draft = Draft::new(ranks, u64::from(most))?;
    for rank in 0..ranks {
        for _ in 0..random.random_range(least..=most) {
            let mut to = rank;
            for axis in grid.axes() {
                let steps = random.random_range(0..reach);
                to = along(to, axis, if random.random() { steps } else { -steps });
            }
            draft.send(rank, to, values[0]);
        }
    }
    draft.alone("mesh")
}
