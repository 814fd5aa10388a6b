use std::sync::Arc;

use topolane_fabric::{NodeIndex, NodeSet};

use crate::arrangement::Arrangement;
use crate::policy::SitePolicy;
use crate::worth::Worth;
use topolane_placement::FreeSlots;
use topolane_placement::Occupancy;
use topolane_placement::Placement;
use topolane_placement::Refusal;
use topolane_placement::policies::HopBytesExact;
use topolane_placement::{Choice, Policy, Traits};
use topolane_placement::{Disruption, PresentJob, RoomEffort, RoomPlan, make_room};
use topolane_placement::{Request, Share};

/// The most programs that are moved for a new one.
const MOST: u32 = 3;

/// A new program goes onto one site, or is not placed. If no site can hold it, up to three running programs are moved
/// out of its way, each onto one site too: those with the fewest guests in total. Otherwise no program moves. Only
/// programs with fewer cores than the new one are moved.
#[derive(Debug, Clone, Copy, Default)]
pub struct MakeRoom;

impl SitePolicy for MakeRoom {
    fn name(&self) -> &'static str {
        "make-room"
    }

    fn choose(&self, arrangement: &mut Arrangement<'_>, _: &Worth<'_>) {
        for program in 0..arrangement.programs().len() {
            if arrangement.now(program).is_empty() {
                arrive(arrangement, program);
            }
        }
    }
}

fn arrive(arrangement: &mut Arrangement<'_>, program: usize) {
    let mut occupancy = arrangement.occupancy().clone();
    let running = laid(arrangement, &mut occupancy);
    let size = |program: u32| {
        let asked = &arrangement.programs()[program as usize];
        u64::from(asked.guests) * asked.guest.cores()
    };
    let wanted = size(program as u32);
    let present: Vec<PresentJob<'_>> = running
        .iter()
        .filter(|(request, _)| size(request.id as u32) < wanted)
        .map(|(request, placement)| PresentJob {
            request,
            placement,
            disruption: Disruption::Move(f64::from(request.nodes)),
            group: Some(0),
            uses: 1,
            rank: 0,
        })
        .collect();
    let request = request(arrangement, program);
    let effort = RoomEffort { budgets: vec![MOST], ..RoomEffort::on(arrangement.fabric()) };
    let found = make_room(&OneSite, &request, &mut occupancy, &present, &effort);
    let Ok(RoomPlan { moved, placement, .. }) = found else { return };
    for (other, _) in &moved {
        arrangement.lift(*other as usize);
    }
    for (other, placement) in &moved {
        arrangement.put_on(*other as usize, placement.nodes());
    }
    arrangement.put_on(program, placement.nodes());
}

/// Claims the hosts of all placed programs. Returns those that may be moved. A program on a host that is out of service
/// or overbooked stays, and holds what there is.
fn laid(
    arrangement: &Arrangement<'_>,
    occupancy: &mut Occupancy,
) -> Vec<(Request, Arc<Placement>)> {
    let mut movable = Vec::new();
    for program in 0..arrangement.programs().len() {
        let request = request(arrangement, program);
        let seats = arrangement.seats(program).iter();
        let nodes: Vec<NodeIndex> =
            seats.flat_map(|&(node, guests)| std::iter::repeat_n(node, guests as usize)).collect();
        let placement = Placement::new(arrangement.fabric(), nodes, request.share.clone());
        if !placement.nodes().is_empty() && occupancy.claim(&placement).is_ok() {
            movable.push((request, Arc::new(placement)));
            continue;
        }
        for &node in placement.nodes() {
            let program = &arrangement.programs()[program];
            let left = program.guest.at_most(occupancy.free(node));
            if left.cores() > 0 && occupancy.cores_free(node) > 0 {
                let part = Placement::new(arrangement.fabric(), vec![node], Share::Part(left));
                let held = occupancy.adopt(&part);
                debug_assert!(held.is_ok(), "no more than is free");
            }
        }
    }
    movable
}

/// The request for a program's guests on hosts of the sites that it may use.
fn request(arrangement: &Arrangement<'_>, program: usize) -> Request {
    let asked = &arrangement.programs()[program];
    let allowed = arrangement.allowed(program);
    let nodes = 0..arrangement.fabric().nodes();
    let may = |node: &NodeIndex| {
        allowed.contains(&arrangement.site(*node)) && asked.barred.binary_search(node).is_err()
    };
    Request {
        id: program as u64,
        nodes: asked.guests,
        share: Share::Part(asked.guest.clone()),
        stacked: true,
        walltime: f64::INFINITY,
        eligible: Some(Arc::new(NodeSet::of(arrangement.fabric().nodes(), nodes.filter(may)))),
        ..Request::default()
    }
}

/// Places a program on one site: the tightest one that suffices, and there on the fewest hosts.
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
