use topolane_placement::{Choice, FreeSlots, Occupancy, Policy, Refusal, Request, Traits};

/// The leaf with the fewest free slots first.
#[derive(Debug, Clone, Copy, Default)]
pub struct FullestLeaf;

impl Policy for FullestLeaf {
    fn name(&self) -> &'static str {
        "fullest-leaf"
    }

    fn traits(&self) -> Traits {
        Traits::COUNT_ONLY
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        _: &Occupancy,
    ) -> Result<Choice, Refusal> {
        let mut leaves: Vec<u32> = (0..free.fabric().groups(1)).collect();
        leaves.sort_by_key(|&leaf| free.count(1, leaf));
        let mut nodes = Vec::new();
        for leaf in leaves {
            let left = request.nodes - nodes.len() as u32;
            free.take(1, leaf, left, &mut nodes);
        }
        Ok(Choice::nodes(nodes))
    }
}
