//! The messages of allreduce by the algorithms of MPICH (Thakur, Rabenseifner & Gropp 2005, "Optimization of collective
//! communication operations in MPICH").

use topolane_fabric::InputError;

use super::parameter::{AllowedValues, Parameter, bytes};
use super::phase::{Draft, Phase, PhaseKind};

const ALGORITHMS: &[&str] = &["auto", "recursive-doubling", "rabenseifner", "ring"];

pub(super) const PARAMETERS: &[Parameter] = &[
    bytes("of every rank's vector", "65536"),
    Parameter {
        name: "algorithm",
        summary: "auto: recursive-doubling to 2,048 bytes, rabenseifner above, as MPICH",
        unit: "",
        domain: AllowedValues::Word(ALGORITHMS),
        default: "auto",
    },
];

/// MPICH uses recursive doubling up to this number of bytes (`MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE`).
const SHORT: f64 = 2048.0;

/// The pattern of one allreduce.
pub(super) fn allreduce(ranks: u32, values: &[f64], _: u64) -> Result<Vec<Phase>, InputError> {
    let mut draft = Draft::new(ranks, entries(ranks))?;
    match ALGORITHMS.get(values[1] as usize) {
        Some(&"ring") => ring(&mut draft, ranks, values[0]),
        Some(&"rabenseifner") => hypercube(&mut draft, ranks, values[0], true),
        Some(&"recursive-doubling") => hypercube(&mut draft, ranks, values[0], false),
        _ => reduce(&mut draft, ranks, values[0]),
    }
    Ok(vec![draft.phase("allreduce", PhaseKind::Collective)?])
}

/// The most entries per rank of one allreduce.
pub(super) fn entries(ranks: u32) -> u64 {
    u64::from(ranks.max(1).ilog2()) + 2
}

/// Adds one allreduce by the algorithm that MPICH would use.
pub(super) fn reduce(draft: &mut Draft, ranks: u32, bytes: f64) {
    hypercube(draft, ranks, bytes, bytes > SHORT);
}

/// Reduce-scatter and allgather around the ring: each rank sends 1/p of the vector to the next rank, 2 (p - 1) times.
fn ring(draft: &mut Draft, ranks: u32, bytes: f64) {
    let count = f64::from(ranks);
    for rank in 0..ranks {
        draft.repeat(rank, (rank + 1) % ranks, bytes / count, 2.0 * (count - 1.0));
    }
}

/// Exchanges over the axes of a hypercube. Recursive doubling exchanges the whole vector. Rabenseifner's algorithm
/// exchanges a half, a quarter, ... twice: for reduce-scatter and for allgather. If the number of ranks is not a power
/// of two, each even rank among the first gives its vector to the next rank and gets the result back.
fn hypercube(draft: &mut Draft, ranks: u32, bytes: f64, halving: bool) {
    let rounds = ranks.ilog2();
    let surplus = ranks - (1 << rounds);
    for pair in 0..surplus {
        draft.send(2 * pair, 2 * pair + 1, bytes);
        draft.send(2 * pair + 1, 2 * pair, bytes);
    }
    let rank_of = |place: u32| if place < surplus { 2 * place + 1 } else { place + surplus };
    for place in 0..1 << rounds {
        for round in 0..rounds {
            let (from, to) = (rank_of(place), rank_of(place ^ (1 << round)));
            if halving {
                draft.repeat(from, to, bytes / f64::from(2u32 << round), 2.0);
            } else {
                draft.send(from, to, bytes);
            }
        }
    }
}
