use rand::SeedableRng;
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;
use topolane_fabric::NodeIndex;

use crate::{Choice, FreeSlots, Occupancy, Policy, Refusal, Request, Traits};

/// Takes free slots at random; the draw depends on the seed and the id of the request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Random {
    /// The seed of the random numbers.
    pub seed: u64,
}

impl Policy for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn traits(&self) -> Traits {
        Traits::COUNT_ONLY
    }

    fn draws_by_identity(&self) -> bool {
        true
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        _: &Occupancy,
    ) -> Result<Choice, Refusal> {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&self.seed.to_le_bytes());
        seed[8..16].copy_from_slice(&request.id.to_le_bytes());
        let mut random = ChaCha8Rng::from_seed(seed);
        let slots: Vec<NodeIndex> = free
            .nodes()
            .flat_map(|node| std::iter::repeat_n(node, free.count(0, node) as usize))
            .collect();
        let drawn = sample(&mut random, slots.len(), request.nodes as usize);
        let mut nodes: Vec<NodeIndex> = drawn.iter().map(|index| slots[index]).collect();
        nodes.sort_unstable();
        Ok(Choice::nodes(nodes))
    }
}
