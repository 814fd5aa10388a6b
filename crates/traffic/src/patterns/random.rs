//! Patterns whose partners are drawn at random.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use topolane_fabric::InputError;

use super::parameter::{AllowedValues, Parameter, bytes, whole};
use super::phase::{Draft, Phase};

pub(super) const PAIRS: &[Parameter] = &[bytes("each way", "65536")];
pub(super) const UNIFORM: &[Parameter] = &[
    bytes("of a message", "65536"),
    whole("messages", "messages that every rank sends", AllowedValues::Whole(0, 4096), "8"),
];

/// The pattern of chatterbug's `pairs`: every rank of the first half is matched at random with one of the second half,
/// and they exchange messages. With an odd number, one rank has no partner.
pub(super) fn pairs(ranks: u32, values: &[f64], seed: u64) -> Result<Vec<Phase>, InputError> {
    let half = ranks / 2;
    let mut draft = Draft::new(ranks, 1)?;
    let mut partners: Vec<u32> = (half..2 * half).collect();
    partners.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    for (rank, partner) in (0..half).zip(partners) {
        draft.send(rank, partner, values[0]);
        draft.send(partner, rank, values[0]);
    }
    draft.alone("pairs")
}

/// The pattern in which every rank sends to ranks drawn one by one from all others with equal probability.
pub(super) fn uniform(ranks: u32, values: &[f64], seed: u64) -> Result<Vec<Phase>, InputError> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut draft = Draft::new(ranks, values[1] as u64)?;
    for rank in 0..ranks {
        for _ in 0..values[1] as u32 {
            let other = random.random_range(0..ranks - 1);
            draft.send(rank, other + u32::from(other >= rank), values[0]);
        }
    }
    draft.alone("uniform")
}
