use std::sync::atomic::{AtomicU64, Ordering};

use topolane_fabric::Fabric;

use crate::owned::{Board, Limit, Plan, limits, search, waste};
use crate::policies::OwnedAmongMany;
use crate::{
    Choice, DedicatesLinks, FreeSlots, Looking, Obstacle, Occupancy, Placement, Policy, QueueRule,
    Refusal, Request, Traits,
};

/// Jobs in the queue from which on all get equal parts: [`OwnedAmongMany`].
const MANY: usize = 256;

/// Links of its own for every job, wherever the condition of docs/explanation/dedicated-links.md can be met:
/// jobs share leaves and pods,
/// but no link. Of all ways it takes the one that leaves most to those who come.
///
/// The default one does so however many wait; [`Owned::new`] asks for equal parts of many.
#[derive(Debug, Default)]
pub struct Owned {
    searches: AtomicU64,
    cut_short: AtomicU64,
    among_many: Option<Box<OwnedAmongMany>>,
}

impl Owned {
    /// The rule for queues: with [`OwnedAmongMany`] where many wait.
    pub fn new() -> Self {
        Owned { among_many: Some(Box::default()), ..Owned::default() }
    }

    fn search(&self, board: &Board<'_>) -> Option<Plan> {
        let (plan, cut_short) = search(board);
        self.searches.fetch_add(1, Ordering::Relaxed);
        self.cut_short.fetch_add(u64::from(cut_short), Ordering::Relaxed);
        plan
    }
}

impl Policy for Owned {
    fn name(&self) -> &'static str {
        "dedicated"
    }

    fn traits(&self) -> Traits {
        Traits::ISOLATES
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<Choice, Refusal> {
        let free = &free.unshared(request, occupancy);
        let least = request.min_bandwidth.unwrap_or(1.0);
        let ask = |bandwidth: f64| {
            let board = Board::new(request, free, occupancy, bandwidth);
            let plan = self.search(&board)?;
            let plan = if bandwidth > least { plan.shrunk(&board, least) } else { plan };
            let bandwidth_share = if plan.leaves.len() > 1 { least } else { 1.0 };
            Some(Choice { bandwidth_share, ..plan.choice(&board, free) })
        };
        // Even shapes come of full bandwidth. What a job then has beyond the least that it accepts is lent to it, and taken
        // back where somebody is placed on it.
        let found = ask(1.0).or_else(|| if least < 1.0 { ask(least) } else { None });
        found.ok_or_else(|| Refusal::would_share(request, free))
    }

    /// What finds a place at full bandwidth finds one at less.
    fn has_place(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<(), Refusal> {
        let free = &free.unshared(request, occupancy);
        let board = Board::new(request, free, occupancy, request.min_bandwidth.unwrap_or(1.0));
        self.search(&board).map(drop).ok_or_else(|| Refusal::would_share(request, free))
    }

    fn obstacles(&self, looking: &Looking<'_>) -> (usize, Vec<Obstacle>) {
        (looking.occupancy.fabric().depth(), looking.owned_uplinks())
    }

    fn dedicates_links(&self) -> Option<&dyn DedicatesLinks> {
        Some(self)
    }

    fn queue_rule(&self) -> Option<&dyn QueueRule> {
        Some(self)
    }
}

impl DedicatesLinks for Owned {
    fn limits(&self, fabric: &Fabric) -> Vec<Limit> {
        limits(fabric)
    }

    fn searches(&self) -> (u64, u64) {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (more, more_cut) = self.among_many.as_ref().map_or((0, 0), |rule| rule.searches());
        (load(&self.searches) + more, load(&self.cut_short) + more_cut)
    }
}

impl QueueRule for Owned {
    fn waste(&self, placement: &Placement, occupancy: &Occupancy) -> f64 {
        waste(placement, occupancy)
    }

    fn for_queue_length(&self, waiting: usize) -> Option<&dyn Policy> {
        let among_many = self.among_many.as_deref().filter(|_| waiting >= MANY)?;
        Some(among_many)
    }
}
