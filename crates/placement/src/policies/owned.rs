use std::sync::atomic::{AtomicU64, Ordering};

use topolane_fabric::{Fabric, NodeIndex};

use crate::owned::{Across, Board, Even, Limit, Plan, limits, own_room, search, several_pods};
use crate::{Choice, Occupancy, Policy, Refusal, Request, Room};

/// Jobs in the queue from which on those who overtake others are to fit well.
const MANY: usize = 256;

/// Links of its own for every job, wherever the condition of docs/owned-links.md can be met: jobs share leaves and pods,
/// but no link. Of all ways it takes the one that leaves most to those who come.
#[derive(Debug, Default)]
pub struct Owned {
    searches: AtomicU64,
    cut_short: AtomicU64,
}

impl Owned {
    fn search(&self, board: &Board<'_>) -> Option<Plan> {
        let (plan, cut_short) = search(board);
        self.searches.fetch_add(1, Ordering::Relaxed);
        self.cut_short.fetch_add(u64::from(cut_short), Ordering::Relaxed);
        plan
    }
}

impl Policy for Owned {
    fn name(&self) -> &'static str {
        "owned"
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

    /// Where many wait, jobs that overtake others have all of their nodes on one leaf, or equal parts of full bandwidth:
    /// other shapes leave scraps behind, and among many there is always somebody whom equal parts fit.
    fn choose_overtaking(
        &self,
        request: &Request,
        waiting: usize,
        room: &Room<'_>,
        occupancy: &Occupancy,
    ) -> Result<Choice, Refusal> {
        let fabric = room.fabric();
        let leaf = (0..fabric.groups(1)).map(|leaf| fabric.node_range(1, leaf).len()).max();
        let fits_leaf = |nodes: u32| leaf.is_some_and(|leaf| nodes as usize <= leaf);
        if waiting < MANY || request.phi.is_some_and(|phi| phi < 1.0) {
            return self.choose_links(request, room, occupancy);
        }
        let room = &own_room(request, room, occupancy);
        let board = Board::new(request, room, occupancy, 1.0);
        let plan = if fits_leaf(request.nodes) {
            Plan::on_one_leaf(&board)
        } else {
            let even = Even::new(&board);
            even.one_pod().or_else(|| several_pods(&even, Across::WholeLeaves))
        };
        let plan = plan.ok_or_else(|| Refusal::would_share(request, room))?;
        Ok(Choice { phi: 1.0, ..plan.choice(&board, room) })
    }

    fn by_shape(&self) -> bool {
        true
    }

    fn searches(&self) -> (u64, u64) {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (load(&self.searches), load(&self.cut_short))
    }

    fn isolates(&self) -> bool {
        true
    }

    fn limits(&self, fabric: &Fabric) -> Vec<Limit> {
        limits(fabric)
    }
}
