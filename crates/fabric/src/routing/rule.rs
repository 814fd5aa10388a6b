//! Rules by which static routing chooses the port at each level.

use crate::ids::NodeIndex;
use crate::scramble::scramble;

/// How the port up is chosen at each level; `w` is the number of parallel switches there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// `floor(to / w) mod ports` (Zahavi 2010).
    DestinationModK,
    /// `floor(from / w) mod ports`.
    SourceModK,
    /// Drawn at random for every pair and level.
    Random {
        /// The seed of the draws.
        seed: u64,
    },
}

impl Rule {
    /// The preferred one of `ports` ports for a pair of nodes, at a level whose groups have `width` parallel switches.
    pub(crate) fn port(
        self,
        (from, to): (NodeIndex, NodeIndex),
        level: usize,
        width: u32,
        ports: u32,
    ) -> u32 {
        match self {
            Rule::DestinationModK => to / width % ports,
            Rule::SourceModK => from / width % ports,
            Rule::Random { seed } => {
                let pair = u64::from(from) << 32 | u64::from(to);
                (scramble(scramble(seed ^ pair) ^ level as u64) % u64::from(ports)) as u32
            }
        }
    }
}
