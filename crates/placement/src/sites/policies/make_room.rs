use std::sync::Arc;

use topolane_fabric::{NodeIndex, NodeSet};

use crate::free_slots::FreeSlots;
use crate::occupancy::Occupancy;
use crate::placement::Placement;
use crate::policies::HopBytesExact;
use crate::policy::{Choice, Policy, Traits};
use crate::refusal::Refusal;
use crate::repair::{Movable, Repair, repair};
use crate::request::{Request, Share};
use crate::sites::board::Board;
use crate::sites::policy::SitePolicy;
use crate::sites::worth::Worth;

/// Programs moved for one that arrives, at most.
const MOST: usize = 3;

/// Who arrives goes onto one site, or is not placed. Where no site has room for it, up to three programs that run are
/// moved out of its way, each onto one site too; else nobody moves.
#[derive(Debug, Clone, Copy, Default)]
pub struct MakeRoom;

impl SitePolicy for MakeRoom {
    fn name(&self) -> &'static str {
        "make-room"
    }

    fn choose(&self, board: &mut Board<'_>, _: &Worth<'_>) {
        for program in 0..board.programs().len() {
            if board.now(program).is_empty() {
                arrive(board, program);
            }
        }
    }
}

fn arrive(board: &mut Board<'_>, program: usize) {
    let mut occupancy = board.occupancy().clone();
    let running = laid(board, &mut occupancy);
    let movable: Vec<Movable<'_>> =
        running.iter().map(|(request, placement)| Movable { request, placement }).collect();
    let request = request(board, program);
    let rule: &dyn Policy = &OneSite;
    let found = match rule.place(&request, &occupancy) {
        Ok(placement) => Some(Repair { moved: Vec::new(), placement: Arc::new(placement) }),
        Err(_) => repair(rule, &request, &mut occupancy, &movable, MOST),
    };
    let Some(Repair { moved, placement }) = found else { return };
    for (other, _) in &moved {
        board.lift(*other as usize);
    }
    for (other, placement) in &moved {
        board.put_on(*other as usize, placement.nodes());
    }
    board.put_on(program, placement.nodes());
}

/// Lets the programs of the board hold their hosts; answers with those that may be moved. One on a host that is out of
/// service, or holds more than it has, stays, and holds what there is.
fn laid(board: &Board<'_>, occupancy: &mut Occupancy) -> Vec<(Request, Arc<Placement>)> {
    let mut movable = Vec::new();
    for program in 0..board.programs().len() {
        let request = request(board, program);
        let seats = board.seats(program).iter();
        let nodes: Vec<NodeIndex> =
            seats.flat_map(|&(node, guests)| std::iter::repeat_n(node, guests as usize)).collect();
        let placement = Placement::new(board.fabric(), nodes, request.share.clone());
        if !placement.nodes().is_empty() && occupancy.claim(&placement).is_ok() {
            movable.push((request, Arc::new(placement)));
            continue;
        }
        for &node in placement.nodes() {
            let program = &board.programs()[program];
            let left = program.guest.at_most(occupancy.free(node));
            if left.cores() > 0 && occupancy.cores_free(node) > 0 {
                let part = Placement::new(board.fabric(), vec![node], Share::Part(left));
                let held = occupancy.adopt(&part);
                debug_assert!(held.is_ok(), "no more than is free");
            }
        }
    }
    movable
}

/// A program's guests on hosts of the sites that it may use.
fn request(board: &Board<'_>, program: usize) -> Request {
    let asked = &board.programs()[program];
    let allowed = board.allowed(program);
    let nodes = 0..board.fabric().nodes();
    let may = |&node: &NodeIndex| allowed.contains(&board.site(node));
    Request {
        id: program as u64,
        nodes: asked.guests,
        share: Share::Part(asked.guest.clone()),
        stacked: true,
        walltime: f64::INFINITY,
        eligible: Some(Arc::new(NodeSet::of(board.fabric().nodes(), nodes.filter(may)))),
        ..Request::default()
    }
}

/// All on one site: the one with the least room that is enough, and there on as few hosts as can be.
struct OneSite;

impl Policy for OneSite {
    fn name(&self) -> &'static str {
        "one-site"
    }

    fn traits(&self) -> Traits {
        Traits::NONE
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<Choice, Refusal> {
        let fabric = free.fabric();
        let sites = || (0..fabric.sites()).map(|site| (free.count(fabric.depth(), site), site));
        let Some((_, site)) = sites().filter(|(slots, _)| *slots >= request.nodes).min() else {
            let free = sites().map(|(slots, _)| slots).max().unwrap_or(0);
            return Err(Refusal::NotNow { wanted: request.nodes, free });
        };
        let range = fabric.node_range(fabric.depth(), site);
        let free = free.only(|node| range.contains(&node));
        HopBytesExact::default().choose(request, &free, occupancy)
    }
}
