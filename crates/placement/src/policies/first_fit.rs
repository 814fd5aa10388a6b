use crate::{Choice, FreeSlots, Occupancy, Policy, Refusal, Request, Traits};

/// Takes the free nodes of lowest index. It ignores the network.
#[derive(Debug, Clone, Copy, Default)]
pub struct FirstFit;

impl Policy for FirstFit {
    fn name(&self) -> &'static str {
        "first-fit"
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
        let mut nodes = Vec::with_capacity(request.nodes as usize);
        let top = free.fabric().depth();
        for site in 0..free.fabric().sites() {
            let left = request.nodes - nodes.len() as u32;
            free.take(top, site, left, &mut nodes);
        }
        Ok(Choice::nodes(nodes))
    }
}
