use std::sync::atomic::{AtomicU64, Ordering};

use crate::apart::choice_apart;
use crate::dedicated::search::candidates::Candidates;
use crate::dedicated::search::cost::{waste, waste_of_plan};
use crate::dedicated::search::leaf::Weights;
use crate::dedicated::search::plan::DedicatedPlan;
use crate::dedicated::search::{SearchResult, search};
use crate::placing::chosen;
use crate::policies::DedicatedInLongQueue;
use crate::promise::Promise;
use crate::{
    Choice, DedicatesLinks, FreeSlots, HeadRule, LinkPlan, Occupancy, Placement, PlansFirst,
    Policy, QueueRule, Refusal, Request, RoomHelps, Traits, Wirings,
};

/// The number of waiting jobs from which on [`DedicatedInLongQueue`] is used.
const LONG_QUEUE: usize = 256;

/// How long the head of a queue waits for a shape that does not need `fallback_pods`, as a share of its walltime.
const PATIENCE: f64 = 0.5;

/// Gives every job links of its own, wherever the condition of docs/explanation/dedicated-links.md can be met. Jobs may
/// share leaves and pods, but no link. Among several placements it takes the one that leaves the most usable capacity
/// for later jobs.
///
/// On a dragonfly, a job owns some of the cables between each two of its groups: see docs/explanation/wirings.md.
///
/// The default uses this policy for queues of any length. [`Dedicated::new`] switches to equal parts in long queues.
#[derive(Debug, Default)]
pub struct Dedicated {
    weights: Weights,
    searches: AtomicU64,
    cut_short: AtomicU64,
    long_queue: Option<Box<DedicatedInLongQueue>>,
    /// The policy for the head of a queue.
    tidy: Option<Box<Dedicated>>,
    /// Whether this is the policy for the head.
    is_tidy: bool,
}

impl Dedicated {
    /// Returns the policy that uses [`DedicatedInLongQueue`] in long queues.
    pub fn new() -> Self {
        Dedicated::with_weights(Weights::default())
    }

    /// Returns the policy for queues of any length, with these weights of the cost.
    pub(super) fn of_any_length(weights: Weights) -> Self {
        Dedicated { weights, ..Dedicated::default() }
    }

    /// Same as [`Dedicated::new`], with other weights of the cost by which it chooses among placements.
    pub fn with_weights(weights: Weights) -> Self {
        let long_queue = Some(Box::new(DedicatedInLongQueue::with_weights(weights)));
        let tidy = Some(Box::new(Dedicated { weights, is_tidy: true, ..Dedicated::default() }));
        Dedicated { weights, long_queue, tidy, ..Dedicated::default() }
    }

    fn search(&self, candidates: &Candidates<'_>) -> Option<DedicatedPlan> {
        let SearchResult { plan, cut_short } = search(candidates);
        self.searches.fetch_add(1, Ordering::Relaxed);
        self.cut_short.fetch_add(u64::from(cut_short), Ordering::Relaxed);
        plan
    }
}

impl Policy for Dedicated {
    fn name(&self) -> &'static str {
        "dedicated"
    }

    fn traits(&self) -> Traits {
        Traits { wirings: Wirings::TREE_OR_DRAGONFLY, ..Traits::ISOLATES }
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<Choice, Refusal> {
        if !free.fabric().wiring().is_tree() {
            return on_dragonfly(request, free, occupancy);
        }
        chosen(self, request, free, occupancy)
    }

    /// A request that fits at full bandwidth also fits at less, so only the least bandwidth needs to be checked.
    fn has_place(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<(), Refusal> {
        if !free.fabric().wiring().is_tree() {
            return on_dragonfly(request, free, occupancy).map(drop);
        }
        let free = &free.unshared(request, occupancy);
        let least = request.min_bandwidth.unwrap_or(1.0);
        let candidates = Candidates::new(request, free, occupancy, self.weights, least);
        let candidates = Candidates { tidy: self.is_tidy, ..candidates };
        self.search(&candidates.for_any()).map(drop).ok_or_else(|| free.would_share_links(request))
    }

    /// With less than full bandwidth, the search finds some shapes only while others are not available.
    fn room_helps(&self, request: &Request) -> RoomHelps {
        if request.min_bandwidth.is_some_and(|least| least < 1.0) {
            RoomHelps::Unknown
        } else {
            RoomHelps::Always
        }
    }

    fn dedicates_links(&self) -> Option<&dyn DedicatesLinks> {
        Some(self)
    }

    fn queue_rule(&self) -> Option<&dyn QueueRule> {
        Some(self)
    }
}

/// Chooses nodes of a dragonfly and cables between their groups: with all of the bandwidth that the job's nodes have there or,
/// if that fails, the least that the request accepts.
fn on_dragonfly(
    request: &Request,
    free: &FreeSlots<'_>,
    occupancy: &Occupancy,
) -> Result<Choice, Refusal> {
    let ask = |share| choice_apart(Promise::OwnCables { share }, request, free, occupancy);
    let least = request.min_bandwidth.unwrap_or(1.0);
    ask(1.0).or_else(|refusal| if least < 1.0 { ask(least) } else { Err(refusal) })
}

impl DedicatesLinks for Dedicated {
    fn searches(&self) -> (u64, u64) {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let own = (load(&self.searches), load(&self.cut_short));
        let long_queue = self.long_queue.as_ref().map_or((0, 0), |rule| rule.searches());
        let for_head = self.tidy.as_ref().map_or((0, 0), |rule| rule.searches());
        (own.0 + long_queue.0 + for_head.0, own.1 + long_queue.1 + for_head.1)
    }
}

impl QueueRule for Dedicated {
    fn waste(&self, _: &Request, placement: &Placement, occupancy: &Occupancy) -> f64 {
        if !occupancy.fabric().wiring().is_tree() {
            return 0.0;
        }
        waste(&self.weights, placement, occupancy)
    }

    fn plans_first(&self) -> Option<&dyn PlansFirst> {
        Some(self)
    }

    fn for_queue_length(&self, waiting: usize) -> Option<&dyn Policy> {
        let long_queue = self.long_queue.as_deref().filter(|_| waiting >= LONG_QUEUE)?;
        Some(long_queue)
    }

    fn for_head(&self) -> Option<HeadRule<'_>> {
        let policy: &dyn Policy = self.tidy.as_deref()?;
        Some(HeadRule { policy, patience: PATIENCE })
    }
}

impl PlansFirst for Dedicated {
    /// Plans at full bandwidth or, if that fails, at the least bandwidth that the request accepts.
    fn plan(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Option<LinkPlan> {
        let least = request.min_bandwidth.unwrap_or(1.0);
        let ask = |bandwidth: f64| {
            let candidates = Candidates::new(request, free, occupancy, self.weights, bandwidth);
            let candidates = Candidates { tidy: self.is_tidy, ..candidates };
            let plan = self.search(&candidates)?;
            let plan = if bandwidth > least { plan.shrunk(&candidates, least) } else { plan };
            let bandwidth_share = if plan.leaves.len() > 1 { least } else { 1.0 };
            Some(LinkPlan::new(plan, bandwidth_share))
        };
        // Full bandwidth gives regular shapes. Links beyond the least bandwidth are only lent to the job, and taken
        // back when another job needs them.
        ask(1.0).or_else(|| if least < 1.0 { ask(least) } else { None })
    }

    fn waste_of_plan(&self, request: &Request, plan: &LinkPlan, occupancy: &Occupancy) -> f64 {
        waste_of_plan(&self.weights, &request.share, plan, occupancy)
    }
}
