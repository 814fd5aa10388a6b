//! Adds slots to a job that already has some.

use std::collections::BTreeSet;
use std::sync::Arc;

use topolane_fabric::{GroupIndex, NodeIndex};

use crate::free_slots::FreeSlots;
use crate::occupancy::Occupancy;
use crate::placement::Placement;
use crate::policy::Policy;
use crate::refusal::Refusal;
use crate::request::Request;
use crate::within::place_within;

/// The most times that the policy is asked before the job is refused.
const MOST_QUESTIONS: usize = 64;

/// Places a request near [`Request::members`], the nodes that its job already has. The occupancy must not hold these
/// nodes. The placement is for the whole job: the members in their order, then the new slots, with the links of all.
///
/// Each new slot goes where the hops to the others are fewest. Then the policy is asked for exactly these nodes, so it
/// decides whether the job may lie there and which links it owns. If it refuses, the next nearest nodes are tried.
///
/// # Errors
/// There are too few free slots, or the policy refuses the nearest nodes.
pub fn place_near(
    rule: &dyn Policy,
    request: &Request,
    occupancy: &Occupancy,
) -> Result<Placement, Refusal> {
    let free = occupancy.free_slots(request);
    if free.total() < request.nodes {
        let (wanted, most) = (request.nodes, occupancy.empty().free_slots(request).total());
        return Err(if most < wanted {
            Refusal::Never { wanted, most }
        } else {
            Refusal::NotNow { wanted, free: free.total() }
        });
    }
    let mut search = NearSearch { rule, request, occupancy, free, banned: Banned::default() };
    let mut refused = None;
    let mut questions = 0;
    while questions < MOST_QUESTIONS {
        let Some(chosen) = search.nearest() else { break };
        questions += 1;
        match search.ask(&chosen) {
            Ok(placement) => return Ok(placement),
            Err(refusal) => refused = refused.or(Some(refusal)),
        }
        questions += search.ban(&chosen);
    }
    Err(refused.unwrap_or(Refusal::NotNow { wanted: request.nodes, free: search.free.total() }))
}

struct NearSearch<'a> {
    rule: &'a dyn Policy,
    request: &'a Request,
    occupancy: &'a Occupancy,
    free: FreeSlots<'a>,
    banned: Banned,
}

/// Nodes and leaves where the policy does not let the job lie.
#[derive(Default)]
struct Banned {
    leaves: BTreeSet<GroupIndex>,
    nodes: BTreeSet<NodeIndex>,
}

impl NearSearch<'_> {
    fn leaf(&self, node: NodeIndex) -> GroupIndex {
        self.free.fabric().group(1, node)
    }

    /// Returns the free slots nearest to the job, chosen one at a time; `None` if too few are left that are not banned.
    fn nearest(&self) -> Option<Vec<NodeIndex>> {
        let fabric = self.free.fabric();
        let groups = |level| vec![0; fabric.groups(level) as usize];
        let mut inside: Vec<Vec<u32>> = (0..=fabric.depth()).map(groups).collect();
        let count = |inside: &mut [Vec<u32>], node: NodeIndex, slots: u32| {
            for (level, groups) in inside.iter_mut().enumerate() {
                groups[fabric.group(level, node) as usize] += slots;
            }
        };
        self.request.members.iter().for_each(|&node| count(&mut inside, node, 1));
        let may = |&node: &NodeIndex| {
            !self.banned.nodes.contains(&node) && !self.banned.leaves.contains(&self.leaf(node))
        };
        let mut open: Vec<NodeIndex> = self.free.nodes().filter(may).collect();
        let mut chosen = Vec::with_capacity(self.request.nodes as usize);
        while chosen.len() < self.request.nodes as usize {
            // The hops between two nodes are twice the number of levels at which they lie in different groups.
            let nearness = |node: NodeIndex| -> u32 {
                let of = |(level, groups): (usize, &Vec<u32>)| {
                    groups[fabric.group(level, node) as usize]
                };
                inside.iter().enumerate().map(of).sum()
            };
            let best = (0..open.len()).max_by_key(|&at| (nearness(open[at]), !open[at]))?;
            let node = open.swap_remove(best);
            let slots = self.free.count(0, node).min(self.request.nodes - chosen.len() as u32);
            chosen.extend(std::iter::repeat_n(node, slots as usize));
            count(&mut inside, node, slots);
        }
        chosen.sort_unstable();
        Some(chosen)
    }

    /// Asks the policy for the job on its own nodes plus these.
    fn ask(&self, chosen: &[NodeIndex]) -> Result<Placement, Refusal> {
        let nodes: Vec<NodeIndex> = self.request.members.iter().chain(chosen).copied().collect();
        let mut slots = vec![0; self.free.fabric().nodes() as usize];
        for &node in &nodes {
            slots[node as usize] += 1;
        }
        let slots: Arc<[u32]> = slots.into();
        let whole = Request {
            nodes: nodes.len() as u32,
            stacked: self.request.stacked || slots.iter().any(|&slots| slots > 1),
            members: Vec::new(),
            eligible: None,
            slots: Some(Arc::clone(&slots)),
            room: Some(slots),
            ..self.request.clone()
        };
        let placement = place_within(self.rule, &whole, self.occupancy)?;
        let (mut given, mut wanted) = (placement.nodes().to_vec(), nodes.clone());
        given.sort_unstable();
        wanted.sort_unstable();
        if given != wanted || !placement.spare().is_empty() {
            let free = self.free.total();
            return Err(Refusal::NotNow { wanted: self.request.nodes, free });
        }
        Ok(placement.in_order(nodes))
    }

    /// Bans those of the nodes that the policy refuses on their own. If the job had no node on the same leaf, bans the
    /// leaf too. If the policy accepts each on its own, bans the last node. Returns how often the policy was asked.
    fn ban(&mut self, chosen: &[NodeIndex]) -> usize {
        let own: BTreeSet<GroupIndex> =
            self.request.members.iter().map(|&node| self.leaf(node)).collect();
        let places: BTreeSet<NodeIndex> = chosen.iter().copied().collect();
        let is_single = chosen.len() == 1;
        let mut refused: Vec<NodeIndex> = Vec::new();
        if !is_single {
            refused.extend(places.iter().filter(|&&node| self.ask(&[node]).is_err()));
        }
        if refused.is_empty() {
            refused.extend(chosen.last());
        }
        for node in refused {
            let leaf = self.leaf(node);
            if own.contains(&leaf) {
                self.banned.nodes.insert(node);
            } else {
                self.banned.leaves.insert(leaf);
            }
        }
        if is_single { 0 } else { places.len() }
    }
}
