//! Scenarios for how much faster jobs run if they share no links.

use std::fmt;
use std::str::FromStr;

use topolane_fabric::{InputError, scramble};

/// Jobs of this size or larger gain the upper limit of their bin (SC'18).
const TOP_OF_BIN: u32 = 512;
/// Jobs of this size or smaller gain nothing in `Percent` and V2 (SC'18).
const GAIN_NOTHING: u32 = 4;
/// The largest job of the narrow class in V2 (SC'18).
const NARROW_IN_V2: u32 = 128;

/// The share of its run time that a job saves under a policy that isolates jobs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Scenario {
    /// No job gains.
    #[default]
    None,
    /// Jobs of more than four nodes run shorter by this percentage.
    Percent(f64),
    /// Every job gets at random a bin of 0-10, 0-20 or 0-30 %.
    V1,
    /// Jobs of 5 to 128 nodes get a bin of 0-10 or 0-20 %; larger ones 0-10, 10-20 or 10-30 %.
    V2,
}

/// A range of gains in per cent: the lower limit for one node, the upper for 512 nodes and more.
type Bin = (f64, f64);

const V1: [Bin; 3] = [(0.0, 10.0), (0.0, 20.0), (0.0, 30.0)];
const V2_NARROW: [Bin; 2] = [(0.0, 10.0), (0.0, 20.0)];
const V2_WIDE: [Bin; 3] = [(0.0, 10.0), (10.0, 20.0), (10.0, 30.0)];

impl Scenario {
    /// The share of its run time, in [0, 1), that a job saves if it is isolated.
    ///
    /// The bin depends only on `job_id` and `seed`, so a job gains the same in every run.
    pub fn speed_up(&self, job_id: u64, nodes: u32, seed: u64) -> f64 {
        match self {
            Scenario::None => 0.0,
            Scenario::Percent(_) | Scenario::V2 if nodes <= GAIN_NOTHING => 0.0,
            Scenario::Percent(percent) => percent / 100.0,
            Scenario::V1 => in_bin(pick(&V1, job_id, seed), nodes),
            Scenario::V2 if nodes <= NARROW_IN_V2 => in_bin(pick(&V2_NARROW, job_id, seed), nodes),
            Scenario::V2 => in_bin(pick(&V2_WIDE, job_id, seed), nodes),
        }
    }
}

/// The gain of a job of `nodes` nodes, interpolated between the limits of its bin.
fn in_bin((low, high): Bin, nodes: u32) -> f64 {
    let along = f64::from(nodes.clamp(1, TOP_OF_BIN) - 1) / f64::from(TOP_OF_BIN - 1);
    (low + (high - low) * along) / 100.0
}

fn pick(bins: &[Bin], job_id: u64, seed: u64) -> Bin {
    // Use the high bits of the product: no bin is favoured by more than 2^-60.
    let draw = scramble(scramble(seed) ^ job_id);
    bins[((u128::from(draw) * bins.len() as u128) >> 64) as usize]
}

impl FromStr for Scenario {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self, InputError> {
        match text.trim().to_ascii_lowercase().as_str() {
            "none" => Ok(Scenario::None),
            "v1" => Ok(Scenario::V1),
            "v2" => Ok(Scenario::V2),
            number => match number.trim_end_matches('%').parse::<f64>() {
                Ok(percent) if (0.0..100.0).contains(&percent) => Ok(Scenario::Percent(percent)),
                _ => Err(InputError::whole(format!(
                    "no speed-up scenario '{}': none, v1, v2, or a percentage from 0 to under 100",
                    text.escape_debug()
                ))),
            },
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scenario::None => f.write_str("none"),
            Scenario::Percent(percent) => write!(f, "{percent}"),
            Scenario::V1 => f.write_str("v1"),
            Scenario::V2 => f.write_str("v2"),
        }
    }
}
