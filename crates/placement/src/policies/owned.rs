use std::sync::atomic::{AtomicU64, Ordering};

use topolane_fabric::{Fabric, NodeIndex};

use crate::owned::{Board, Limit, Plan, limits, own_room, search, waste};
use crate::policies::OwnedAmongMany;
use crate::{Choice, Looking, Obstacle, Occupancy, Placement, Policy, Refusal, Request, Room};

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

    fn choose(
        &self,
        request: &Request,
        room: &Room<'_>,
        occupancy: &Occupancy,
    ) -> Result<Vec<NodeIndex>, Refusal> {
        self.choose_links(request, room, occupancy).map(|choice| choice.nodes)
    }

    fn choose_links(
        &self,
        request: &Request,
        room: &Room<'_>,
        occupancy: &Occupancy,
    ) -> Result<Choice, Refusal> {
        let room = &own_room(request, room, occupancy);
        let least = request.phi.unwrap_or(1.0);
        let ask = |phi: f64| {
            let board = Board::new(request, room, occupancy, phi);
            let plan = self.search(&board)?;
            let plan = if phi > least { plan.shrunk(&board, least) } else { plan };
            let phi = if plan.leaves.len() > 1 { least } else { 1.0 };
            Some(Choice { phi, ..plan.choice(&board, room) })
        };
        // Even shapes come of full bandwidth. What a job then has beyond the least that it accepts is lent to it, and taken
        // back where somebody is placed on it.
        let found = ask(1.0).or_else(|| if least < 1.0 { ask(least) } else { None });
        found.ok_or_else(|| Refusal::would_share(request, room))
    }

    /// What finds a place at full bandwidth finds one at less.
    fn finds(
        &self,
        request: &Request,
        room: &Room<'_>,
        occupancy: &Occupancy,
    ) -> Result<(), Refusal> {
        let room = &own_room(request, room, occupancy);
        let board = Board::new(request, room, occupancy, request.phi.unwrap_or(1.0));
        self.search(&board).map(drop).ok_or_else(|| Refusal::would_share(request, room))
    }

    fn among_waiting(&self, waiting: usize) -> Option<&dyn Policy> {
        let among_many = self.among_many.as_deref().filter(|_| waiting >= MANY)?;
        Some(among_many)
    }

    fn waste(&self, _: &Request, placement: &Placement, occupancy: &Occupancy) -> f64 {
        waste(placement, occupancy)
    }

    fn obstacles(&self, looking: &Looking<'_>) -> (usize, Vec<Obstacle>) {
        (looking.occupancy.fabric().depth(), looking.owned_uplinks())
    }

    fn by_shape(&self) -> bool {
        true
    }

    fn searches(&self) -> (u64, u64) {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (more, more_cut) = self.among_many.as_ref().map_or((0, 0), |rule| rule.searches());
        (load(&self.searches) + more, load(&self.cut_short) + more_cut)
    }

    fn isolates(&self) -> bool {
        true
    }

    fn limits(&self, fabric: &Fabric) -> Vec<Limit> {
        limits(fabric)
    }
}
