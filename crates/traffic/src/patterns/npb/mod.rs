//! The traffic of the NAS Parallel Benchmarks, NPB 3.3-MPI, derived from their source. Bailey et al., "The NAS Parallel
//! Benchmarks 2.0", report NAS-95-020, and Van der Wijngaart, "NPB 2.4", report NAS-02-007, describe the decompositions
//! and the classes.

pub(super) mod bt;
pub(super) mod cg;
pub(super) mod ep;
pub(super) mod is;
pub(super) mod lu;
pub(super) mod mg;

use super::parameter::{AllowedValues, Parameter};

/// Bytes of a double-precision number.
const DOUBLE: f64 = 8.0;

/// Bytes of an integer.
const INTEGER: f64 = 4.0;

/// The parameter of every benchmark: its class, S, W, A, B, C or D.
pub(super) const CLASS: &[Parameter] = &[Parameter {
    name: "class",
    summary: "problem size",
    unit: "",
    domain: AllowedValues::Word(&["S", "W", "A", "B", "C", "D"]),
    default: "C",
}];

/// The value of a table for the requested class.
fn of_class<T: Copy>(values: &[f64], table: [T; 6]) -> T {
    table[(values[0] as usize).min(5)]
}

/// The number of points in part number `place`, if `total` points are divided into `parts`: the first parts have one
/// more.
fn share(total: u32, parts: u32, place: u32) -> u32 {
    total / parts + u32::from(place < total % parts)
}
