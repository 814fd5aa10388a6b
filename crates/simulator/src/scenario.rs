//! How much faster a job runs when no other job shares its links.

use std::fmt;
use std::str::FromStr;

use topolane_fabric::{InputError, scramble};

/// Jobs of this many nodes or more gain what the top of their bin says (SC'18).
const TOP_OF_BIN: u32 = 512;
/// Jobs of this many nodes or fewer gain nothing under a plain percentage and under V2 (SC'18).
const GAIN_NOTHING: u32 = 4;
/// The widest job of V2's narrow class (SC'18).
const NARROW_IN_V2: u32 = 128;

/// Which part of its run time a job saves under a policy that isolates jobs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Scenario {
    /// No job gains.
    #[default]
    None,
    /// Jobs of more than four nodes run this many per cent shorter.
    Percent(f64),
    /// Every job falls at random in a bin of 0-10, 0-20 or 0-30 %.
    V1,
    /// 5-128 nodes: a bin of 0-10 or 0-20 %; more: 0-10, 10-20 or 10-30 %.
    V2,
}

/// A range of gains, per cent: its lower end for one node, its upper for 512 nodes and more.
type Bin = (f64, f64);

const V1: [Bin; 3] = [(0.0, 10.0), (0.0, 20.0), (0.0, 30.0)];
const V2_NARROW: [Bin; 2] = [(0.0, 10.0), (0.0, 20.0)];
const V2_WIDE: [Bin; 3] = [(0.0, 10.0), (10.0, 20.0), (10.0, 30.0)];

impl Scenario {
    /// The part of its run time, in [0, 1), that the job saves when it is isolated.
    ///
    /// The bin depends on `job_id` and `seed` alone, so a job gains the same in every run.
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

/// The gain of a job of `nodes` nodes, linear between the ends of its bin.
fn in_bin((low, high): Bin, nodes: u32) -> f64 {
    let along = f64::from(nodes.clamp(1, TOP_OF_BIN) - 1) / f64::from(TOP_OF_BIN - 1);
    (low + (high - low) * along) / 100.0
}

fn pick(bins: &[Bin], job_id: u64, seed: u64) -> Bin {
    // The high bits of the product are the bin: no bin is favoured by more than 2^-60.
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
