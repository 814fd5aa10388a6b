use topolane_fabric::GroupIndex;

use crate::{Choice, FreeSlots, Occupancy, Policy, Refusal, Request, SlotCosts, Traits};

/// The published algorithm of hop-byte scheduling in `OpenStack` (2013), unchanged. For each virtual machine in turn it
/// takes a host in the bunch (leaf) of greatest weight: (members there + min(free there, still to place)) x (largest
/// bunch + 1) + members there. Among equal weights it takes the host of lowest index. It ignores levels above the leaf.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bunch;

impl Policy for Bunch {
    fn name(&self) -> &'static str {
        "bunch"
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
        let (mut bunches, largest) = bunches(request, free);
        let mut given = vec![0; bunches.len()];
        for left in (1..=request.nodes).rev() {
            let open = (0..bunches.len()).filter(|&leaf| bunches[leaf].free > 0);
            let weight = |&leaf: &usize| bunches[leaf].weight(largest, left);
            let Some(best) = open.rev().max_by_key(weight) else { break };
            bunches[best].free -= 1;
            bunches[best].members += 1;
            given[best] += 1;
        }
        let mut nodes = Vec::with_capacity(request.nodes as usize);
        for (leaf, &wanted) in (0..).zip(&given) {
            free.take(1, leaf, wanted, &mut nodes);
        }
        Ok(Choice::nodes(nodes))
    }

    fn slot_costs(&self) -> Option<&dyn SlotCosts> {
        Some(self)
    }
}

impl SlotCosts for Bunch {
    fn costs(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        _: &Occupancy,
    ) -> Result<Vec<f64>, Refusal> {
        let fabric = free.fabric();
        let (bunches, largest) = bunches(request, free);
        let weight = |node| bunches[fabric.group(1, node) as usize].weight(largest, request.nodes);
        let cost = |node| if free.contains(node) { -(weight(node) as f64) } else { f64::INFINITY };
        Ok((0..fabric.nodes()).map(cost).collect())
    }
}

/// Hosts under one switch.
#[derive(Clone, Copy)]
struct Hosts {
    free: u32,
    members: u32,
}

impl Hosts {
    fn weight(self, largest: u64, awaiting: u32) -> u64 {
        let members = u64::from(self.members);
        (members + u64::from(self.free.min(awaiting))) * (largest + 1) + members
    }
}

/// The bunches, and the number of hosts in the largest one.
fn bunches(request: &Request, free: &FreeSlots<'_>) -> (Vec<Hosts>, u64) {
    let fabric = free.fabric();
    let free = |leaf| Hosts { free: free.count(1, leaf), members: 0 };
    let mut bunches: Vec<Hosts> = (0..fabric.groups(1)).map(free).collect();
    for &member in &request.members {
        bunches[fabric.group(1, member) as usize].members += 1;
    }
    let hosts = |leaf: GroupIndex| fabric.node_range(1, leaf).len() as u64;
    (bunches, (0..fabric.groups(1)).map(hosts).max().unwrap_or(0))
}
