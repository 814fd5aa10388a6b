//! The amount of work for a mapping, counted in steps and not by the clock.

use super::partition::Care;

/// The amount of work to spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effort {
    /// One partition of each kind, then pair swaps.
    Fast,
    /// Partitions from several seeds; the best ones are improved by annealing and local search.
    #[default]
    Eco,
    /// More of everything.
    Strong,
}

/// All efforts, by name.
pub const EFFORTS: &[(&str, Effort)] =
    &[("fast", Effort::Fast), ("eco", Effort::Eco), ("strong", Effort::Strong)];

/// The amounts of work of an effort.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    /// The number of seeds for each kind of partition.
    pub(super) seeds: u64,
    /// The number of mappings that are improved further.
    pub(super) kept: usize,
    /// Exchanges tried per rank in annealing.
    pub(super) trials: u64,
    /// Rounds of iterated local search per rank.
    pub(super) rounds: u64,
    /// The effort for each partition.
    pub(super) care: Care,
}

impl Effort {
    pub(super) fn budget(self) -> Budget {
        let (seeds, kept, trials, rounds) = match self {
            Effort::Fast => (1, 0, 0, 0),
            Effort::Eco => (2, 1, 300, 2),
            Effort::Strong => (6, 4, 4000, 20),
        };
        let care = match self {
            Effort::Fast => Care { cuts: 1, rounds: 0 },
            Effort::Eco => Care { cuts: 2, rounds: 1 },
            Effort::Strong => Care { cuts: 4, rounds: 4 },
        };
        Budget { seeds, kept, trials, rounds, care }
    }
}
