//! How much work a mapping may cost: counted in steps, not by the clock.

use super::partition::Care;

/// How much work to spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effort {
    /// One partition of each kind and pair swaps.
    Fast,
    /// Partitions from several seeds, the best of them annealed and searched on.
    #[default]
    Eco,
    /// More of all.
    Strong,
}

/// All efforts by name.
pub const EFFORTS: &[(&str, Effort)] =
    &[("fast", Effort::Fast), ("eco", Effort::Eco), ("strong", Effort::Strong)];

/// What an effort buys.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    /// Seeds of each kind of partition.
    pub(super) seeds: u64,
    /// How many of the mappings found are searched on.
    pub(super) kept: usize,
    /// Exchanges drawn per rank when annealing.
    pub(super) trials: u64,
    /// Rounds of iterated local search per rank.
    pub(super) rounds: u64,
    /// Care taken over each partition.
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
