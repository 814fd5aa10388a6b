use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use topolane_fabric::NodeIndex;

use super::best_fit::left;
use super::state::NodeState;
use super::{Cost, cheapest};
use crate::demand::{Demand, DemandKind};
use crate::{Choice, FreeSlots, GpuSet, Occupancy, Policy, Refusal, Request, Share, Traits};

/// The weight of GPUs that lack cores against fragments, chosen on the inflation experiment (`benches/gpu/inflation.py`).
const UNFED: f64 = 1.0 / 6.0;
/// Nodes whose measure is remembered, at most.
const REMEMBERED: usize = 1 << 17;

/// The node on which a slot makes the fewest GPUs useless to the requests that the scheduler has seen.
///
/// A measure is taken of a node before and after, over the kinds of requests with GPUs, by their shares. The slot goes to the
/// node, and with a part of a GPU to the GPU, where the measure rises least; of equals to the node with the least left.
///
/// Fragmentation gradient descent (Weng et al., USENIX ATC'23), rebuilt from the paper: for a kind that does not fit the node all
/// its free GPUs are fragments, for one that fits those GPUs that have too little free. Kinds without GPUs make all free GPUs
/// fragments on every node, so they do not change a comparison and are left out.
///
/// `gpu-packing` adds GPUs that lack cores: what would stay free if requests of one kind used up the cores and the memory.
#[derive(Debug)]
pub struct Gradient {
    name: &'static str,
    /// The weight of GPUs that lack cores, against fragments.
    unfed: f64,
    remembered: Mutex<Remembered>,
}

/// The measure of states of nodes under one demand.
#[derive(Debug, Default)]
struct Remembered {
    demand: Arc<Demand>,
    measures: HashMap<Box<[u64]>, f64>,
    /// The key looked up last, to be written over.
    key: Vec<u64>,
}

impl Gradient {
    /// The rule of the paper.
    pub fn fragmentation() -> Self {
        Gradient { name: "fgd", unfed: 0.0, remembered: Mutex::default() }
    }

    /// Fragments, and GPUs that lack cores.
    pub fn packing() -> Self {
        Gradient { name: "gpu-packing", unfed: UNFED, remembered: Mutex::default() }
    }

    /// The measure of a node, from memory if it is known.
    fn measure(&self, state: &NodeState<'_>, node: NodeIndex, seen: &mut Remembered) -> f64 {
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

    /// Thousandths of a node that are useless to requests of one kind.
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

    /// The least that the measure rises by, and the GPUs with which it does.
    fn rise(
        &self,
        state: &NodeState<'_>,
        share: &Share,
        node: NodeIndex,
        seen: &mut Remembered,
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
        // Whole GPUs are those of the state's rule, which knows the rails of the other nodes.
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
            *remembered = Remembered { demand, ..Remembered::default() };
        }
        let seen = RefCell::new(remembered);
        let cost_of = |node| {
            let rise = NodeState::of(occupancy, node)
                .map(|state| self.rise(&state, &request.share, node, &mut seen.borrow_mut()));
            let (first, gpus) = rise.unwrap_or((0.0, GpuSet::EMPTY));
            Cost::new(first, left(occupancy, node), gpus)
        };
        // Idle nodes of one kind cost the same.
        let idle: RefCell<BTreeMap<(u32, u32), Cost>> = RefCell::default();
        let cost = |node| {
            if !occupancy.idle().contains(node) {
                return cost_of(node);
            }
            let sort = occupancy.demand().sort_of(node);
            let like = (occupancy.fabric().kind_index(node), sort);
            *idle.borrow_mut().entry(like).or_insert_with(|| cost_of(node))
        };
        Ok(cheapest(request, free, cost))
    }
}
