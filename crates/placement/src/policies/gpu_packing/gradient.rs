use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;
use topolane_fabric::NodeIndex;

use super::best_fit::left;
use super::state::{NodeState, state_key};
use super::{Cost, cheapest};
use crate::demand::{Demand, DemandKind};
use crate::{Choice, FreeSlots, GpuSet, Occupancy, Policy, Refusal, Request, Share, Traits};

/// The weight of GPUs that lack cores, relative to fragments; chosen by experiment (`benches/gpu/inflation.py`).
const UNFED: f64 = 1.0 / 6.0;
/// The most node states whose measure is cached, and the most whose cost is cached.
const REMEMBERED: usize = 1 << 17;

/// Takes the node on which a slot makes the fewest GPUs useless for the kinds of requests seen so far.
///
/// It measures a node before and after the slot, over the kinds of GPU requests, weighted by their shares. The slot
/// goes to the node, and a part of a GPU to the GPU, where the measure rises least; among equals to the node with the
/// least left.
///
/// This is fragmentation gradient descent (Weng et al., USENIX ATC'23), rebuilt from the paper. If a kind does not fit
/// on the node, all free GPUs there are fragments for it. If it fits, only GPUs with too little free are. Kinds without
/// GPUs would make all free GPUs fragments on every node; they do not change a comparison and are skipped.
///
/// `gpu-packing` also counts GPUs that lack cores: what would stay free if requests of one kind used up the cores and
/// the memory.
#[derive(Debug)]
pub struct Gradient {
    name: &'static str,
    /// The weight of GPUs that lack cores, relative to fragments.
    unfed: f64,
    remembered: Mutex<NodeStateCache>,
}

/// Cached results for node states, valid for one demand and one machine.
#[derive(Debug, Default)]
struct NodeStateCache {
    demand: Arc<Demand>,
    measures: FxHashMap<Box<[u64]>, f64>,
    /// The cost of the next slot, by share and node state.
    costs: FxHashMap<Box<[u64]>, Cost>,
    /// A number for every share, used in the keys.
    shares: FxHashMap<Share, u64>,
    /// The last key, kept to reuse its memory.
    key: Vec<u64>,
}

impl NodeStateCache {
    fn number_of(&mut self, share: &Share) -> u64 {
        if let Some(&number) = self.shares.get(share) {
            return number;
        }
        if self.shares.len() >= REMEMBERED {
            self.shares.clear();
            self.costs.clear();
        }
        let number = self.shares.len() as u64;
        self.shares.insert(share.clone(), number);
        number
    }
}

impl Gradient {
    /// Returns the policy of the paper: fragments only.
    pub fn fragmentation() -> Self {
        Gradient { name: "fgd", unfed: 0.0, remembered: Mutex::default() }
    }

    /// Returns the policy that also counts GPUs that lack cores.
    pub fn packing() -> Self {
        Gradient { name: "gpu-packing", unfed: UNFED, remembered: Mutex::default() }
    }

    /// The measure of a node, from the cache if possible.
    fn measure(&self, state: &NodeState<'_>, node: NodeIndex, seen: &mut NodeStateCache) -> f64 {
        state.key(seen.demand.sort_of(node), &mut seen.key);
        if let Some(&measure) = seen.measures.get(&seen.key[..]) {
            return measure;
        }
        let kinds = seen.demand.kinds().iter();
        let measure = kinds.map(|kind| kind.share * self.of_kind(state, kind, node)).sum();
        if seen.measures.len() >= REMEMBERED {
            seen.measures.clear();
        }
        seen.measures.insert(seen.key.as_slice().into(), measure);
        measure
    }

    /// Thousandths of a node's GPUs that are useless for requests of one kind.
    fn of_kind(&self, state: &NodeState<'_>, kind: &DemandKind, node: NodeIndex) -> f64 {
        if kind.eligible.as_ref().is_some_and(|nodes| !nodes.contains(node)) {
            return (1.0 + self.unfed) * state.total();
        }
        let fragments = state.fragments(&kind.amounts);
        if self.unfed == 0.0 {
            return fragments;
        }
        fragments + self.unfed * state.unfed(&kind.amounts, kind.thousandths as f64)
    }

    /// The cost of the next slot of a share on a node, from the cache if a node in the same state was seen. `number`
    /// identifies the share.
    fn cost(
        &self,
        occupancy: &Occupancy,
        (share, number): (&Share, u64),
        node: NodeIndex,
        seen: &mut NodeStateCache,
    ) -> Cost {
        let mut key = std::mem::take(&mut seen.key);
        key.clear();
        key.extend([number, u64::from(seen.demand.sort_of(node))]);
        state_key(occupancy, node, &mut key);
        if let Some(&cost) = seen.costs.get(&key[..]) {
            seen.key = key;
            return cost;
        }
        let rise = NodeState::of(occupancy, node).map(|state| self.rise(&state, share, node, seen));
        let (first, gpus) = rise.unwrap_or((0.0, GpuSet::EMPTY));
        let cost = Cost::new(first, left(occupancy, node), gpus);
        if seen.costs.len() >= REMEMBERED {
            seen.costs.clear();
        }
        seen.costs.insert(key.into(), cost);
        cost
    }

    /// The smallest increase of the measure, and the GPUs that give it.
    fn rise(
        &self,
        state: &NodeState<'_>,
        share: &Share,
        node: NodeIndex,
        seen: &mut NodeStateCache,
    ) -> (f64, GpuSet) {
        let before = self.measure(state, node, seen);
        let Share::Part(amounts) = share else { return (-before, GpuSet::EMPTY) };
        let mut best = (f64::INFINITY, GpuSet::EMPTY);
        for gpus in state.choices(amounts) {
            let rise = self.measure(&state.after(amounts, gpus), node, seen) - before;
            if rise < best.0 {
                best = (rise, gpus);
            }
        }
        // The occupancy chooses whole GPUs, because it knows the rails of the job's other nodes.
        if amounts.gpu_part().is_some() { best } else { (best.0, GpuSet::EMPTY) }
    }
}

impl Policy for Gradient {
    fn name(&self) -> &'static str {
        self.name
    }

    fn traits(&self) -> Traits {
        Traits::COUNT_ONLY
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<Choice, Refusal> {
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&remembered.demand, occupancy.demand()) {
            let demand = Arc::clone(occupancy.demand());
            *remembered = NodeStateCache { demand, ..NodeStateCache::default() };
        }
        let share = (&request.share, remembered.number_of(&request.share));
        let seen = RefCell::new(remembered);
        let cost_of = |node| self.cost(occupancy, share, node, &mut seen.borrow_mut());
        // Idle nodes of the same kind cost the same.
        let idle: RefCell<Vec<((u32, u32), Cost)>> = RefCell::default();
        let cost = |node| {
            if !occupancy.idle().contains(node) {
                return cost_of(node);
            }
            let like = (occupancy.fabric().kind_index(node), occupancy.demand().sort_of(node));
            let mut idle = idle.borrow_mut();
            if let Some(&(_, cost)) = idle.iter().find(|known| known.0 == like) {
                return cost;
            }
            let cost = cost_of(node);
            idle.push((like, cost));
            cost
        };
        Ok(cheapest(request, free, cost))
    }
}
