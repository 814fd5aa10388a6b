//! Computes how long each row runs.

use crate::limits::SliceLimits;

/// The seconds of each row, by weight; `interval` is the longest barrier interval of the jobs.
///
/// Unless the user chose the length of a slice, no row waits longer than `limits.delay` for its next turn, if the
/// shortest slices allow that. To achieve this, rows of large weight may get less than their share.
pub fn seconds(weights: &[f64], interval: f64, limits: &SliceLimits) -> Vec<f64> {
    let rows = weights.len();
    let sum: f64 = weights.iter().sum();
    let least = weights.iter().copied().fold(f64::INFINITY, f64::min);
    let mean = limits.seconds(rows, interval);
    let wished = (mean * rows as f64 / sum).max(limits.shortest / least);
    let lengths =
        |scale: f64| weights.iter().map(move |weight| (scale * weight).max(limits.shortest));
    let waits =
        |scale: f64| lengths(scale).sum::<f64>() - lengths(scale).fold(f64::INFINITY, f64::min);
    let mut scale = wished;
    if limits.slice.is_none() && waits(wished) > limits.delay {
        let mut too_long = wished;
        scale = 0.0;
        for _ in 0..HALVINGS {
            let middle = 0.5 * (scale + too_long);
            *(if waits(middle) > limits.delay { &mut too_long } else { &mut scale }) = middle;
        }
    }
    lengths(scale).collect()
}

/// The number of bisections for the scale: accurate to a part in 2^40.
const HALVINGS: u32 = 40;
